"""Protocols: a weighting, a design, an estimator, an allocation and a choice under one name."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from coevolve import registry
from coevolve.core.allocation import AdaptiveShare, Allocation, CostShare, Share, WholePool
from coevolve.core.choice import ChoiceRule, HighestEstimate
from coevolve.core.designs import (
    DesignMethod,
    PivotalDesign,
    SuccessiveDesign,
    UniformDesign,
)
from coevolve.core.disclosure import Disclosure
from coevolve.core.estimators import (
    Estimator,
    EstimatorRule,
    Hajek,
    PhaseZeroRule,
    RawMean,
)
from coevolve.core.joint import Joint
from coevolve.core.posterior import JointModel
from coevolve.core.protocol_settings import PARTS, changed
from coevolve.core.weights import InformationWeights, UniformWeights, VarianceWeights, Weighting
from coevolve.errors import EventError, InputError, UnknownProtocolError, nearest

__all__ = [
    "SearchProtocol",
    "protocol",
    "protocol_from_json",
    "protocols",
    "register",
    "register_part",
]

_PARTS: dict[str, Callable[..., Any]] = {
    type(part).__name__: type(part) for named in PARTS.values() for part in named.values()
}


_PARTS["PairedDesign"] = PivotalDesign
"""For runs of an earlier version, whose first draws were pivotal; their draws are recorded."""


def register_part[Part: type](part: Part) -> Part:
    """Register a class of parts; events then name it without its module, like a built-in part.

    A decorator for the classes of an installed package with protocols as entry points.
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
    return {"part": _part_name(type(part))} | plain


def part_from_json(data: dict[str, Any], known: object = None) -> Any:
    """The part that `part_to_json` described: built in, registered, or of the class of `known`."""
    name = data["part"]
    if name.isidentifier() and name not in _PARTS:
        protocols()  # an installed package registers its parts when it is loaded
    kind = type(known) if _part_name(type(known)) == name else _PARTS.get(name)
    if kind is None:
        raise EventError(
            f"the events use {name!r}, which is not a built-in part; pass the protocol they were "
            "made with, Selector.from_events(events, protocol=...), or register it first "
            "(coevolve.register)."
        )
    if is_dataclass(known) and part_to_json(known) == data:
        return known
    recorded = {key: value for key, value in data.items() if key != "part"}
    upgraded = getattr(kind, "upgraded", None)  # earlier versions recorded other fields
    return kind(**(recorded if upgraded is None else upgraded(recorded)))


