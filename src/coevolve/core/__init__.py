"""Tasks and outcomes: what to evaluate next, and what the outcomes say. No LLM, no I/O."""
