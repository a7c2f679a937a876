"""The built-in harnesses, the frame that is sent into the sandbox, and the briefing."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from statistics import median

from coevolve.benchmarks.harbor.task_folders import TaskFolder

_HERE = Path(__file__).parent


@cache
def built_in() -> Mapping[str, Path]:
    """The folders of the built-in harnesses, by name.

    >>> "terminus-2" in built_in()
    True
    """
    folders = sorted(path.parent for path in (_HERE / "harnesses").glob("*/harness.py"))
    return {folder.name.replace("_", "-"): folder for folder in folders}


@cache
def frame_source() -> str:
    """The source of the module around an agent in the sandbox."""
    return (_HERE / "inside" / "agent_frame.py").read_text(encoding="utf-8")


def agent_briefing(tasks: Iterable[TaskFolder], multiplier: float) -> str:
    """What a harness is, its interface and its rules; it names no task."""
    limits = sorted(task.agent_seconds * multiplier for task in tasks)
    words = {
        "TASKS": str(len(limits)),
        "SHORTEST": f"{limits[0]:g}",
        "MEDIAN": f"{median(limits):g}",
        "LONGEST": f"{limits[-1]:g}",
    }
    text = (_HERE / "agent_briefing.md").read_text(encoding="utf-8")
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
