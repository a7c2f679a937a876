"""Results as the JSON that goes between worker and engine."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.search.trials import Blame, Fault, Prepared, Result

Json = dict[str, Any]


def fault_to_json(fault: Fault) -> Json:
    """Plain JSON.

    >>> fault_from_json(fault_to_json(Fault(blame=Blame.CANDIDATE, kind="memory", reason="-")))
    Fault(blame=<Blame.CANDIDATE: 'candidate'>, kind='memory', reason='-', advice='')
    """
    return {name: str(getattr(fault, name)) for name in ("blame", "kind", "reason", "advice")}


def fault_from_json(data: Mapping[str, Any]) -> Fault:
    """The fault `fault_to_json` described."""
    return Fault(**{**data, "blame": Blame(data["blame"])})


def done_to_json(done: Result | Prepared) -> Json:
    """Plain JSON, without what is not there."""
    message: Json = {"usage": asdict(done.usage)}
    if done.fault is not None:
        message["fault"] = fault_to_json(done.fault)
    if done.trace is not None:
        message["trace"] = done.trace
    value = done.score if isinstance(done, Result) else done.state
    if value is not None:
        message["value"] = value
    return message


def result_from_json(data: Mapping[str, Any]) -> Result:
    """The result `done_to_json` described.

    >>> result_from_json(done_to_json(Result(score=0.5))) == Result(score=0.5)
    True
    """
    return Result(score=data.get("value"), **_common(data))


def prepared_from_json(data: Mapping[str, Any]) -> Prepared:
    """What `done_to_json` described of checking or preparing."""
    return Prepared(state=data.get("value"), **_common(data))


def _common(data: Mapping[str, Any]) -> Json:
    fault = data.get("fault")
    return {
        "fault": None if fault is None else fault_from_json(fault),
        "usage": Usage(**data["usage"]),
        "trace": data.get("trace"),
    }
