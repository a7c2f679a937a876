"""Protocols: a weighting, a design, an estimator, an allocation and a choice under one name."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from coevolve.core.allocation import AdaptiveShare, Allocation, CostShare, Share, WholePool
from coevolve.core.choice import ChoiceRule, HighestEstimate, MostEvaluated
from coevolve.core.designs import DesignMethod, PivotalDesign, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import (
    Difference,
    Estimator,
    EstimatorRule,
    Hajek,
    HorvitzThompson,
    PhaseZeroRule,
    RawMean,
)
from coevolve.core.joint import Joint
from coevolve.core.posterior import JointModel
from coevolve.core.weights import InformationWeights, UniformWeights, VarianceWeights, Weighting
from coevolve.errors import EventError, InputError, UnknownProtocolError, nearest
from coevolve.registry import find, names

__all__ = [
    "SearchProtocol",
    "protocol",
    "protocol_from_json",
    "protocols",
    "register",
    "register_part",
]

_PARTS: dict[str, Callable[..., Any]] = {
    part.__name__: part
    for part in (
        UniformWeights,
        VarianceWeights,
        InformationWeights,
        UniformDesign,
        SuccessiveDesign,
        PivotalDesign,
        RawMean,
        HorvitzThompson,
        Hajek,
        Difference,
        PhaseZeroRule,
        Share,
        WholePool,
        HighestEstimate,
        Joint,
        AdaptiveShare,
        CostShare,
        MostEvaluated,
    )
}


def register_part[Part: type](part: Part) -> Part:
    """Let events name a class of parts without its module, as they name the built-in ones.

    A decorator for classes that a package with protocols of its own brings.
    """
    if _PARTS.setdefault(part.__name__, part) is not part:
        raise InputError(f"another part is already registered as {part.__name__!r}.")
    return part


def part_to_json(part: Any) -> dict[str, Any]:
    """A part of a protocol by the name of its class and its fields."""
    if not is_dataclass(part) or isinstance(part, type):
        raise InputError(f"a part of a protocol must be a dataclass, got {part!r}.")
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    try:
        plain: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"the fields of {part!r} must be plain JSON: {error}.") from error
    kind: type = type(part)
    built_in = _PARTS.get(kind.__name__) is kind
    name = kind.__name__ if built_in else f"{kind.__module__}.{kind.__qualname__}"
    return {"part": name} | plain


def part_from_json(data: dict[str, Any]) -> Any:
    """The built-in or registered part that `part_to_json` described."""
    name = data["part"]
    if name not in _PARTS:
        protocols()  # installed packages register their parts when they are loaded
    if name not in _PARTS:
        raise EventError(
            f"the events use {name!r}, which is not a built-in part; pass the protocol they were "
            "made with: Selector.from_events(events, protocol=...)."
        )
    return _PARTS[name](**{key: value for key, value in data.items() if key != "part"})


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


BUILT_IN = (
    SearchProtocol(
        name="full",
        summary="Meta-Harness: every candidate on every task",
        estimator=Hajek(),
        allocation=WholePool(),
    ),
    SearchProtocol(
        name="naive",
        summary="one random subset, drawn once; raw mean",
        design=UniformDesign(redraws=False),
    ),
    SearchProtocol(
        name="random-resample",
        summary="a new random subset every round; raw mean",
    ),
    SearchProtocol(
        name="random-estimate",
        summary="a new random subset every round; full-set estimate per pool",
        estimator=PhaseZeroRule(),
    ),
    SearchProtocol(
        name="task-coevolve",
        summary="the paper: variance-weighted subset every round; full-set estimate per pool",
        weighting=VarianceWeights(),
        design=SuccessiveDesign(),
        estimator=PhaseZeroRule(),
    ),
    SearchProtocol(
        name="joint",
        summary="the paper's draws; all candidates re-estimated by one model of all outcomes",
        weighting=VarianceWeights(),
        design=SuccessiveDesign(),
        estimator=Joint(),
    ),
    SearchProtocol(
        name="adaptive",
        summary="joint, spending the same budget where contenders are hard to tell apart",
        weighting=InformationWeights(),
        design=PivotalDesign(),
        estimator=Joint(),
        allocation=AdaptiveShare(),
    ),
    SearchProtocol(
        name="cost-aware",
        summary="joint, with draws by information per cost, for a share of the cost of all tasks",
        weighting=VarianceWeights(cost=1.0),
        design=SuccessiveDesign(),
        estimator=Joint(),
        allocation=CostShare(),
    ),
)


_registered: dict[str, SearchProtocol] = {built_in.name: built_in for built_in in BUILT_IN}
PLUGS = _registered
"""Every protocol that can be found by name; `coevolve.registry` reads it."""


def protocol(name: str) -> SearchProtocol:
    """The protocol registered under a name.

    >>> protocol("task-coevolve").weighting
    VarianceWeights(floor=0.125, bonus=0.025, window=None, cost=0.0)
    """
    found = _find(name)
    if found is None:
        known = (*_registered, *_installed())
        raise UnknownProtocolError(
            f"no protocol is named {name!r}; there are {', '.join(known)}." + nearest(name, known)
        )
    return found


def protocols() -> tuple[SearchProtocol, ...]:
    """Every known protocol: built-in, registered, and those of installed packages.

    >>> [known.name for known in protocols()][:3]
    ['full', 'naive', 'random-resample']
    """
    return (*_registered.values(), *(find("protocols", name) for name in _installed()))


def _find(name: str) -> SearchProtocol | None:
    found: SearchProtocol | None = _registered.get(name) if isinstance(name, str) else None
    return find("protocols", name) if found is None and name in _installed() else found


def _installed() -> list[str]:
    """Names of the protocols that installed packages declare as entry points."""
    return [name for name in names("protocols") if name not in _registered]


def register(new: SearchProtocol) -> None:
    """Make a protocol known by its name.

    >>> from dataclasses import replace
    >>> from coevolve.core.designs import PivotalDesign
    >>> register(replace(protocol("task-coevolve"), name="my-pivotal", design=PivotalDesign()))
    >>> protocol("my-pivotal").design
    PivotalDesign()
    """
    if not isinstance(new, SearchProtocol):
        raise InputError(f"register takes a SearchProtocol, got {new!r}.")
    known = _registered.get(new.name)
    if known is not None and known != new:
        raise InputError(f"another protocol is already registered as {new.name!r}.")
    _registered[new.name] = new


def protocol_from_json(
    data: dict[str, Any], known: SearchProtocol | None = None
) -> SearchProtocol:
    """The protocol `SearchProtocol.to_json` described.

    Parts that `known`, or else the protocol registered under the name, describes alike are taken
    from there and may be the user's own; the others must be built in. A `known` that differs in
    more than its allocation is refused.
    """
    if known is not None:
        for key, value in known.to_json().items():
            if key != "allocation" and data[key] != value:
                raise EventError(f"{key} was {data[key]} in the events, but is {value} now.")
    known = known or _find(data["name"])
    own = known.to_json() if known else {}
    parts = {
        key: getattr(known, key) if own.get(key) == value else part_from_json(value)
        for key, value in data.items()
        if key != "name"
    }
    return SearchProtocol(name=data["name"], summary=known.summary if known else "", **parts)