def _part_name(kind: type) -> str:
    """The name of a part's class in events; with its module unless it is built in."""
    return kind.__name__ if _PARTS.get(kind.__name__) is kind else registry.class_name(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProtocol:
    """How tasks are selected for candidates, and how candidates are estimated and chosen.

    Args:
        name: The name to find it by.
        summary: A description in one line.
        weighting: The weight of each task in a draw.
        design: How tasks are drawn by these weights, and with what probability.
        estimator: How the full-set score is estimated; or a rule that picks an estimator, or a
            joint model of all outcomes.
        allocation: How many tasks of each pool a round draws, and what is evaluated further.
        choice: Which candidate wins.

    `protocol` changes the settings of a known one. Replace any of the five parts by one of your
    own with `dataclasses.replace`:

    >>> from dataclasses import replace
    >>> from coevolve import protocol
    >>> from coevolve.core.designs import PivotalDesign
    >>> faithful = protocol("task-coevolve", inclusion="monte-carlo", rounding="floor")
    >>> pivotal = replace(faithful, design=PivotalDesign())
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
                f"as Joint() ('joint' in settings), not {self.estimator!r}."
            )

    @property
    def needs_history(self) -> bool:
        """Whether Phase 0 must come before the first draw."""
        if isinstance(self.estimator, EstimatorRule):
            return True
        return self.weighting.needs_history or self.estimator.needs_history

    @property
    def draws_by_model(self) -> bool:
        """Whether draws depend on a joint model."""
        return self.weighting.needs_model or bool(getattr(self.allocation, "needs_model", False))

    def disclosure(self, draw_per: str = "round") -> Disclosure:
        """What proposers are told about draws and scores.

        >>> protocol("naive").disclosure().estimated
        False
        """
        return Disclosure.of(
            weighting=self.weighting,
            design=self.design,
            estimator=self.estimator,
            allocation=self.allocation,
            draw_per=draw_per,
        )

    def to_json(self) -> dict[str, Any]:
        """The name and the five parts as plain JSON."""
        return {"name": self.name} | {part: part_to_json(getattr(self, part)) for part in PARTS}


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
        summary="joint, with more of the same budget for contenders that are hard to tell apart",
        weighting=InformationWeights(),
        design=PivotalDesign(),
        estimator=Joint(),
        allocation=AdaptiveShare(),
    ),
    SearchProtocol(
        name="cost-aware",
        summary="joint, with draws by variance per cost, up to a share of the cost of all tasks",
        weighting=VarianceWeights(cost=1.0),
        design=SuccessiveDesign(),
        estimator=Joint(),
        allocation=CostShare(),
    ),
)


PLUGS: dict[str, SearchProtocol] = {built_in.name: built_in for built_in in BUILT_IN}
"""Every protocol that can be found by name, built in or registered."""


def protocol(name: str, **settings: Any) -> SearchProtocol:
    """The protocol of a name: built in, registered, an entry point, or `package.module:name`.

    Args:
        name: The name.
        settings: Other values for its settings: parts by name, such as `estimator="hajek"`, and
            fields of its parts, such as `rounding="floor"`. `coevolve protocols NAME` lists them.

    >>> protocol("task-coevolve").weighting
    VarianceWeights(floor=0.125, bonus=0.025, window=None, cost=0.0)
    >>> protocol("task-coevolve", rounding="floor", inclusion="monte-carlo").design
    SuccessiveDesign(inclusion='monte-carlo', repetitions=4000)
    """
    if not isinstance(name, str) or not (
        name in PLUGS or registry.REFERENCE.match(name) or name in registry.names("protocols")
    ):
        known = registry.names("protocols")
        raise UnknownProtocolError(
            f"unknown protocol {name!r}; use one of {', '.join(known)}, register your own with "
            f"coevolve.register, or write package.module:name.{nearest(str(name), known)}"
        )
    return changed(checked_protocol(name, registry.find("protocols", name)), settings)


def checked_protocol(name: str, found: object) -> SearchProtocol:
    """The object found under a name; InputError unless it is a protocol."""
    if not isinstance(found, SearchProtocol):
        raise InputError(
            f"{name!r} must be a SearchProtocol, but is of type {type(found).__name__}."
        )
    return found


def protocols() -> tuple[SearchProtocol, ...]:
    """Every protocol that has a name: built-in ones first, then registered and installed ones.

    >>> [known.name for known in protocols()][:3]
    ['full', 'naive', 'random-resample']
    """
    return tuple(protocol(name) for name in registry.names("protocols"))


def register(new: SearchProtocol) -> None:
    """Register a protocol under its name.

    >>> from dataclasses import replace
    >>> from coevolve.core.designs import PivotalDesign
    >>> register(replace(protocol("task-coevolve"), name="my-pivotal", design=PivotalDesign()))
    >>> protocol("my-pivotal").design
    PivotalDesign()
    """
    if not isinstance(new, SearchProtocol):
        raise InputError(f"register takes a SearchProtocol, got {new!r}.")
    known = PLUGS.get(new.name)
    # A file that is loaded again defines the same classes again.
    if known is not None and known != new and known.to_json() != new.to_json():
        raise InputError(f"another protocol is already registered as {new.name!r}.")
    PLUGS[new.name] = new


def protocol_from_json(
    data: dict[str, Any], known: SearchProtocol | None = None
) -> SearchProtocol:
    """The protocol `SearchProtocol.to_json` described.

    Parts may be the user's own if `known`, or else the protocol registered under the name, has
    parts of the same classes; other parts must be built in. A `known` that differs in more than
    its allocation is refused.
    """
    if known is not None:
        for key, value in known.to_json().items():
            if key != "allocation" and data[key] != value:
                raise EventError(f"{key} was {data[key]} in the events, but is {value} now.")
    if known is None:
        known = PLUGS.get(data["name"])
    if known is None and data["name"] in registry.names("protocols"):
        known = protocol(data["name"])
    parts = {
        key: part_from_json(value, getattr(known, key, None))
        for key, value in data.items()
        if key != "name"
    }
    return SearchProtocol(name=data["name"], summary=known.summary if known else "", **parts)
