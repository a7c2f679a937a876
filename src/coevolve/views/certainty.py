"""How sure the choice is: the probability of being best, and the candidates that may be better."""

from dataclasses import asdict, dataclass
from typing import Any

from coevolve.core.comparison import Comparison
from coevolve.formatting import plural
from coevolve.search.run_state import RunState
from coevolve.views.milestones import choice_of
from coevolve.views.report import best

MOST_RIVALS = 60
"""Candidates that are compared with the best one: those with the highest estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another candidate beside the best one.

    `difference` is how much higher the best one scores, from `low` to `high`. It is `open` which
    of them is better if the interval contains 0 or is unknown. `probability` is that of this
    candidate being better, None without a joint model. `method` says how they were compared.
    """

    candidate: str
    round: int
    value: float
    difference: float
    low: float | None
    high: float | None
    open: bool
    probability: float | None
    method: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """How sure it is that the best candidate is the best.

    `probability` and `regret` are those of a joint model, None without one. `rivals` are other
    candidates, starting harnesses included, the closest first; `compared` of `others` were
    compared. `level` is that of the intervals.
    """

    best: str | None
    probability: float | None
    regret: float | None
    rivals: tuple[Rival, ...]
    compared: int
    others: int
    level: float

    @property
    def open(self) -> tuple[Rival, ...]:
        """The rivals that may be better."""
        return tuple(rival for rival in self.rivals if rival.open)

    @property
    def short(self) -> str:
        """How sure it is, in one phrase; empty without anything to compare."""
        if not self.compared:
            return ""
        others = f"{len(self.open)} of {plural(self.compared, 'other')} may be better"
        if self.probability is None:
            return others
        return f"best with probability {self.probability:.0%}; {others}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def certainty(state: RunState) -> Certainty:
    """How sure the choice of a run is now."""
    name, selector = best(state), state.selector
    found = {n: e for n in state.candidates if (e := state.estimate(n)) is not None}
    level = selector.confidence
    if name is None or name not in found:
        return Certainty(
            best=name, probability=None, regret=None, rivals=(), compared=0, others=0, level=level
        )
    choice = choice_of(state)
    sure = None if choice is None or choice.candidate != name else choice.confidence
    others = sorted((n for n in found if n != name), key=lambda n: -found[n].value)
    rivals = [
        _rival(
            selector.compare(name, other),
            state.candidates[other].candidate.round,
            found[other].value,
        )
        for other in others[:MOST_RIVALS]
    ]
    return Certainty(
        best=name,
        probability=None if sure is None else sure.probability,
        regret=None if sure is None else sure.regret,
        rivals=tuple(sorted(rivals, key=_closeness)),
        compared=len(rivals),
        others=len(others),
        level=level,
    )


def _rival(found: Comparison, round: int, value: float) -> Rival:
    unclear = found.low is None or found.high is None or found.low <= 0 <= found.high
    return Rival(
        candidate=str(found.b),
        round=round,
        value=value,
        difference=found.value,
        low=found.low,
        high=found.high,
        open=unclear or found.value < 0,
        probability=None if found.probability is None else 1 - found.probability,
        method=found.method,
    )


def _closeness(rival: Rival) -> tuple[float, float]:
    """The likeliest to be better first; without probabilities, by the end of the interval."""
    if rival.probability is not None:
        return -rival.probability, rival.difference
    return rival.difference if rival.low is None else rival.low, rival.difference
