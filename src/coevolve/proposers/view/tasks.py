"""The tasks of a view and how often each was solved, as a page."""

from collections.abc import Iterator

from coevolve.proposers.view.pages import code, plural
from coevolve.proposers.view.query.source import Row

_MOST = 60


def tasks_page(index: Row) -> str:
    """`tasks.md`: which tasks tell candidates apart, which nobody solves, which everybody does."""
    return "\n".join(_lines(index["tasks"]))


def groups(tasks: list[Row]) -> dict[str, list[Row]]:
    """Tasks by what earlier candidates made of them, the most telling first."""
    tried = [task for task in tasks if task["mean"] is not None]
    mixed = [task for task in tried if 0 < task["mean"] < 1]
    return {
        "mixed": sorted(mixed, key=lambda task: abs(task["mean"] - 0.5)),
        "never": sorted(
            (task for task in tried if task["mean"] == 0),
            key=lambda task: -int(task["candidates"]),
        ),
        "always": [task for task in tried if task["mean"] == 1],
        "untried": [task for task in tasks if task["mean"] is None],
    }


def _lines(tasks: list[Row]) -> Iterator[str]:
    found = groups(tasks)
    yield "# Tasks"
    yield ""
    yield (
        "The mean score of each task over the candidates that were tried on it, and how many "
        "these were. A mean over two candidates says little. `tasks.json` has the same in full."
    )
    pages = {
        "mixed": "Some solve them: here candidates differ, and contrasting traces teach most",
        "never": "Nobody solved them yet",
        "always": "Everybody solved them: a new candidate should, too",
        "untried": "Not tried yet",
    }
    for name, heading in pages.items():
        if found[name]:
            yield from ("", f"## {heading}", "", f"{plural(len(found[name]), 'task')}.", "")
            yield from _listed(found[name])


def _listed(tasks: list[Row]) -> Iterator[str]:
    pools = any(task["pool"] for task in tasks)
    yield f"| task |{' pool |' if pools else ''} mean | candidates |"
    yield f"|---|{'---|' if pools else ''}---|---|"
    for task in tasks[:_MOST]:
        mean = "-" if task["mean"] is None else f"{task['mean']:.2f}"
        pool = f" {code(task['pool'])} |" if pools else ""
        yield f"| {code(task['task'])} |{pool} {mean} | {task['candidates']} |"
    if len(tasks) > _MOST:
        yield ""
        yield f"{len(tasks) - _MOST} more: `coevolve query tasks`."
