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

    @property
    def ends(self) -> tuple[float, float]:
        """Both limits."""
        return self.low, self.high

    def __str__(self) -> str:
        low, high = f"{self.low:,.0f}", f"{self.high:,.0f}"
        return low if low == high else f"{low} to {high}"

    def to_json(self) -> list[float]:
        """Plain JSON."""
        return [self.low, self.high]


@dataclass(frozen=True, slots=True)
class Savings:
    """The trials of a run beside those of a full search of the same candidates.

    `paid` are all trials, `searched` those of generated candidates, which the paper counts.

    >>> found = Savings.of(paid=Range(660, 660), searched=Range(180, 180), full=Range(900, 900))
    >>> found.short
    '48% of the trials of a full search; new candidates alone: 20%'
    """

    paid: Range
    paid_full: Range
    searched: Range
    full: Range

    @classmethod
    def of(cls, *, paid: Range, searched: Range, full: Range, rescored: int = 0) -> "Savings":
        """The savings of `paid` trials, of which a full search needs no `rescored` ones."""
        ends = (
            all - some - rescored + every
            for all, some, every in zip(paid.ends, searched.ends, full.ends, strict=True)
        )
        return cls(paid, Range(*ends), searched, full)

    def __str__(self) -> str:
        return (
            f"{self.paid} trials in all, {share(self.paid, self.paid_full)} of a full search "
            f"({self.paid_full}). The paper counts new candidates only: {self.searched} of "
            f"{self.full}, {share(self.searched, self.full)}."
        )

    @property
    def short(self) -> str:
        """Both shares, without the numbers of trials."""
        return (
            f"{share(self.paid, self.paid_full)} of the trials of a full search; new candidates "
            f"alone: {share(self.searched, self.full)}"
        )

    def to_json(self) -> dict[str, list[float]]:
        """Plain JSON."""
        return {name: getattr(self, name).to_json() for name in self.__slots__}


def share(some: Range, whole: Range) -> str:
    """A part in percent of the whole.

    >>> share(Range(1, 3), Range(2, 4))
    '50% to 75%'
    """
    low, high = sorted(a / b for a, b in zip(some.ends, whole.ends, strict=True))
    texts = dict.fromkeys((f"{low:.0%}", f"{high:.0%}"))
    return " to ".join(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapRow:
    """A cap of the budget and the amount spent of it."""

    name: str
    spent: float
    cap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a run has spent, next to its caps and to the cost of a full search.

    `proposing` and `evaluating` are the two ledgers. `paid` counts all trials: of starting
    harnesses, of candidates, and of the sealed test; `rescored` are those that rescored the
    winner. `searched` counts the trials of generated candidates before the choice; `full` is what
    a full search of the same candidates needs for them.
    """

    budget: tuple[CapRow, ...]
    proposing: dict[str, float]
    evaluating: dict[str, float]
    searched: int
    full: int
    paid: int
    rescored: int

    @property
    def totals(self) -> dict[str, float]:
        """Trials, tokens, dollars and hours, proposing included."""
        return {cap.name: cap.spent for cap in self.budget}

    @property
    def savings(self) -> "Savings | None":
        """All trials beside those of a full search; None before any candidate is evaluated."""
        if not self.full:
            return None
        paid, searched, full = (Range(n, n) for n in (self.paid, self.searched, self.full))
        return Savings.of(paid=paid, searched=searched, full=full, rescored=self.rescored)

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
        spent = self.evaluating_tokens
        if not spent or self.savings is None:
            return None
        return round(spent * self.savings.paid_full.low / self.paid)

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
    paid, searched = state.evaluating.trials, state.selector.evaluations
    full = len(state.selector.pool) * state.trials * evaluated
    waves = [*state.closed, *([] if state.wave is None else [state.wave])]
    return Spend(
        budget=tuple(
            CapRow(name=name, spent=getattr(spent, name), cap=getattr(caps, name)) for name in CAPS
        ),
        proposing=state.proposing.to_json(),
        evaluating=state.evaluating.to_json(),
        searched=searched,
        full=full,
        paid=paid,
        rescored=sum(len(wave.done) for wave in waves if wave.kind == "rescore"),
    )


def has_prices(state: RunState) -> bool:
    """Whether the dollars that a run records are what its model costs."""
    model = state.config.get("model") or {"name": "embedded"}
    known = model.get("price_in") is not None or model.get("replay") is not None
    return known or model["name"] == "embedded"


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
