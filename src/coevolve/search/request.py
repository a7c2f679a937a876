"""Evaluations that the operator requested, apart from the search."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from coevolve.core.events import Event
from coevolve.core.outcomes import Missing
from coevolve.search.budget import Ledger
from coevolve.search.trials import Cell
from coevolve.search.wave import Group, Wave


@dataclass(slots=True, kw_only=True)
class Requested:
    """The requested outcomes of one split: those that are known, and those that are open.

    `costs` has the cost of each outcome, with its failed attempts. `told` names the candidates
    that were told in full. A missing outcome is open again once it is requested again; `lost`
    keeps its first reason.

    >>> requested = Requested(split="rescore")
    >>> requested.add(["c1"], ("a", "b"), trials=1)
    >>> requested.take(
    ...     {"candidate": "c1", "task": "b", "trial": 0, "score": 1, "usage": [9] * 4}
    ... ).task
    'b'
    >>> [cell.task for cell in requested.wave.open], requested.cost(["c1"]).tokens
    (['a'], 18)
    """

    split: Literal["rescore", "test"]
    wave: Wave = field(init=False)
    costs: dict[Cell, Ledger] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    lost: dict[Cell, Missing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wave = Wave(kind=self.split, groups=())

    def add(self, candidates: Iterable[str], tasks: Sequence[str], trials: int) -> None:
        """Request every outcome of some candidates that has no score yet."""
        wave = self.wave
        for name in candidates:
            wave.cells.setdefault(name, [])
            for cell in cells_of(name, tasks, trials):
                if isinstance(wave.done.get(cell), Missing):
                    del wave.done[cell]
                    wave.tally.forgive(name, 1)
                    wave.open[cell] = 0
                elif cell not in wave.done and cell not in wave.open:
                    wave.cells[name].append(cell)
                    wave.open[cell] = 0

    def take(self, event: Event) -> Cell:
        """Record an outcome that is still open."""
        wave, cell = self.wave, Cell(event["candidate"], event["task"], event["trial"])
        wave.take(event)
        self._spend(cell, event, trials=1)
        score = wave.done[cell]
        if isinstance(score, Missing):
            wave.done[cell] = self.lost.setdefault(cell, score)
        return cell

    def failed(self, event: Event) -> None:
        """Record a failed attempt at an outcome that is still open."""
        self.wave.failed(event)
        cell = Cell(event["candidate"], event["task"], event["trial"])
        self._spend(cell, event, failed_attempts=1)

    def _spend(self, cell: Cell, event: Event, **counts: int) -> None:
        self.costs.setdefault(cell, Ledger()).spend(event["usage"], **counts)

    def group(self, name: str, tasks: Sequence[str], trials: int) -> Group | None:
        """The whole evaluation of a candidate; None while an outcome of it is open."""
        known = all(cell in self.wave.done for cell in cells_of(name, tasks, trials))
        if not known:
            return None
        return Group(candidate=name, tasks=tuple(tasks), trials=tuple(range(trials)))

    def cost(self, names: Iterable[str]) -> Ledger:
        """What the outcomes of some candidates cost."""
        wanted, total = set(names), Ledger()
        for cell, spent in self.costs.items():
            if cell.candidate in wanted:
                total.add(spent)
        return total


def cells_of(candidate: str, tasks: Sequence[str], trials: int) -> list[Cell]:
    """The outcomes of a candidate on some tasks."""
    return Group(candidate=candidate, tasks=tuple(tasks), trials=tuple(range(trials))).cells()
