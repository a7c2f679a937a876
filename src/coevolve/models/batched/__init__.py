"""Log-probabilities of many labels after many prompts at once, with torch on a CPU or a GPU."""
