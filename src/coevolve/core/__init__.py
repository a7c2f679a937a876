"""Selects tasks to evaluate and estimates scores from their outcomes. No LLM, no I/O."""
