"""The matrix of outcomes, tasks by candidates, as compact codes."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.core.pool import Pool
from coevolve.search.run_state import RunState
from coevolve.views.draw_log import TaskDraw
from coevolve.views.report import CandidateRow
from coevolve.views.run_columns import IMPORTED, NONE, OUTCOME, SPLITS, Columns, RunColumns

NOT_SAMPLED, FAILED, SOLVED, PARTIAL, MISSING, WAITING = range(6)
"""What a cell is; WAITING was asked for and has no outcome yet."""
KINDS = 7
"""The bits of a code that say what the cell is; the others are marks."""
PAST, FAULTY, OUTSIDE = 8, 16, 32
"""Marks: from past results; 0 because of a fault; from rescoring, not from the search."""
NAMES = ("not sampled", "failed", "solved", "partial", "missing", "waiting")
"""The kinds of cells in words, by number."""
_UNITS = 65_535

Codes = np.ndarray[Any, np.dtype[np.uint8]]
GridSplit = Literal["validation", "test"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutcomeGrid:
    """Outcomes by candidate and task, in the order of proposal and of the pool.

    `codes`, `scores` and `trials` have a row for each candidate and a column for each task. A code
    is one of NOT_SAMPLED, FAILED (score 0), SOLVED (score 1), PARTIAL (in between), MISSING and
    WAITING, plus marks. `scores` are means over the trials with a score, NaN without one, and
    `trials` is the number of these. `solvability` is p̄_t over all candidates (NaN where there is
    no outcome), `seen` the number of candidates n_t in it. `pools` are the names of the pools,
    `pool` the number of each task's. `draws` have the inclusion probabilities.
    """

    split: GridSplit
    tasks: tuple[str, ...]
    pools: tuple[str, ...]
    pool: Indices
    candidates: tuple[CandidateRow, ...]
    codes: Codes
    scores: Floats
    trials: Indices
    solvability: Floats
    seen: Indices
    draws: tuple[TaskDraw, ...]

    @property
    def kinds(self) -> Codes:
        """What every cell is, without marks."""
        return np.asarray(self.codes & KINDS, dtype=np.uint8)

    def counts(self) -> dict[str, int]:
        """How many cells are of each kind."""
        found = np.bincount(self.kinds.ravel(), minlength=len(NAMES)).tolist()
        return dict(zip(NAMES, found, strict=True))

    def draw(self, candidate: int, task: int) -> tuple[TaskDraw, int] | None:
        """The last draw that gave a task to a candidate, and the place of the task in it."""
        name = self.candidates[candidate].name
        for draw in reversed(self.draws):
            if name in draw.candidates and (at := np.flatnonzero(draw.tasks == task)).size:
                return draw, int(at[0])
        return None

    def changes(self, before: "OutcomeGrid") -> list[tuple[int, int, int, float | None]]:
        """The cells that differ from an earlier grid: candidate, task, code and score."""
        old_codes, old_trials = np.zeros_like(self.codes), np.zeros_like(self.trials)
        old_scores = np.full_like(self.scores, np.nan)
        here = slice(0, len(before.candidates))
        old_codes[here], old_scores[here] = before.codes, before.scores
        old_trials[here] = before.trials
        same = (self.scores == old_scores) | (np.isnan(self.scores) & np.isnan(old_scores))
        changed = (self.codes != old_codes) | ~same | (self.trials != old_trials)
        rows, columns = np.nonzero(changed)
        found = zip(
            rows.tolist(),
            columns.tolist(),
            self.codes[changed].tolist(),
            self.scores[changed].tolist(),
            strict=True,
        )
        return [(c, t, code, None if score != score else score) for c, t, code, score in found]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: about a byte and a third for every cell.

        `codes` are bytes in base64, candidate by candidate. `partial` are the scores of the cells
        with the code PARTIAL in the same order, as 16-bit numbers (little-endian) in units of
        1/65535. `trials` are bytes like the codes; null if no cell has more than one.
        """
        partial = self.scores[self.kinds == PARTIAL]
        return {
            "split": self.split,
            "tasks": list(self.tasks),
            "pools": list(self.pools),
            "pool": self.pool.tolist(),
            "candidates": [row.to_json() for row in self.candidates],
            "codes": _encoded(self.codes),
            "partial": _encoded(np.rint(partial * _UNITS).astype("<u2")),
            "trials": _encoded(np.minimum(self.trials, 255).astype(np.uint8))
            if (self.trials > 1).any()
            else None,
            "solvability": [None if p != p else round(p, 6) for p in self.solvability.tolist()],
            "seen": self.seen.tolist(),
            "draws": [draw.to_json() for draw in self.draws],
            "kinds": list(NAMES),
            "marks": {"imported": PAST, "fault": FAULTY, "rescored": OUTSIDE},
        }


