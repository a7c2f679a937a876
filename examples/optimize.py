"""A whole search from Python in ten lines: offline, and done in a second.

It searches for a prompt. Each question needs one piece of advice in the prompt. The script knows
which one, so it needs no model.
"""

import coevolve

advice = ["Show your work.", "Check units.", "Round to cents.", "Answer in JSON.", "Cite sources."]
tasks = {f"question-{n}": advice[n % 5] for n in range(100)}


def evaluate(candidate, task):  # run your prompt or harness here: 0 is bad, 1 is good
    return task in candidate.text


def propose(view):  # ask a language model or a coding agent here
    return f"{view.text()} {advice[view.round % 5]}"


starts = {"short": "Answer.", "units": "Answer. Check units."}
result = coevolve.optimize(tasks, starts, evaluate, propose, rounds=6, seed=3)
print(result.report(), result.best.text, sep="\n\n")
