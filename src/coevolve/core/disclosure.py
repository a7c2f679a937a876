"""What a proposer is told of a protocol: how tasks are drawn, and what a score is.

The sentences follow from the parts, so they are true for a user's own protocol too. Under a
baseline such as `naive` or `full`, a proposer reads nothing about estimates.
"""

from dataclasses import dataclass

from coevolve.core.allocation import Adaptive, Allocation, WholePool
from coevolve.core.designs import DesignMethod, UniformDesign
from coevolve.core.estimators import RawMean
from coevolve.core.weights import UniformWeights, Weighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What a proposer may know of how candidates are scored.

    Args:
        draws: On which tasks candidates are evaluated.
        scores: What the score of a candidate is.
        estimated: Whether scores are estimates of the score on all tasks, with intervals.

    >>> Disclosure.of(weighting=UniformWeights(), design=UniformDesign(), estimator=RawMean(),
    ...     allocation=WholePool()).draws
    'Every candidate is evaluated on every task.'
    """

    draws: str
    scores: str
    estimated: bool

    @classmethod
    def of(
        cls,
        *,
        weighting: Weighting,
        design: DesignMethod,
        estimator: object,
        allocation: Allocation,
        draw_per: str = "round",
    ) -> "Disclosure":
        """What follows from the parts of a protocol, and from whether candidates share a draw."""
        if isinstance(allocation, WholePool):
            return cls(
                draws="Every candidate is evaluated on every task.",
                scores="The score of a candidate is its mean over all tasks.",
                estimated=False,
            )
        draws = _draws(weighting, design, draw_per)
        if isinstance(allocation, Adaptive):
            draws += " Candidates that may be the best are evaluated on further tasks."
        if isinstance(estimator, RawMean):
            scores = "The score of a candidate is its mean over the tasks it was evaluated on."
            return cls(draws=draws, scores=scores, estimated=False)
        return cls(
            draws=draws,
            scores="From the outcomes, the score on **all** tasks is estimated.",
            estimated=True,
        )

    @property
    def word(self) -> str:
        """The name of a score: "estimate" or "score"."""
        return "estimate" if self.estimated else "score"


def _draws(weighting: Weighting, design: DesignMethod, draw_per: str) -> str:
    if not design.redraws:
        return (
            "A part of the tasks was drawn once, at random, and every candidate is evaluated on "
            "this part."
        )
    if isinstance(design, UniformDesign) or isinstance(weighting, UniformWeights):
        drawn = "some of the tasks at random"
    else:
        prefers = getattr(weighting, "prefers", "some more often than others")
        drawn = f"some of the tasks, {prefers}"
    if draw_per == "candidate":
        return f"Every candidate gets {drawn}. You cannot know which tasks are drawn."
    return (
        f"Each round draws {drawn}, and evaluates its new candidates on these. You cannot know "
        "which tasks are drawn."
    )