def _encoded(values: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


@dataclass(frozen=True, slots=True)
class _Layer:
    """The outcomes of some rows, cell by cell (candidates x tasks)."""

    outcomes: Indices
    scored: Indices
    sums: Floats
    faulty: Bools
    past: Bools

    @classmethod
    def of(cls, rows: Columns, chosen: Bools, shape: tuple[int, int], first: int) -> "_Layer":
        """Count the latest outcome of every trial; `first` is the number of the first task."""
        at = np.flatnonzero(chosen)
        trials = rows.trial[at].astype(np.int64)
        cells = rows.candidate[at].astype(np.int64) * shape[1] + rows.task[at] - first
        keys = cells * (int(trials.max(initial=0)) + 1) + trials
        _, last = np.unique(keys[::-1], return_index=True)  # a trial may have run once more
        at, cells = at[::-1][last], cells[::-1][last]
        size, scores = shape[0] * shape[1], rows.score[at]
        known = ~np.isnan(scores)

        def counted(some: Bools) -> Indices:
            return np.bincount(cells[some], minlength=size).reshape(shape)

        sums = np.bincount(cells[known], weights=scores[known], minlength=size).reshape(shape)
        return cls(
            outcomes=counted(np.ones(len(at), dtype=np.bool_)),
            scored=counted(known),
            sums=sums,
            faulty=counted(known & (rows.fault[at] != NONE)) > 0,
            past=counted(rows.kind[at] == IMPORTED) > 0,
        )

    def codes(self) -> Codes:
        """The code of every cell."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.sums / self.scored
        found = np.full(means.shape, NOT_SAMPLED, dtype=np.uint8)
        found[self.outcomes > 0] = MISSING
        found[self.scored > 0] = PARTIAL
        found[means == 0] = FAILED
        found[means == 1] = SOLVED
        found[self.past] |= PAST
        found[self.faulty & (means < 1)] |= FAULTY
        return found


def outcome_grid(
    columns: RunColumns,
    state: RunState,
    candidates: Sequence[CandidateRow],
    draws: Sequence[TaskDraw],
    split: GridSplit = "validation",
) -> OutcomeGrid:
    """The outcomes of a run on the validation tasks, or on those of the sealed test.

    Args:
        columns: Everything the run paid for.
        state: The run.
        candidates: Their rows in the report, in the order of proposal.
        draws: The draws of the run.
        split: "validation", which includes rescoring, or "test".
    """
    sealed = split == "test"
    pool = state.selector.pool if not sealed or state.test is None else state.test.pool
    names = [row.name for row in candidates]
    tasks = tuple(columns.test_tasks if sealed else columns.tasks)
    shape, first = (len(columns.candidates), len(tasks)), len(columns.tasks) if sealed else 0
    rows = columns.rows
    outcomes = np.isin(rows.kind, (OUTCOME, IMPORTED))
    layers = [
        _Layer.of(rows, outcomes & (rows.split == SPLITS.index(one)), shape, first)
        for one in (("test",) if sealed else ("validation", "rescore"))
    ]
    codes, scored, sums = layers[0].codes(), layers[0].scored, layers[0].sums
    for layer in layers[1:]:
        more = (codes == NOT_SAMPLED) & (layer.outcomes > 0)
        codes = np.where(more, layer.codes() | OUTSIDE, codes)
        scored, sums = np.where(more, layer.scored, scored), np.where(more, layer.sums, sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = sums / scored
    codes = _with_waiting(codes, columns, state, split)
    kept = [columns.candidates[name] for name in names]
    history = None if sealed else state.selector.history()
    return OutcomeGrid(
        split=split,
        tasks=tasks,
        pools=pool.names,
        pool=_pool_numbers(pool),
        candidates=tuple(candidates),
        codes=codes[kept],
        scores=scores[kept],
        trials=scored[kept],
        solvability=_means(scores[kept]) if history is None else history.mean,
        seen=(scored[kept] > 0).sum(axis=0) if history is None else history.count,
        draws=() if sealed else tuple(draws),
    )


def _with_waiting(codes: Codes, columns: RunColumns, state: RunState, split: GridSplit) -> Codes:
    """The codes, with the trials that were asked for and have no outcome."""
    waves = [] if state.wave is None else [state.wave]
    waves += [requested.wave for requested in state.requested.values()]
    sealed = split == "test"
    for wave in waves:
        if (wave.split == "test") != sealed:
            continue
        tasks, first = (columns.test_tasks, len(columns.tasks)) if sealed else (columns.tasks, 0)
        for cell in wave.open:
            at = columns.candidates[cell.candidate], tasks[cell.task] - first
            if codes[at] == NOT_SAMPLED:
                codes[at] = WAITING
    return codes


def _means(scores: Floats) -> Floats:
    known = ~np.isnan(scores)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, scores, 0).sum(axis=0) / known.sum(axis=0))


def _pool_numbers(pool: Pool) -> Indices:
    numbers = np.zeros(len(pool), dtype=np.int64)
    for number, name in enumerate(pool.names):
        numbers[pool.members(name)] = number
    return numbers
