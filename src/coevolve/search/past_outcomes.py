"""Past outcomes in a run: which stand for Phase 0, and which only inform the model."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.outcomes import Told
from coevolve.core.pool import Pool
from coevolve.errors import HistoryError, StateError, nearest
from coevolve.past_results.result_rows import MOST_TRIALS, PastResults
from coevolve.search.trials import Cell

_SKIP = "use `coevolve import --skip-unknown` (in Python: skip_unknown=True)"

PREFIX = "past:"
"""Begins the names of past candidates: a new candidate with the same name is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import of past results, as its event records it.

    Args:
        file: The name of the file or folder.
        hash: Hash of its contents.
        format: Its format, such as "csv".
        rows: Number of rows, of all kinds.
        phase_0: Outcomes that stand for trials of Phase 0.
        observed: Outcomes that inform the history of the tasks and the joint model.
        unscored: Rows without a score.
        known: Outcomes that an earlier import has.
        left_out: Rows of other splits or of unknown tasks.
        event: The number of the event.
    """

    file: str
    hash: str
    format: str
    rows: int
    phase_0: int
    observed: int
    unscored: int
    known: int
    left_out: int
    event: int = -1

    @classmethod
    def of_event(cls, event: Mapping[str, Any]) -> Self:
        """The import that an event "imported" records."""
        plain = ("file", "hash", "format", "rows", "unscored", "known", "left_out")
        return cls(
            **{name: event[name] for name in plain},
            phase_0=given_outcomes(event),
            observed=_count(event["observed"]),
            event=event["seq"],
        )


def given_outcomes(event: Mapping[str, Any]) -> int:
    """How many trials of Phase 0 an event "imported" stands for."""
    return _count(event["phase_0"])


def _count(columns: Mapping[str, Any]) -> int:
    return sum(len(column["scores"]) for column in columns.values())


@dataclass(slots=True)
class PastOutcomes:
    """The past outcomes of a run.

    `given` are those that stand for trials of Phase 0; `seen` has all others by candidate, as
    sorted keys (task · 1024 + trial) and their scores. `waiting` are outcomes that were imported
    after the end of the run; the selector observes them when the run is extended.
    """

    imports: list[Import] = field(default_factory=list)
    given: dict[Cell, float] = field(default_factory=dict)
    seen: dict[str, tuple[Indices, Floats]] = field(default_factory=dict)
    waiting: list[tuple[str, Told]] = field(default_factory=list)

    def imported(self, digest: str) -> Import | None:
        """The earlier import of the same contents."""
        return next((one for one in self.imports if one.hash == digest), None)

    def take(self, event: Mapping[str, Any], pool: Pool) -> dict[str, Told]:
        """Note an event "imported", and return what the selector has to observe."""
        for name, column in event["phase_0"].items():
            rows = zip(column["tasks"], column["trials"], column["scores"], strict=True)
            self.given |= {Cell(name, pool.tasks[at], trial): float(s) for at, trial, s in rows}
        found: dict[str, Told] = {}
        for name, column in event["observed"].items():
            self._add(name, column)
            found[name] = Told(
                tasks=[pool.tasks[at] for at in column["tasks"]],
                trials=column["trials"],
                scores=column["scores"],
                missing={},
                usage={},
                traces={},
            )
        self.imports.append(Import.of_event(event))
        return found

    def _add(self, name: str, column: Mapping[str, Any]) -> None:
        tasks, trials = (np.array(column[key], dtype=np.int64) for key in ("tasks", "trials"))
        keys, scores = tasks * MOST_TRIALS + trials, np.array(column["scores"], dtype=np.float64)
        if name in self.seen:
            keys = np.concatenate([self.seen[name][0], keys])
            scores = np.concatenate([self.seen[name][1], scores])
        order = np.argsort(keys, kind="stable")
        self.seen[name] = keys[order], scores[order]

    def find(self, name: str, keys: Indices) -> Floats:
        """The observed scores of outcomes, NaN where there is none."""
        found = np.full(len(keys), np.nan)
        if name in self.seen:
            known, scores = self.seen[name]
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            found = np.where(known[at] == keys, scores[at], np.nan)
        return found


class Importing:
    """Makes the event of an import; nothing is recorded.

    Args:
        pool: The tasks of the run.
        test: The tasks of the sealed test, if there is one.
        starts: Names of the starting harnesses.
        trials: Trials of each task.
        past: The past outcomes that the run has.
        open: The trials of Phase 0 that may be given; None if all.
    """

    def __init__(
        self,
        *,
        pool: Pool,
        test: Pool | None,
        starts: Sequence[str],
        trials: int,
        past: PastOutcomes | None = None,
        open: Collection[Cell] | None = None,
    ) -> None:
        self._pool, self._starts, self._trials = pool, starts, trials
        self._sealed = frozenset[Any]() if test is None else frozenset(test.tasks)
        self._past, self._open = past or PastOutcomes(), open

    def event(self, results: PastResults, *, skip_unknown: bool = False) -> dict[str, Any]:
        """The body of the event "imported".

        Args:
            results: The past results.
            skip_unknown: Whether to leave out rows of tasks that the run does not have, instead
                of refusing them.

        Raises:
            HistoryError: A task is unknown, or an outcome differs from what was imported before.
            StateError: The same contents were imported before, or there is nothing to import.
        """
        if (before := self._past.imported(results.digest)) is not None:
            raise StateError(
                f"{results.source} was imported before, as {before.file!r} (event "
                f"{before.event}); nothing was changed."
            )
        positions = self._positions(results, skip_unknown)[results.task]
        fits = positions >= 0
        scored = fits & ~np.isnan(results.score)
        columns = _Columns(results, positions)
        order = np.argsort(results.candidate, kind="stable")
        ends = np.searchsorted(results.candidate[order], np.arange(len(results.candidates) + 1))
        known = 0
        for at, name in enumerate(results.candidates):
            rows = order[ends[at] : ends[at + 1]]
            rows = rows[scored[rows]]
            if name in self._starts:
                rows, same = self._split(columns, name, rows)
                known += same
            else:
                name = f"{PREFIX}{name}"
            known += self._observe(columns, name, rows)
        if not columns.phase_0 and not columns.observed:
            why = _nothing(results, known, int(fits.sum()))
            raise StateError(f"{results.source} has nothing to import: {why}.")
        return {
            "file": Path(results.source).resolve().name,
            "hash": results.digest,
            "format": results.kind,
            "rows": len(results) + results.other_splits,
            "unscored": int((fits & np.isnan(results.score)).sum()),
            "known": known,
            "left_out": int((~fits).sum()) + results.other_splits,
            "phase_0": columns.phase_0,
            "observed": columns.observed,
        }

    def _positions(self, results: PastResults, skip: bool) -> Indices:
        """The place of each task of the results in the pool, -1 if it is unknown."""
        known = {task: at for at, task in enumerate(self._pool.tasks)}
        found = np.array([known.get(task, -1) for task in results.tasks], dtype=np.int64)
        unknown = np.flatnonzero(found < 0)
        if skip or not len(unknown):
            return found
        at = int(np.flatnonzero(np.isin(results.task, unknown))[0])
        task = results.tasks[results.task[at]]
        where = results.place(at, "task")
        if task in self._sealed:
            raise HistoryError(
                f"{where}: {task!r} is a task of the sealed test, whose results must stay "
                f"unknown; remove its rows, or {_SKIP}."
            )
        more = f" {len(unknown):,} tasks of the file are unknown." if len(unknown) > 1 else ""
        raise HistoryError(
            f"{where}: the run has no task {task!r}.{more}{nearest(task, self._pool.tasks)} To "
            f"import the other rows, {_SKIP}."
        )

    def _split(self, columns: "_Columns", name: str, rows: Indices) -> tuple[Indices, int]:
        """Let outcomes stand for Phase 0; return the other rows, and how many are known."""
        results, given, rest, known = columns.results, [], [], 0
        for row in rows.tolist():
            trial = int(results.trial[row])
            cell = Cell(name, self._pool.tasks[columns.positions[row]], trial)
            if cell in self._past.given:
                _check_same(results, row, self._past.given[cell])
                known += 1
            elif trial < self._trials and (self._open is None or cell in self._open):
                given.append(row)
            else:
                rest.append(row)
        columns.add(columns.phase_0, name, np.array(given, dtype=np.int64))
        return np.array(rest, dtype=np.int64), known

    def _observe(self, columns: "_Columns", name: str, rows: Indices) -> int:
        """Let outcomes inform the model; return how many are known."""
        results = columns.results
        keys = columns.positions[rows] * MOST_TRIALS + results.trial[rows]
        before = self._past.find(name, keys)
        for at in np.flatnonzero(~np.isnan(before)).tolist():
            _check_same(results, int(rows[at]), float(before[at]))
        columns.add(columns.observed, name, rows[np.isnan(before)])
        return int((~np.isnan(before)).sum())


def _nothing(results: PastResults, known: int, fitting: int) -> str:
    """Why there is nothing to import."""
    if known:
        return "its outcome is known" if known == 1 else f"its {known:,} outcomes are known"
    if fitting:
        return "no row has a score"
    if len(results):
        return "no row has a task of the run"
    return "no row is of the split 'validation'" if results.other_splits else "it has no rows"


class _Columns:
    """The outcomes of an import, in columns by candidate."""

    def __init__(self, results: PastResults, positions: Indices) -> None:
        self.results, self.positions = results, positions
        self.phase_0: dict[str, Any] = {}
        self.observed: dict[str, Any] = {}

    def add(self, to: dict[str, Any], name: str, rows: Indices) -> None:
        if not len(rows):
            return
        results, costs = self.results, self.results.cost[rows]
        to[name] = {
            "tasks": self.positions[rows].tolist(),
            "trials": results.trial[rows].tolist(),
            "scores": results.score[rows].tolist(),
        }
        if not np.isnan(costs).all():
            to[name]["dollars"] = [None if math.isnan(cost) else cost for cost in costs.tolist()]


def _check_same(results: PastResults, row: int, before: float) -> None:
    """Refuse an outcome that differs from what was imported before."""
    if (now := float(results.score[row])) != before:
        raise HistoryError(
            f"{results.place(row, 'score')}: it is {now:g}, but an earlier import has {before:g} "
            "for this candidate, task and trial; outcomes are never rewritten. Use another trial "
            "number for another trial."
        )
