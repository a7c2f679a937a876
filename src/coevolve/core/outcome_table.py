"""Outcomes of every candidate on every task and trial, and success rates over rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.core.identifiers import Id
from coevolve.core.pool import Pool
from coevolve.core.posterior import Cells
from coevolve.errors import ChangedOutcomeError, InputError, ScoreError, UnknownCandidateError

UNIT = 1 << 46
"""Sums of scores are integers in units of 2^-46, so they do not depend on the order."""

GROUPS = ("never", "sometimes", "mixed", "mostly", "unseen")
"""Solvability groups of the paper's Table `difficulty`; "unseen" tasks have no outcome yet."""

_EDGE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Success rate p̄_t and number of outcomes n_t of every task over some rounds.

    Each candidate counts once per task, with its mean over trials. p̄_t is NaN where n_t = 0.

    >>> from coevolve.core.outcome_table import OutcomeTable
    >>> table = OutcomeTable(2)
    >>> for name, scores in {"a": [1.0, 0.0], "b": [0.0, 0.0]}.items():
    ...     table.open(name, round=0)
    ...     table.add(name, np.arange(2), np.zeros(2, dtype=int), np.array(scores))
    >>> history = table.history()
    >>> history.mean.tolist(), history.count.tolist(), history.never_solved.tolist()
    ([0.5, 0.0], [2, 2], [False, True])
    """

    mean: Floats
    count: Indices

    @classmethod
    def from_sums(cls, sums: Indices, counts: Indices) -> Self:
        """History from sums of scores in units of 2^-46."""
        mean = np.full(len(sums), np.nan)
        np.divide(sums / UNIT, counts, out=mean, where=counts > 0)
        return cls(mean=mean, count=counts.copy())

    @property
    def never_solved(self) -> Bools:
        """Whether every observed outcome of the task is 0 (and there is one)."""
        return np.asarray(self.mean == 0)

    @property
    def anchors(self) -> Floats:
        """p̄_t; for a task without outcomes, the mean of the other tasks."""
        unseen = self.count == 0
        if not unseen.any():
            return self.mean
        others = 0.5 if unseen.all() else float(self.mean[~unseen].mean())
        return np.where(unseen, others, self.mean)

    def select(self, positions: Indices) -> "History":
        """The history of some of the tasks."""
        return History(mean=self.mean[positions], count=self.count[positions])

    def groups(self) -> dict[str, int]:
        """Number of tasks in each solvability group.

        never: p̄ = 0; sometimes: 0 < p̄ < 1/3; mixed: 1/3 <= p̄ <= 2/3; mostly: p̄ > 2/3.

        >>> History(mean=np.array([0, 0.2, 0.5, 1]), count=np.full(4, 5)).groups()
        {'never': 1, 'sometimes': 1, 'mixed': 1, 'mostly': 1, 'unseen': 0}
        """
        p = self.mean
        members = (
            p == 0,
            (p > 0) & (p < 1 / 3 - _EDGE),
            (p >= 1 / 3 - _EDGE) & (p <= 2 / 3 + _EDGE),
            p > 2 / 3 + _EDGE,
            self.count == 0,
        )
        return {name: int(m.sum()) for name, m in zip(GROUPS, members, strict=True)}


OBSERVED = 1 << 10
"""Trial numbers below are told, those from here on are of outcomes that were only observed."""

_TRIALS = 2 * OBSERVED
"""A key is task · 2^11 + trial."""


class OutcomeTable:
    """Candidate × task × trial → score, 16 bytes per outcome; NaN if it is missing.

    Candidates are known by name and tasks by position. An outcome is written once; adding it
    again is allowed if it is equal. Outcomes are told, or only observed; these count for `history`
    and `counted` alone. The history over all candidates is kept as running integer sums, so it
    does not depend on the order of the outcomes.

    Args:
        tasks: Number of tasks, N.

    >>> table = OutcomeTable(3)
    >>> table.open("start", round=0)
    >>> table.add("start", np.array([0, 1]), np.array([0, 0]), np.array([1.0, 0.0]))
    >>> table.history().mean.tolist(), len(table)
    ([1.0, 0.0, nan], 2)
    """

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self._columns: dict[Id, _Column] = {}
        self._sums = np.zeros(tasks, dtype=np.int64)
        self._counts = np.zeros(tasks, dtype=np.int64)

    def __len__(self) -> int:
        return sum(len(column) for column in self._columns.values())

    def __contains__(self, candidate: Id) -> bool:
        return candidate in self._columns

    @property
    def candidates(self) -> tuple[Id, ...]:
        """Names in the order in which they were opened."""
        return tuple(self._columns)

    def open(self, candidate: Id, *, round: int) -> None:
        """Add a new candidate of a round (0: the starting harnesses)."""
        if candidate in self._columns:
            raise InputError(f"candidate {candidate!r} is already in the table.")
        self._columns[candidate] = _Column(round)

    def move(self, candidate: Id, *, round: int) -> None:
        """Set the round of a candidate, which was only observed before it was proposed."""
        self._column(candidate).round = round

    def grow(self, tasks: int) -> None:
        """Add tasks at the end, up to this number."""
        more = (0, tasks - self.tasks)
        self._sums, self._counts = np.pad(self._sums, more), np.pad(self._counts, more)
        self.tasks = tasks

    def round_of(self, candidate: Id) -> int:
        """The round a candidate was proposed in."""
        return self._column(candidate).round

    def add(
        self,
        candidate: Id,
        tasks: Indices,
        trials: Indices,
        scores: Floats,
        *,
        observed: bool = False,
    ) -> None:
        """Record all outcomes or none; those already recorded must be equal.

        Args:
            candidate: An opened candidate.
            tasks: Positions of the tasks.
            trials: Trial numbers, in the order of `tasks`.
            scores: Scores in [0, 1], or NaN for missing, in the order of `tasks`.
            observed: Whether the outcomes were observed and not told.
        """
        column = self._column(candidate)
        self._check(tasks, trials, scores)
        first = OBSERVED if observed else 0
        keys, scores = _sorted(tasks, np.asarray(trials) + first, scores)
        known, before = column.find(keys)
        changed = known & ~_same(before, scores)
        if changed.any():
            at = int(np.argmax(changed))
            raise ChangedOutcomeError(
                f"candidate {candidate!r} has {before[at]} on task {keys[at] // _TRIALS}, trial "
                f"{keys[at] % OBSERVED}, and was given {scores[at]}; outcomes are never rewritten."
            )
        keys, scores = keys[~known], scores[~known]
        touched = np.unique(keys[~np.isnan(scores)] // _TRIALS)
        self._count(column, touched, -1)
        column.add(keys, scores)
        self._count(column, touched, +1)

    def find(
        self, candidate: Id, tasks: Indices, trials: Indices, *, observed: bool = False
    ) -> tuple[Bools, Floats]:
        """Which of the outcomes are recorded, and their scores."""
        first = OBSERVED if observed else 0
        return self._column(candidate).find(tasks * _TRIALS + trials + first)

    def means(
        self,
        candidate: Id,
        trials: Sequence[int] | None = None,
        failed: Sequence[tuple[int, int]] = (),
    ) -> tuple[Indices, Floats]:
        """Tasks a candidate has a score on, ascending, and its mean over trials on each.

        Args:
            candidate: An opened candidate.
            trials: The trial numbers that count; all that were told when left out.
            failed: Missing outcomes, as task and trial, that count as 0.
        """
        return self._column(candidate).counted(trials, failed)[:2]

    def counted(
        self, candidate: Id, failed: Sequence[tuple[int, int]] = ()
    ) -> tuple[Indices, Floats, Floats]:
        """As `means`, with the number of trials of each mean, and with observed outcomes."""
        return self._column(candidate).counted(None, failed, observed=True)

    def observed(self, candidate: Id) -> int:
        """Number of tasks with an observed outcome of a candidate."""
        return self._column(candidate).observed()

    def history(self, first: int = 0, last: int | None = None) -> History:
        """History of the tasks over the candidates of rounds `first` to `last`, both included."""
        if first <= 0 and last is None:
            return History.from_sums(self._sums, self._counts)
        sums, counts = np.zeros_like(self._sums), np.zeros_like(self._counts)
        for column in self._columns.values():
            if first <= column.round and (last is None or column.round <= last):
                tasks, means, _ = column.counted(observed=True)
                sums[tasks] += _units(means)
                counts[tasks] += 1
        return History.from_sums(sums, counts)

    def _column(self, candidate: Id) -> "_Column":
        try:
            return self._columns[candidate]
        except (KeyError, TypeError):
            raise UnknownCandidateError(f"candidate {candidate!r} is not in the table.") from None

    def _check(self, tasks: Indices, trials: Indices, scores: Floats) -> None:
        for name, values, end in (("task", tasks, self.tasks), ("trial", trials, OBSERVED)):
            wrong = (np.asarray(values) < 0) | (np.asarray(values) >= end)
            if wrong.any():
                bad = np.asarray(values)[wrong][0]
                raise InputError(f"{name} must be from 0 to {end - 1}, got {bad}.")
        scores = np.asarray(scores, dtype=np.float64)
        wrong = ~(np.isnan(scores) | ((scores >= 0) & (scores <= 1)))
        if wrong.any():
            raise ScoreError(f"scores must be in [0, 1] or NaN, got {scores[wrong][0]}.")

    def _count(self, column: "_Column", tasks: Indices, sign: int) -> None:
        """Add (or subtract) what a candidate contributes to the history of some tasks."""
        total, trials = np.zeros(len(tasks)), np.zeros(len(tasks), dtype=np.int64)
        for trial in sorted(column.trials):
            known, scores = column.find(tasks * _TRIALS + trial)
            scored = known & ~np.isnan(scores)
            total[scored] += scores[scored]
            trials += scored
        seen = trials > 0
        self._sums[tasks[seen]] += sign * _units(total[seen] / trials[seen])
        self._counts[tasks[seen]] += sign


@dataclass(slots=True)
class _Column:
    """Outcomes of one candidate, as sorted parts, each over twice as long as the next.

    Appending merges small parts into larger ones, so many small batches cost only a logarithmic
    factor more than a large one.
    """

    round: int
    trials: set[int] = field(default_factory=set)
    parts: list[tuple[Indices, Floats]] = field(default_factory=list)
    known: tuple[Indices, Floats, Floats] | None = None

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self.parts)

    def add(self, keys: Indices, scores: Floats) -> None:
        if not len(keys):
            return
        self.known = None
        self.trials.update(np.unique(keys % _TRIALS).tolist())
        while self.parts and len(self.parts[-1][0]) <= 2 * len(keys):
            other_keys, other_scores = self.parts.pop()
            keys, scores = (
                np.concatenate([other_keys, keys]),
                np.concatenate([other_scores, scores]),
            )
            order = np.argsort(keys, kind="stable")
            keys, scores = keys[order], scores[order]
        self.parts.append((keys, scores))

    def find(self, keys: Indices) -> tuple[Bools, Floats]:
        known, found = np.zeros(len(keys), dtype=np.bool_), np.full(len(keys), np.nan)
        for part, scores in self.parts:
            at = np.minimum(np.searchsorted(part, keys), len(part) - 1)
            here = part[at] == keys
            found[here] = scores[at[here]]
            known |= here
        return known, found

    def observed(self) -> int:
        if max(self.trials, default=0) < OBSERVED:
            return 0
        keys = np.concatenate([part for part, _ in self.parts])
        return len(np.unique(keys[keys % _TRIALS >= OBSERVED] // _TRIALS))

    def counted(
        self,
        trials: Sequence[int] | None = None,
        failed: Sequence[tuple[int, int]] = (),
        *,
        observed: bool = False,
    ) -> tuple[Indices, Floats, Floats]:
        if trials is not None and self.trials.issubset(trials):
            trials = None
        told_alone = not observed and max(self.trials, default=0) >= OBSERVED
        if trials is not None or failed or told_alone:
            return self._over(trials, failed, observed)
        if self.known is None:
            self.known = self._over(None, (), observed)
        return self.known

    def _over(
        self, trials: Sequence[int] | None, failed: Sequence[tuple[int, int]], observed: bool
    ) -> tuple[Indices, Floats, Floats]:
        """Tasks with a score in these trials, their means, and the numbers of trials."""
        if not self.parts:
            return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)
        keys = np.concatenate([part for part, _ in self.parts])
        scores = np.concatenate([scores for _, scores in self.parts])
        order = np.argsort(keys, kind="stable")
        keys, scores = keys[order], scores[order]
        if failed:
            scores[np.isin(keys, [task * _TRIALS + trial for task, trial in failed])] = 0.0
        scored = ~np.isnan(scores)
        if trials is not None:
            scored &= np.isin(keys % _TRIALS, np.asarray(trials))
        elif not observed:
            scored &= keys % _TRIALS < OBSERVED
        tasks, start, number = np.unique(
            keys[scored] // _TRIALS, return_index=True, return_counts=True
        )
        if not len(tasks):
            return tasks, np.empty(0), np.empty(0)
        return tasks, np.add.reduceat(scores[scored], start) / number, number.astype(np.float64)


def _sorted(tasks: Indices, trials: Indices, scores: Floats) -> tuple[Indices, Floats]:
    keys = np.asarray(tasks) * _TRIALS + np.asarray(trials)
    scores = np.asarray(scores, dtype=np.float64)
    order = np.argsort(keys, kind="stable")
    keys, scores = keys[order], scores[order]
    again = keys[1:] == keys[:-1]
    if again.any():
        if not _same(scores[1:][again], scores[:-1][again]).all():
            raise ChangedOutcomeError("one batch holds two different scores for the same trial.")
        first = np.concatenate([[True], ~again])
        keys, scores = keys[first], scores[first]
    return keys, scores


def _same(a: Floats, b: Floats) -> Bools:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _units(means: Floats) -> Indices:
    """Scores in integer units, rounded; a positive score is at least one unit."""
    units = np.rint(means * UNIT).astype(np.int64)
    return np.where(means > 0, np.maximum(units, 1), units)


def all_cells(
    table: OutcomeTable, pool: Pool, failed: Mapping[Id, Sequence[tuple[int, int]]] | None = None
) -> Cells:
    """Every candidate's mean score on every task it has a score on, and the number of trials.

    Args:
        table: The outcomes.
        pool: Its tasks.
        failed: Missing outcomes by candidate, as task and trial, that count as 0.

    >>> table = OutcomeTable(2)
    >>> table.open("a", round=0)
    >>> table.add("a", np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 0.0, np.nan]))
    >>> cells = all_cells(table, Pool(["x", "y"]))
    >>> cells.task.tolist(), cells.score.tolist(), cells.trials.tolist(), cells.shares.tolist()
    ([0], [0.5], [2.0], [0.5, 0.5])
    """
    nothing = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    zeros = failed or {}
    columns = [table.counted(name, zeros.get(name, ())) for name in table.candidates]
    tasks, scores, number = zip(*(columns or [nothing]), strict=True)
    shares = np.empty(len(pool))
    for name, weight in zip(pool.names, pool.weights, strict=True):
        members = pool.members(name)
        shares[members] = weight / len(members)
    sizes = np.array([len(column[0]) for column in columns], dtype=np.int64)
    return Cells(
        candidate=np.repeat(np.arange(len(columns)), sizes),
        task=np.concatenate(tasks),
        score=np.concatenate(scores),
        trials=np.concatenate(number),
        rounds=tuple(table.round_of(candidate) for candidate in table.candidates),
        shares=shares,
    )
