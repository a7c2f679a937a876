"""Terminal-Bench and other Harbor tasks."""
