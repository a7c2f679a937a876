"""89 tasks that a model solves or not, depending on the hints that a harness gives it."""

TASKS = [f"task-{number:02d}" for number in range(1, 90)]
FUNCTIONS = ["solve"]
BRIEFING = "A harness asks the model to solve a task, and tells it hints that may help or disturb."


def evaluate(harness, task):
    """Whether the model says that the task is solved."""
    return float(harness.call("solve", task) == "solved")
