"""A wave: trials that are run together, and told together when the last is done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

from coevolve.core.assignment import Assignment
from coevolve.core.events import Event
from coevolve.core.outcomes import Missing, Told
from coevolve.errors import EventError
from coevolve.search.trials import Cell, Split, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The trials of one candidate; those of an assignment, or of a whole set of tasks."""

    candidate: str
    tasks: tuple[str, ...]
    trials: tuple[int, ...]
    assignment: Assignment | None = None

    def cells(self) -> list[Cell]:
        """Every outcome the group waits for, in order."""
        tasks = [task for task in self.tasks for _ in self.trials]
        rows = zip(repeat(self.candidate), tasks, self.trials * len(self.tasks), strict=False)
        # There may be millions, and this is how tuples are made without a call each.
        return list(map(tuple.__new__, repeat(Cell), rows))


@dataclass(slots=True, kw_only=True)
class Wave:
    """Trials that are told together, in this order, whatever order they end in.

    `open` maps the outcomes that are still waited for to the number of failed attempts, `done`
    the others to their scores; `tally` sums up what they consumed and what went wrong. `parts`
    are the tasks of each pool, where whole pools are run; `again` names who was run once more, and
    `reopened_at` is the number of the event that last said so.
    `earlier` counts the outcomes it began with: those of the wave that it continues.

    >>> group = Group(candidate="c1", tasks=("a", "b"), trials=(0,))
    >>> wave = Wave(kind="start", groups=(group,))
    >>> wave.take({"candidate": "c1", "task": "b", "trial": 0, "score": 1, "usage": [0] * 4})
    >>> list(wave.open), wave.complete
    ([Cell(candidate='c1', task='a', trial=0)], False)
    """

    kind: Literal["start", "round", "rescore", "test"]
    groups: tuple[Group, ...]
    parts: tuple[frozenset[str], ...] = ()
    cells: dict[str, list[Cell]] = field(init=False)
    open: dict[Cell, int] = field(init=False)
    done: dict[Cell, float | Missing] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    again: set[str] = field(default_factory=set)
    earlier: int = 0
    reopened_at: int = -1

    def __post_init__(self) -> None:
        self.cells = {group.candidate: group.cells() for group in self.groups}
        self.open = {cell: 0 for cells in self.cells.values() for cell in cells}

    @property
    def split(self) -> Split:
        return self.kind if self.kind in ("rescore", "test") else "validation"

    @property
    def complete(self) -> bool:
        return not self.open

    @property
    def size(self) -> int:
        return len(self.open) + len(self.done)

    def take(self, event: Event) -> None:
        """Take in an outcome that was waited for."""
        cell = Cell(event["candidate"], event["task"], event["trial"])
        if self.open.pop(cell, None) is None:
            raise EventError(f"it tells {tuple(cell)}, which was not asked or is already told.")
        self.done[cell] = self.tally.outcome(event)

    def failed(self, event: Event) -> None:
        """Take in a failed attempt at an outcome that is still waited for."""
        cell, attempt = Cell(event["candidate"], event["task"], event["trial"]), event["attempt"]
        if self.open.get(cell) != attempt:
            raise EventError(f"attempt {attempt} at {tuple(cell)} is out of order.")
        self.open[cell] = attempt + 1
        self.tally.failed(event)

    def to_json(self) -> dict[str, Any]:
        """What it came to, as plain JSON: scores in order, null where there is none."""
        scores: dict[str, list[float | None]] = {}
        missing: dict[str, dict[str, str]] = {}
        for name, cells in self.cells.items():
            found = [self.done.get(cell) for cell in cells]
            scores[name] = [None if isinstance(score, Missing) else score for score in found]
            gaps = {str(n): s.reason for n, s in enumerate(found) if isinstance(s, Missing)}
            missing |= {name: gaps} if gaps else {}
        return {"scores": scores, "missing": missing, "tally": self.tally.to_json()}

    @property
    def untouched(self) -> bool:
        """Whether no event of the wave itself was taken in yet."""
        return len(self.done) == self.earlier and not self.tally.ledger.failed_attempts

    def continued(self) -> "Wave":
        """A wave for the trials that are still open; the outcomes so far are kept."""
        wave = Wave(kind=self.kind, groups=self.groups, parts=self.parts)
        wave.done, wave.earlier = dict(self.done), len(self.done)
        wave.open = dict.fromkeys(self.open, 0)
        return wave

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take in at once what `to_json` said, in place of every single outcome."""
        if not self.untouched or data["scores"].keys() != self.cells.keys():
            raise EventError("it does not tell of the trials that were asked.")
        self.open = {}
        for name, scores in data["scores"].items():
            cells, reasons = self.cells[name], data["missing"].get(name, {})
            self.done.update(zip(cells, scores, strict=True))
            gaps = (
                [at for at, score in enumerate(scores) if score is None] if None in scores else []
            )
            for at in gaps:
                if str(at) in reasons:
                    self.done[cells[at]] = Missing(reasons[str(at)])
                else:
                    self.open[cells[at]] = 0
                    del self.done[cells[at]]
        self.tally = Tally.from_json(data["tally"])

    def thin(self) -> list[str]:
        """Candidates of which under half is scored, or nothing of some pool."""
        missing = {name: self._missing(name) for name in self.cells}
        bare = self.bare()
        return [n for n, m in missing.items() if n in bare or 2 * len(m) > len(self.cells[n])]

    def bare(self) -> list[str]:
        """Candidates without any score in some pool, so that nothing can be said of them."""
        scored = {
            name: {cell.task for cell in cells if isinstance(self.done.get(cell), float)}
            for name, cells in self.cells.items()
        }
        return [n for n in scored if any(part.isdisjoint(scored[n]) for part in self.parts)]

    def why_missing(self, name: str) -> str:
        """The reason of one of a candidate's missing outcomes."""
        found = (self.done[cell] for cell in self._missing(name))
        return next((score.reason for score in found if isinstance(score, Missing)), "")

    def reopen(self, candidates: Iterable[str], seq: int) -> None:
        """Wait once more for what is missing of some candidates, as event number `seq` says."""
        self.reopened_at = seq
        for name in candidates:
            missing = self._missing(name)
            self.again.add(name)
            if missing:
                self.tally.forgive(name, len(missing))
            for cell in missing:
                del self.done[cell]
                self.open[cell] = 0

    def _missing(self, name: str) -> list[Cell]:
        return [cell for cell in self.cells[name] if isinstance(self.done.get(cell), Missing)]

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
        scores: list[Any] = [done[cell] for cell in cells]
        missing = {str(n): s.reason for n, s in enumerate(scores) if s.__class__ is Missing}
        for at in missing:
            scores[int(at)] = None
        return Told(
            tasks=[cell[1] for cell in cells],
            trials=[cell[2] for cell in cells],
            scores=scores,
            missing=missing,
            usage={},
            traces={},
        )
