"""What a run has spent, and what a trial and a proposal of it cost on average."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coevolve.core.events import Event
from coevolve.search.budget import CAPS
from coevolve.search.journal import Journal
from coevolve.search.run_state import RunState, Status
from coevolve.views.outcome_rows import outcome_rows

MEASURES = ("tokens", "dollars", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapRow:
    """A cap of the budget and the amount spent of it."""

    name: str
    spent: float
    cap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a run has spent, next to its caps and to the cost of a full search.

    `proposing` and `evaluating` are the two ledgers. `searched` counts the trials of generated
    candidates; `full` is the number of trials a full search of the same candidates needs.
    """

    budget: tuple[CapRow, ...]
    proposing: dict[str, float]
    evaluating: dict[str, float]
    searched: int
    full: int

    @property
    def totals(self) -> dict[str, float]:
        """Trials, tokens, dollars and hours, proposing included."""
        return {cap.name: cap.spent for cap in self.budget}

    @property
    def share_of_full(self) -> str:
        """The trials of generated candidates next to those of a full search, in words."""
        share = f"{self.searched / self.full:.0%} of a full search ({self.full:,})"
        return f"{self.searched:,} trials of new candidates, {share}"

    @property
    def proposing_tokens(self) -> int:
        """Tokens spent on proposing."""
        return int(self.proposing["tokens_in"] + self.proposing["tokens_out"])

    @property
    def evaluating_tokens(self) -> int:
        """Tokens spent on evaluating."""
        return int(self.evaluating["tokens_in"] + self.evaluating["tokens_out"])

    @property
    def full_tokens(self) -> int | None:
        """Tokens a full search needs for evaluating, at the mean cost of a trial of this run."""
        trials, spent = self.evaluating["trials"], self.evaluating_tokens
        if not (trials and spent and self.full):
            return None
        return round(spent + spent / trials * max(0, self.full - self.searched))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def spend_of(state: RunState, seconds: float) -> Spend:
    """What a run has spent after `seconds`."""
    spent, caps = state.spending(seconds), state.settings.budget
    evaluated = sum(
        entry.candidate.round > 0 and entry.status == Status.EVALUATED
        for entry in state.candidates.values()
    )
    return Spend(
        budget=tuple(
            CapRow(name=name, spent=getattr(spent, name), cap=getattr(caps, name)) for name in CAPS
        ),
        proposing=state.proposing.to_json(),
        evaluating=state.evaluating.to_json(),
        searched=state.selector.evaluations,
        full=len(state.selector.pool) * state.trials * evaluated,
    )


@dataclass(frozen=True, slots=True)
class Range:
    """An amount between two limits.

    >>> Range(1, 2) * 10 + Range(5, 5)
    Range(low=15, high=25)
    """

    low: float
    high: float

    def __mul__(self, other: "Range | float") -> "Range":
        by = other if isinstance(other, Range) else Range(other, other)
        return Range(self.low * by.low, self.high * by.high)

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def to_json(self) -> list[float]:
        """Plain JSON."""
        return [self.low, self.high]


Costs = dict[str, Range]
"""The cost of one thing by measure; a measure that is left out is unknown."""
FREE: Costs = {name: Range(0, 0) for name in MEASURES}
"""The cost of what needs no tokens, dollars or time."""


def costs_of_run(journal: Journal) -> tuple[Costs, Costs]:
    """The cost of a trial and of a proposal in a run; empty where it has none.

    A trial costs between the lowest and the highest mean of a candidate, a proposal between the
    cheapest and the most expensive one.
    """
    spent: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
    for row in outcome_rows(journal.events()):
        if row.imported:  # it was paid before, and its tokens and seconds are unknown
            continue
        spent["tokens"][row.candidate].append(row.tokens_in + row.tokens_out)
        spent["dollars"][row.candidate].append(row.dollars)
        spent["seconds"][row.candidate].append(row.seconds)
    trial = {
        name: _range(float(np.mean(values)) for values in groups.values())
        for name, groups in spent.items()
        if groups
    }
    proposals = list(_proposals(journal.events()))
    columns = zip(MEASURES, zip(*proposals, strict=True), strict=False)
    return trial, {name: _range(values) for name, values in columns}


def _range(values: Iterable[float]) -> Range:
    found = list(values)
    return Range(min(found), max(found))


def _proposals(events: Iterable[Event]) -> Iterable[tuple[float, float, float]]:
    """Tokens, dollars and seconds of every proposal."""
    began: Event | None = None
    for event in events:
        if event["type"] == "proposing":
            began = event
        elif event["type"] == "proposed" and began is not None:
            tokens_in, tokens_out, dollars, _ = event["usage"]
            yield tokens_in + tokens_out, dollars, event["clock"] - began["clock"]
            began = None
