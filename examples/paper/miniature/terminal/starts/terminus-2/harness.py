"""Asks the model to solve a task, with some hints."""

import coevolve_host

HINTS = []


def solve(task):
    """What the model says at the end."""
    prompt = f"Solve {task}.\nHints: {', '.join(HINTS)}"
    return coevolve_host.ask("model", prompt=prompt, max_tokens=20)["text"]
