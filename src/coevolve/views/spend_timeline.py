"""What a run spent over time, by part, by round and by candidate."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.views.run_columns import ATTEMPT, IMPORTED, NONE, OUTCOME, PARTS, Columns, RunColumns
from coevolve.views.spend import CapRow, Spend
from coevolve.views.spend_parts import (
    FAILED,
    PHASE_0,
    PREPARATION,
    PROPOSING,
    REQUEST,
    RESCORING,
    SEALED_TEST,
    TRIALS,
)

MEASURED = ("trials", "tokens", "dollars", "seconds")
"""What is summed; seconds are those of single trials, which run side by side."""
STACKED = (PHASE_0, TRIALS, FAILED, PREPARATION, PROPOSING, RESCORING, SEALED_TEST, REQUEST)
"""The parts in the order in which a run meets them."""
_POINTS = 200
"""Times at which the sums are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Sums of trials and their costs; `attempts` failed and were repeated."""

    trials: int
    attempts: int
    tokens_in: int
    tokens_out: int
    dollars: float
    seconds: float

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSpent:
    """What was spent while a round was under way, on candidates of any round.

    Round 0 is Phase 0. `began` and `ended` are times on the working clock.
    """

    round: int
    began: float
    ended: float
    evaluating: Spent
    proposing: Spent

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSpent:
    """What a candidate cost: in the search, in its check and preparation, and after the choice.

    `closing` is rescoring and the sealed test, `requested` what the operator asked for.
    """

    candidate: str
    round: int
    searching: Spent
    preparing: Spent
    closing: Spent
    requested: Spent

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendTimeline:
    """The sums of every part over the working clock, and the totals of rounds and candidates.

    `clock` are times in seconds; `curves` has, for every part that cost anything, the sums of each
    measure up to these times. `caps` are the caps of the budget, with what is spent of them.
    """

    clock: tuple[float, ...]
    curves: dict[str, dict[str, tuple[float, ...]]]
    totals: dict[str, Spent]
    caps: tuple[CapRow, ...]
    rounds: tuple[RoundSpent, ...]
    candidates: tuple[CandidateSpent, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def spend_timeline(columns: RunColumns, spend: Spend, clock: float) -> SpendTimeline:
    """What a run has spent up to `clock`."""
    rows = columns.rows
    paid = rows.kind != IMPORTED
    times = _times(rows.clock[paid], clock)
    measures: dict[str, Floats] = {
        "trials": (rows.kind == OUTCOME).astype(np.float64),
        "tokens": rows.tokens.astype(np.float64),
        "dollars": rows.dollars,
        "seconds": rows.seconds,
    }
    curves, totals = {}, {}
    for part in STACKED:
        here = paid & (rows.part == PARTS.index(part))
        if not here.any():
            continue
        at = np.searchsorted(rows.clock[here], times, side="right")
        curves[part] = {
            name: tuple(np.concatenate([[0.0], np.cumsum(values[here])])[at].tolist())
            for name, values in measures.items()
        }
        totals[part] = _spent(rows, here)
    return SpendTimeline(
        clock=tuple(times.tolist()),
        curves=curves,
        totals=totals,
        caps=spend.budget,
        rounds=_rounds(rows),
        candidates=_candidates(columns, rows),
    )


def _times(clocks: Floats, clock: float) -> Floats:
    """At most 200 times from 0 to now, with the last events before each."""
    last = max(clock, float(clocks.max(initial=0.0)))
    if len(clocks) <= _POINTS:
        return np.unique(np.concatenate([[0.0], clocks, [last]]))
    return np.linspace(0.0, last, _POINTS)


def _spent(rows: Columns, here: Bools) -> Spent:
    return Spent(
        trials=int((rows.kind[here] == OUTCOME).sum()),
        attempts=int((rows.kind[here] == ATTEMPT).sum()),
        tokens_in=int(rows.tokens_in[here].sum()),
        tokens_out=int(rows.tokens_out[here].sum()),
        dollars=_dollars(rows.dollars[here]),
        seconds=float(rows.seconds[here].sum()),
    )


def _dollars(values: Floats) -> float:
    """A sum of money in whole billionths, as in the ledgers of the run."""
    return int(np.rint(values * 1e9).sum()) / 1e9


def _parts(rows: Columns, *parts: str) -> Bools:
    here = np.isin(rows.part, [PARTS.index(part) for part in parts])
    return np.asarray(here & (rows.kind != IMPORTED))


def _rounds(rows: Columns) -> tuple[RoundSpent, ...]:
    searching = _parts(rows, PHASE_0, TRIALS, FAILED, PREPARATION)
    proposing = _parts(rows, PROPOSING)
    found = []
    for round in np.unique(rows.round[searching | proposing]).tolist():
        mine = rows.round == round
        clocks = rows.clock[mine & (searching | proposing)]
        found.append(
            RoundSpent(
                round=round,
                began=float(clocks.min()),
                ended=float(clocks.max()),
                evaluating=_spent(rows, mine & searching),
                proposing=_spent(rows, mine & proposing),
            )
        )
    return tuple(found)


def _candidates(columns: RunColumns, rows: Columns) -> tuple[CandidateSpent, ...]:
    checks = (rows.kind != OUTCOME) & (rows.kind != ATTEMPT)
    groups = {
        "searching": _parts(rows, PHASE_0, TRIALS, FAILED) & ~checks,
        "preparing": _parts(rows, PHASE_0, PREPARATION) & checks,
        "closing": _parts(rows, RESCORING, SEALED_TEST),
        "requested": _parts(rows, REQUEST),
    }
    sums = {
        name: _by_candidate(rows, here, len(columns.candidates)) for name, here in groups.items()
    }
    return tuple(
        CandidateSpent(
            candidate=name,
            round=columns.rounds[number],
            **{group: found[number] for group, found in sums.items()},
        )
        for name, number in columns.candidates.items()
    )


def _by_candidate(rows: Columns, here: Bools, size: int) -> Sequence[Spent]:
    """The sums of some rows for each candidate."""
    at = np.flatnonzero(here & (rows.candidate != NONE))
    names: Indices = rows.candidate[at]

    def summed(values: Any) -> list[Any]:
        return np.bincount(names, weights=values[at], minlength=size).tolist()  # type: ignore[no-any-return]

    return [
        Spent(
            trials=int(trials),
            attempts=int(attempts),
            tokens_in=int(tokens_in),
            tokens_out=int(tokens_out),
            dollars=round(nano) / 1e9,
            seconds=seconds,
        )
        for trials, attempts, tokens_in, tokens_out, nano, seconds in zip(
            summed(rows.kind == OUTCOME),
            summed(rows.kind == ATTEMPT),
            summed(rows.tokens_in),
            summed(rows.tokens_out),
            summed(np.rint(rows.dollars * 1e9)),
            summed(rows.seconds),
            strict=True,
        )
    ]
