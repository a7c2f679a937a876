"""Parts of protocols as plain JSON."""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from coevolve.core.adaptive import AdaptiveShare
from coevolve.core.allocation import CostShare, Share, WholePool
from coevolve.core.choice import HighestEstimate, MostEvaluated
from coevolve.core.designs import PivotalDesign, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Difference, Hajek, HorvitzThompson, RawMean
from coevolve.core.joint import Joint
from coevolve.core.rivals import (
    ExpectedScoreWeights,
    Halving,
    MidRangeWeights,
    PairedRacing,
    Stepwise,
    Thompson,
)
from coevolve.core.rule import PhaseZeroRule
from coevolve.core.weights import InformationWeights, UniformWeights, VarianceWeights
from coevolve.errors import EventError, InputError

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
        Halving,
        PairedRacing,
        Thompson,
        Stepwise,
        MidRangeWeights,
        ExpectedScoreWeights,
    )
}


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
    """The built-in part that `part_to_json` described."""
    name = data["part"]
    if name not in _PARTS:
        raise EventError(
            f"the events use {name!r}, which is not a built-in part; pass the protocol they were "
            "made with: Selector.from_events(events, protocol=...)."
        )
    return _PARTS[name](**{key: value for key, value in data.items() if key != "part"})
