"""A wave: trials that are run together, and told together when the last is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from coevolve.core.assignment import Assignment
from coevolve.core.outcomes import Missing
from coevolve.core.results import Told
from coevolve.errors import EventError
from coevolve.search.budget import USAGE
from coevolve.search.trials import Cell, Split


class Row(NamedTuple):
    """One outcome: a score, or the reason why it is missing."""

    score: float | None
    reason: str
    usage: Sequence[float]
    trace: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The trials of one candidate; those of an assignment, or of a whole set of tasks."""

    candidate: str
    tasks: tuple[str, ...]
    trials: tuple[int, ...]
    assignment: Assignment | None = None

    def cells(self) -> Iterator[Cell]:
        """Every outcome the group waits for, in order."""
        for task in self.tasks:
            for trial in self.trials:
                yield Cell(self.candidate, task, trial)


@dataclass(slots=True, kw_only=True)
class Wave:
    """Trials that are told together, in this order, whatever order they end in.

    `open` maps the outcomes that are still waited for to the number of failed attempts.

    >>> group = Group(candidate="c1", tasks=("a", "b"), trials=(0,))
    >>> wave = Wave(kind="start", groups=(group,))
    >>> wave.take(Cell("c1", "b", 0), Row(1.0, "", (0, 0, 0, 0), None))
    >>> list(wave.open), wave.complete
    ([Cell(candidate='c1', task='a', trial=0)], False)
    """

    kind: Literal["start", "round", "test"]
    groups: tuple[Group, ...]
    open: dict[Cell, int] = field(init=False)
    done: dict[Cell, Row] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.open = {cell: 0 for group in self.groups for cell in group.cells()}

    @property
    def split(self) -> Split:
        return "test" if self.kind == "test" else "validation"

    @property
    def complete(self) -> bool:
        return not self.open

    @property
    def size(self) -> int:
        return len(self.open) + len(self.done)

    def take(self, cell: Cell, row: Row) -> None:
        """Record an outcome that was waited for."""
        if self.open.pop(cell, None) is None:
            raise EventError(f"it tells {tuple(cell)}, which was not asked or is already told.")
        self.done[cell] = row

    def failed(self, cell: Cell, attempt: int) -> None:
        """Count a failed attempt at an outcome that is still waited for."""
        if self.open.get(cell) != attempt:
            raise EventError(f"attempt {attempt} at {tuple(cell)} is out of order.")
        self.open[cell] = attempt + 1

    def reopen(self) -> bool:
        """Run once more what is missing of candidates with under half of their scores.

        Only starting harnesses need it: rounds are drawn again by the selector.
        """
        for group in self.groups:
            cells = list(group.cells())
            missing = [cell for cell in cells if self.done[cell].score is None]
            if 2 * len(missing) > len(cells) and group.candidate not in self.again:
                self.again.add(group.candidate)
                for cell in missing:
                    del self.done[cell]
                    self.open[cell] = 0
        return bool(self.open)

    def told(self, group: Group, *, rest: str = "") -> Told:
        """The outcomes of a group as the selector takes them.

        What is still open is left out, or is missing for the reason `rest`.
        """
        told = Told(tasks=[], trials=[], scores=[], missing={}, usage={}, traces={})
        for cell in group.cells():
            row = self.done.get(cell)
            if row is None:
                if rest:
                    told.append(cell.task, cell.trial, Missing(rest))
                continue
            at = str(len(told.tasks))
            if row.score is None:
                told.missing[at] = row.reason
            told.tasks.append(cell.task)
            told.trials.append(cell.trial)
            told.scores.append(row.score)
            told.usage[at] = dict(zip(USAGE, row.usage, strict=True))
            if row.trace is not None:
                told.traces[at] = row.trace
        return told


def row_of(event: dict[str, Any]) -> Row:
    """The outcome an event records."""
    fault = event.get("fault")
    reason = "" if fault is None else f"{fault['kind']}: {fault['reason']}"
    return Row(event["score"], reason, event["usage"], event.get("trace"))
