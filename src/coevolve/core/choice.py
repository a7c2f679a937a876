"""Choice rules: which candidate wins."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from coevolve.core.estimators import Estimate
from coevolve.core.identifiers import Id, all_plain, plain
from coevolve.core.posterior import Confidence, Deferred
from coevolve.errors import InputError, NoOutcomeError
from coevolve.formatting import score

_TIE = 1e-12
"""Estimates closer than this differ by rounding only."""


class Contender(NamedTuple):
    """A candidate with its round and estimate, as a choice rule sees it."""

    candidate: Id
    round: int
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner, the candidates it tied with, and why it won.

    `better_start` names a starting harness whose full-set score is above the winner's estimate,
    `left_out` those without an estimate and, if others are told in full, those that are not.
    `confidence` is computed from `deferred_confidence` when it is first read.

    >>> from coevolve import Pool, Selector
    >>> selector = Selector(Pool(["a", "b"]), protocol="full")
    >>> (assignment,) = selector.ask(["new"])
    >>> selector.tell(assignment, {"a": 1, "b": 0})
    >>> choice = selector.best()
    >>> choice.candidate, choice.tied_with, choice.why
    ('new', (), 'highest estimate 0.500')
    """

    candidate: Id
    estimate: Estimate
    tied_with: tuple[Id, ...]
    why: str
    better_start: Id | None = None
    left_out: tuple[Id, ...] = ()
    deferred_confidence: Deferred[Confidence] | None = field(
        default=None, compare=False, repr=False
    )

    @property
    def confidence(self) -> Confidence | None:
        """How sure the choice is; known if the estimator is a joint model."""
        return None if self.deferred_confidence is None else self.deferred_confidence.read()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the confidence."""
        return {
            "candidate": plain(self.candidate),
            "estimate": self.estimate.to_json(),
            "tied_with": all_plain(self.tied_with),
            "why": self.why,
            "better_start": plain(self.better_start),
            "left_out": all_plain(self.left_out),
        }


@runtime_checkable
class ChoiceRule(Protocol):
    """Names the winner."""

    def choose(self, generated: Sequence[Contender], start: Sequence[Contender]) -> Choice:
        """Choose among the candidates, given in the order of proposal."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestEstimate:
    """Ŝ-max: the highest estimate wins; `tie_break` decides between exact ties.

    Args:
        tie_break: Which proposal wins an exact tie; "latest" is in the paper's appendix.
        include_start: Whether a starting harness may win.

    >>> def contender(name, round, value):
    ...     return Contender(name, round, Estimate(value=value, se=None, low=None, high=None,
    ...         tasks=2, drawn=2, pool_size=9, method="raw mean"))
    >>> rule = HighestEstimate()
    >>> rule.choose([contender("a", 1, 0.5), contender("b", 1, 0.5)], []).why
    'highest estimate 0.500; 2 tied (a, b), the earliest proposal wins'
    """

    tie_break: Literal["earliest", "latest"] = "earliest"
    include_start: bool = False

    def __post_init__(self) -> None:
        if self.tie_break not in ("earliest", "latest"):
            raise InputError(f"tie_break must be 'earliest' or 'latest', got {self.tie_break!r}.")

    def choose(self, generated: Sequence[Contender], start: Sequence[Contender]) -> Choice:
        field = [*start, *generated] if self.include_start else list(generated)
        if not field:
            raise NoOutcomeError("no candidate has an estimate yet; ask, evaluate and tell first.")
        top = max(contender.estimate.value for contender in field)
        scale = field[0].estimate.scale
        tie = _TIE * (scale[1] - scale[0])
        tied = [s for s in field if s.estimate.value >= top - tie]
        winner = tied[0] if self.tie_break == "earliest" else tied[-1]
        above = [s for s in start if s.estimate.value > winner.estimate.value + tie]
        better = max(above, key=lambda s: s.estimate.value, default=None)
        why = f"highest estimate {score(winner.estimate.value, scale)}"
        if len(tied) > 1:
            names = ", ".join(str(s.candidate) for s in tied)
            why += f"; {len(tied)} tied ({names}), the {self.tie_break} proposal wins"
        if better is not None:
            found = score(better.estimate.value, scale)
            why += f"; the starting harness {better.candidate} scores {found}"
        return Choice(
            candidate=winner.candidate,
            estimate=winner.estimate,
            tied_with=tuple(s.candidate for s in tied if s is not winner),
            why=why,
            better_start=better.candidate if better else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MostEvaluated:
    """The highest estimate among the candidates that were asked about the most tasks.

    For allocations that give better candidates more tasks. The estimates of the others are not
    comparable then.
    """

    def choose(self, generated: Sequence[Contender], start: Sequence[Contender]) -> Choice:
        most = max((contender.estimate.drawn for contender in generated), default=0)
        field = [s for s in generated if s.estimate.drawn == most]
        choice = HighestEstimate().choose(field, start)
        return replace(choice, why=f"{choice.why}, among {len(field)} with {most} tasks")
