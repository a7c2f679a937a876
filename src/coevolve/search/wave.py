"""A wave: trials that run together and are told together, and their totals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal, Self

from coevolve.core.assignment import Assignment
from coevolve.core.events import Event
from coevolve.core.outcomes import Missing, Told
from coevolve.core.pool import Pool
from coevolve.errors import EventError, titled
from coevolve.search.budget import Ledger
from coevolve.search.trials import Cell, Split


@dataclass(slots=True, kw_only=True)
class Durations:
    """Seconds per trial of each task.

    A task that was never run is expected to take as long as its cost says, or as the average.

    >>> durations = Durations.of(Pool(["a", "b"]))
    >>> durations.add("a", 4.0)
    >>> durations.add("a", 6.0)
    >>> durations.expected("a"), durations.expected("b")
    (5.0, 5.0)
    """

    costs: dict[str, float] = field(default_factory=dict)
    sums: dict[str, list[float]] = field(default_factory=dict)
    total: float = 0.0
    trials: int = 0

    @classmethod
    def of(cls, pool: Pool) -> Self:
        """Before any trial: costs relative to their mean, where the pool has costs."""
        if pool.costs is None:
            return cls()
        relative = (pool.costs / float(pool.costs.mean())).tolist()
        return cls(costs=dict(zip(pool.tasks, relative, strict=True)))

    def add(self, task: str, seconds: float, trials: int = 1) -> None:
        """Count trials of a task that took this long together."""
        known = self.sums.setdefault(task, [0.0, 0])
        known[0] += seconds
        known[1] += trials
        self.total += seconds
        self.trials += trials

    def add_all(self, sums: Mapping[str, Iterable[Any]]) -> None:
        """Add the `sums` of other durations."""
        for task, (seconds, trials) in sums.items():
            self.add(task, seconds, trials)

    def expected(self, task: str) -> float:
        """Expected seconds of a trial of a task."""
        if task in self.sums:
            seconds, trials = self.sums[task]
            return seconds / trials
        mean = self.total / self.trials if self.trials else 1.0
        return mean * self.costs.get(task, 1.0)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What trials consumed, how long they took, and what went wrong.

    `failures` counts faults by kind; `zeros` and `missing` count, by candidate, the trials that
    scored 0 because of a fault and those without a score.

    >>> tally = Tally()
    >>> tally.outcome({"candidate": "c1", "task": "a", "score": 1.0, "usage": [9, 1, 0.0, 2.5]})
    1.0
    >>> tally.ledger.trials, tally.durations.expected("a")
    (1, 2.5)
    """

    ledger: Ledger = field(default_factory=Ledger)
    durations: Durations = field(default_factory=Durations)
    failures: dict[str, int] = field(default_factory=dict)
    zeros: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def outcome(self, event: Event) -> float | Missing:
        """Count an outcome, and return its score or why it is missing."""
        usage, score = event["usage"], event["score"]
        self.ledger.spend(usage, trials=1)
        self.durations.add(event["task"], usage[-1])
        if (fault := event.get("fault")) is None:
            return float(score)
        _count(self.failures, fault["kind"], 1)
        _count(self.missing if score is None else self.zeros, event["candidate"], 1)
        if score is not None:
            return float(score)
        shared = fault.get("shared", True)  # only unexplained faults have the key
        return Missing(titled(fault["kind"], fault["reason"]), shared=shared)

    def failed(self, event: Event) -> None:
        """Count an attempt that is repeated."""
        self.ledger.spend(event["usage"], failed_attempts=1)

    def forgive(self, candidate: str, count: int) -> None:
        """Do not count missing outcomes that are run once more."""
        _count(self.missing, candidate, -count)
        if not self.missing[candidate]:
            del self.missing[candidate]

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        self.ledger.add(other.ledger)
        self.durations.add_all(other.durations.sums)
        for name in ("failures", "zeros", "missing"):
            for key, count in getattr(other, name).items():
                _count(getattr(self, name), key, count)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        most = {"tokens": self.ledger.most_tokens, "dollars": self.ledger.most_dollars}
        return {
            "ledger": self.ledger.sums(),
            "pace": {**most, "sums": self.durations.sums},
            "failures": self.failures,
            "zeros": self.zeros,
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The tally `to_json` described."""
        pace = data["pace"]
        most = {"most_tokens": pace["tokens"], "most_dollars": pace["dollars"]}
        tally = cls(
            ledger=Ledger(**data["ledger"], **most),
            failures=dict(data["failures"]),
            zeros=dict(data["zeros"]),
            missing=dict(data["missing"]),
        )
        tally.durations.add_all(pace["sums"])
        return tally


def _count(counts: dict[str, int], key: str, count: int) -> None:
    counts[key] = counts.get(key, 0) + count


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The trials of one candidate: of an assignment, or on every task of a pool."""

    candidate: str
    tasks: tuple[str, ...]
    trials: tuple[int, ...]
    assignment: Assignment | None = None

    def cells(self) -> list[Cell]:
        """Every outcome of the group, in order."""
        tasks = [task for task in self.tasks for _ in self.trials]
        rows = zip(repeat(self.candidate), tasks, self.trials * len(self.tasks), strict=False)
        # There may be millions, and this makes tuples without a call for each.
        return list(map(tuple.__new__, repeat(Cell), rows))


@dataclass(slots=True, kw_only=True)
class Wave:
    """Trials that are told together, in this order, even if they end in another.

    `open` maps the outcomes that are missing so far to the number of failed attempts, `done` the
    others to their scores. `parts` are the tasks of each pool, where whole pools are run. `again`
    names the candidates that were run once more, and `reopened_at` is the number of the last event
    "reopened". `earlier` counts the outcomes of the wave that this one continues, and those that
    were given.

    A `rolling` wave belongs to a search without rounds: trials are added while others run, and it
    is told several times. What was told leaves it.

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
    rolling: bool = False

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
        """Trials in all; those of a candidate under way also if they were told."""
        if self.rolling:
            return sum(len(group.tasks) * len(group.trials) for group in self.groups)
        return len(self.open) + len(self.done)

    @property
    def recorded(self) -> int:
        """Trials with an outcome."""
        return self.size - len(self.open)

    @property
    def under_way(self) -> set[str]:
        """Candidates with open trials."""
        return {cell.candidate for cell in self.open}

    def progress(self, candidate: str) -> tuple[int, int]:
        """Outcomes and trials in all of a candidate's draw under way."""
        groups = [group for group in self.groups if group.candidate == candidate]
        asked = sum(len(group.tasks) * len(group.trials) for group in groups)
        return asked - sum(cell.candidate == candidate for cell in self.open), asked

    @property
    def has_news(self) -> bool:
        """Whether some candidate has its last outcome, and it was not told."""
        return len(self.under_way) < len(self.cells)

    @property
    def untouched(self) -> bool:
        """Whether no event of the wave itself was applied yet."""
        return len(self.done) == self.earlier and not self.tally.ledger.failed_attempts

    def take(self, event: Event) -> None:
        """Record an outcome that is still open."""
        cell = Cell(event["candidate"], event["task"], event["trial"])
        if self.open.pop(cell, None) is None:
            raise EventError(f"the outcome of {tuple(cell)} is not asked for, or already known.")
        self.done[cell] = self.tally.outcome(event)

    def give(self, outcomes: Mapping[Cell, float]) -> None:
        """Use known outcomes for trials that are still open; they cost nothing."""
        for cell, score in outcomes.items():
            if self.open.pop(cell, None) is not None:
                self.done[cell] = score
                self.earlier += 1

    def failed(self, event: Event) -> None:
        """Record a failed attempt at an outcome that is still open."""
        cell, attempt = Cell(event["candidate"], event["task"], event["trial"]), event["attempt"]
        if self.open.get(cell) != attempt:
            raise EventError(f"attempt {attempt} at {tuple(cell)} is out of order.")
        self.open[cell] = attempt + 1
        self.tally.failed(event)

    def reopen(self, candidates: Iterable[str], seq: int) -> None:
        """Run the missing outcomes of some candidates once more, as event number `seq` says."""
        self.reopened_at = seq
        for name in candidates:
            self.again.add(name)
            if missing := self._missing(name):
                self.tally.forgive(name, len(missing))
            for cell in missing:
                del self.done[cell]
                self.open[cell] = 0

    def add(self, groups: Sequence[Group]) -> None:
        """Add trials of candidates that have no open ones."""
        for group in groups:
            if group.candidate in self.cells:
                raise EventError(f"candidate {group.candidate!r} has trials that were not told.")
            self.cells[group.candidate] = group.cells()
            self.open |= dict.fromkeys(self.cells[group.candidate], 0)
        self.groups += tuple(groups)

    def advance(self) -> None:
        """Drop the outcomes, which were told; the open trials stay."""
        left = {name: [c for c in cells if c in self.open] for name, cells in self.cells.items()}
        self.cells = {name: cells for name, cells in left.items() if cells}
        self.groups = tuple(group for group in self.groups if group.candidate in self.cells)
        self.done, self.tally = {}, Tally()

    def continued(self) -> "Wave":
        """A wave for the trials that are still open; the outcomes so far are kept."""
        if self.rolling:
            self.open = dict.fromkeys(self.open, 0)
            return self
        wave = Wave(kind=self.kind, groups=self.groups, parts=self.parts)
        wave.keep(self.done)
        return wave

    def keep(self, outcomes: Mapping[Cell, float | Missing]) -> None:
        """Take over outcomes of an earlier wave, before any other event of this one."""
        for cell, score in outcomes.items():
            del self.open[cell]
            self.done[cell] = score
        self.earlier = len(self.done)

    def to_json(self) -> dict[str, Any]:
        """All outcomes as plain JSON: scores in order, null where there is none."""
        scores: dict[str, list[float | None]] = {}
        missing: dict[str, dict[str, str]] = {}
        unexplained: dict[str, list[int]] = {}
        for name, cells in self.cells.items():
            found = [self.done.get(cell) for cell in cells]
            scores[name] = [None if isinstance(score, Missing) else score for score in found]
            gaps = {str(n): s.reason for n, s in enumerate(found) if isinstance(s, Missing)}
            missing |= {name: gaps} if gaps else {}
            lost = [n for n, s in enumerate(found) if isinstance(s, Missing) and not s.shared]
            unexplained |= {name: lost} if lost else {}
        plain = {"scores": scores, "missing": missing, "tally": self.tally.to_json()}
        plain |= {"unexplained": unexplained} if unexplained else {}
        attempts = self._attempts() if self.rolling else {}
        return plain | ({"attempts": attempts} if attempts else {})

    def _attempts(self) -> dict[str, dict[str, int]]:
        """Failed attempts at open trials, by candidate and place."""
        found: dict[str, dict[str, int]] = {}
        for name, cells in self.cells.items():
            for at, cell in enumerate(cells):
                if failed := self.open.get(cell):
                    found.setdefault(name, {})[str(at)] = failed
        return found

    def restore(self, data: Mapping[str, Any]) -> None:
        """Record at once the outcomes that `to_json` described."""
        if not self.untouched or data["scores"].keys() != self.cells.keys():
            raise EventError("its candidates are not those of the wave.")
        self.open = {}
        for name, scores in data["scores"].items():
            cells, reasons = self.cells[name], data["missing"].get(name, {})
            lost = data.get("unexplained", {}).get(name, ())
            attempts = data.get("attempts", {}).get(name, {})
            self.done.update(zip(cells, scores, strict=True))
            if None not in scores:
                continue
            for at, score in enumerate(scores):
                if score is None and str(at) in reasons:
                    self.done[cells[at]] = Missing(reasons[str(at)], shared=at not in lost)
                elif score is None:
                    self.open[cells[at]] = attempts.get(str(at), 0)
                    del self.done[cells[at]]
        self.tally = Tally.from_json(data["tally"])

    def told(self, group: Group, *, rest: str = "") -> Told:
        """The outcomes of a group as the selector takes them.

        Open outcomes are left out, or are missing for the reason `rest`.
        """
        cells = self.cells[group.candidate]
        done: dict[Cell, float | Missing] = self.done
        if self.open and rest:
            done = {**dict.fromkeys(cells, Missing(rest, shared=True)), **done}
        elif self.open:
            cells = [cell for cell in cells if cell in done]
        scores: list[Any] = [done[cell] for cell in cells]
        gaps = {str(n): s for n, s in enumerate(scores) if s.__class__ is Missing}
        for at in gaps:
            scores[int(at)] = None
        return Told(
            tasks=[cell[1] for cell in cells],
            trials=[cell[2] for cell in cells],
            scores=scores,
            missing={at: gap.reason for at, gap in gaps.items()},
            usage={},
            traces={},
            unexplained=[at for at, gap in gaps.items() if not gap.shared],
        )

    def bare(self) -> list[str]:
        """Candidates without any score in some pool, of which nothing can be estimated."""
        scored = {
            name: {cell.task for cell in cells if isinstance(self.done.get(cell), float)}
            for name, cells in self.cells.items()
        }
        return [n for n in scored if any(part.isdisjoint(scored[n]) for part in self.parts)]

    def thin(self) -> list[str]:
        """Candidates with under half of their scores, or without any score in some pool."""
        bare = self.bare()
        return [
            name
            for name, cells in self.cells.items()
            if name in bare or 2 * len(self._missing(name)) > len(cells)
        ]

    def why_missing(self, name: str) -> str:
        """The reason of one of a candidate's missing outcomes."""
        found = (self.done[cell] for cell in self._missing(name))
        return next((score.reason for score in found if isinstance(score, Missing)), "")

    def _missing(self, name: str) -> list[Cell]:
        return [cell for cell in self.cells[name] if isinstance(self.done.get(cell), Missing)]
