"""What must not be in a candidate's files, and where it was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

What = Literal["question", "answer", "id", "unread"]

UNREAD = "could not be searched to its end"

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What a task asks, and its answer; "" where there is none.

    An answer that is a label, one of a few that many tasks share, is no secret.

    >>> Secret(text="Which metal is liquid at room temperature?", answer="mercury").answer
    'mercury'
    """

    text: str
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A task in the files of a candidate, never with the text itself; or a file too large to tell.

    In words it does not say which task of the sealed test it is, since proposers read why
    a candidate was refused.

    Args:
        path: The file; only the beginning, if the task is in the name of the file.
        line: Where in it the first trace of the task was found, from 1; 0 if it is in its name.
        task: The task's id; "" for what was not read.
        what: Its "question", its "answer", or its "id" as a text of its own. "unread" is a file
            that takes too much work to search, so that it may have any task in it.
        sealed: Whether it is a task of the sealed test.

    >>> print(Leak(path="harness.py", line=7, task="s2d-003", what="question"))
    harness.py, line 7: has the question of task 's2d-003'
    >>> print(Leak(path="data/Which me...", line=0, task="s2d-003", what="question"))
    data/Which me...: the name of the file has the question of task 's2d-003'
    >>> print(Leak(path="data.json", line=1, task="", what="unread"))
    data.json: could not be searched to its end
    """

    path: str
    line: int
    task: str
    what: What
    sealed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "path": self.path,
            "line": self.line,
            "task": self.task,
            "what": self.what,
            "sealed": self.sealed,
        }

    def __str__(self) -> str:
        if self.what == "unread":
            return f"{self.path}: {UNREAD}"
        task = "a task of the sealed test" if self.sealed else f"task {self.task!r}"
        where = f", line {self.line}:" if self.line else ": the name of the file"
        return f"{self.path}{where} has the {self.what} of {task}"


def summary(leaks: Sequence[Leak]) -> str:
    """Some leaks in one line, the first few of them in full.

    >>> summary([])
    ''
    """
    more = f"; and {len(leaks) - _SHOWN} more" if len(leaks) > _SHOWN else ""
    return "; ".join(map(str, leaks[:_SHOWN])) + more
