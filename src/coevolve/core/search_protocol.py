"""A protocol: a weighting, a design, an estimator, an allocation and a choice under one name."""

from dataclasses import dataclass, field
from typing import Any

from coevolve.core.allocation import Allocation, Share
from coevolve.core.choice import ChoiceRule, HighestEstimate
from coevolve.core.designs import DesignMethod, UniformDesign
from coevolve.core.estimators import Estimator, RawMean
from coevolve.core.parts import part_to_json
from coevolve.core.posterior import JointModel
from coevolve.core.rule import EstimatorRule
from coevolve.core.weights import UniformWeights, Weighting
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProtocol:
    """How tasks are chosen for candidates and candidates are judged by them.

    Args:
        name: What it is known by.
        summary: A line about it.
        weighting: How much each task is worth drawing.
        design: How tasks are drawn by these weights, and with what probability.
        estimator: What the outcomes say about the full set; or a rule that picks an estimator, or
            a joint model of all outcomes.
        allocation: How many tasks of each pool a round draws, and what is evaluated further.
        choice: Which candidate wins.

    Replace any of the five parts with `dataclasses.replace`:

    >>> from dataclasses import replace
    >>> from coevolve import protocol
    >>> from coevolve.core.designs import SuccessiveDesign
    >>> paper = protocol("task-coevolve")
    >>> faithful = replace(paper, design=SuccessiveDesign(inclusion="monte-carlo"))
    """

    name: str
    summary: str = ""
    weighting: Weighting = field(default_factory=UniformWeights)
    design: DesignMethod = field(default_factory=UniformDesign)
    estimator: Estimator | EstimatorRule | JointModel = field(default_factory=RawMean)
    allocation: Allocation = field(default_factory=Share)
    choice: ChoiceRule = field(default_factory=HighestEstimate)

    def __post_init__(self) -> None:
        wanted: dict[str, Any] = {
            "weighting": Weighting,
            "design": DesignMethod,
            "estimator": Estimator | EstimatorRule | JointModel,
            "allocation": Allocation,
            "choice": ChoiceRule,
        }
        for part, kind in wanted.items():
            if not isinstance(getattr(self, part), kind):
                raise InputError(f"{getattr(self, part)!r} cannot be the {part} of a protocol.")
        if self.draws_by_model and not isinstance(self.estimator, JointModel):
            raise InputError(
                f"protocol {self.name!r} draws by a joint model; use one as the estimator, such "
                f"as Joint(), not {self.estimator!r}."
            )

    @property
    def needs_history(self) -> bool:
        """Whether Phase 0 must come before the first draw."""
        if isinstance(self.estimator, EstimatorRule):
            return True
        return self.weighting.needs_history or self.estimator.needs_history

    @property
    def draws_by_model(self) -> bool:
        """Whether a joint model has a say in what is drawn."""
        return self.weighting.needs_model or bool(getattr(self.allocation, "needs_model", False))

    def to_json(self) -> dict[str, Any]:
        """The name and the five parts as plain JSON."""
        parts = ("weighting", "design", "estimator", "allocation", "choice")
        return {"name": self.name} | {part: part_to_json(getattr(self, part)) for part in parts}
