"""A wave: trials that are run together, and told together when the last is done."""

from dataclasses import dataclass, field
from typing import Literal

from coevolve.core.assignment import Assignment
from coevolve.core.outcomes import Missing
from coevolve.core.results import Told
from coevolve.errors import EventError
from coevolve.search.trials import Cell, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The trials of one candidate; those of an assignment, or of a whole set of tasks."""

    candidate: str
    tasks: tuple[str, ...]
    trials: tuple[int, ...]
    assignment: Assignment | None = None

    def cells(self) -> list[Cell]:
        """Every outcome the group waits for, in order."""
        return [Cell(self.candidate, task, trial) for task in self.tasks for trial in self.trials]


@dataclass(slots=True, kw_only=True)
class Wave:
    """Trials that are told together, in this order, whatever order they end in.

    `open` maps the outcomes that are still waited for to the number of failed attempts, `done`
    the others to their scores. What they consumed and their traces are in the journal alone.

    >>> group = Group(candidate="c1", tasks=("a", "b"), trials=(0,))
    >>> wave = Wave(kind="start", groups=(group,))
    >>> wave.take(Cell("c1", "b", 0), 1.0)
    >>> list(wave.open), wave.complete
    ([Cell(candidate='c1', task='a', trial=0)], False)
    """

    kind: Literal["start", "round", "test"]
    groups: tuple[Group, ...]
    cells: dict[str, list[Cell]] = field(init=False)
    open: dict[Cell, int] = field(init=False)
    done: dict[Cell, float | Missing] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cells = {group.candidate: group.cells() for group in self.groups}
        self.open = {cell: 0 for cells in self.cells.values() for cell in cells}

    @property
    def split(self) -> Split:
        return "test" if self.kind == "test" else "validation"

    @property
    def complete(self) -> bool:
        return not self.open

    @property
    def size(self) -> int:
        return len(self.open) + len(self.done)

    def take(self, cell: Cell, score: float | Missing) -> None:
        """Record an outcome that was waited for."""
        if self.open.pop(cell, None) is None:
            raise EventError(f"it tells {tuple(cell)}, which was not asked or is already told.")
        self.done[cell] = score

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
            cells = self.cells[group.candidate]
            missing = [cell for cell in cells if isinstance(self.done[cell], Missing)]
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
        cells = self.cells[group.candidate]
        done: dict[Cell, float | Missing] = self.done
        if self.open and rest:
            done = {**dict.fromkeys(cells, Missing(rest)), **done}
        elif self.open:
            cells = [cell for cell in cells if cell in done]
        found = [done[cell] for cell in cells]
        return Told(
            tasks=[cell.task for cell in cells],
            trials=[cell.trial for cell in cells],
            scores=[None if isinstance(score, Missing) else score for score in found],
            missing={str(n): s.reason for n, s in enumerate(found) if isinstance(s, Missing)},
            usage={},
            traces={},
        )
