"""The final choice of a run, as its event records it."""

from typing import Any

from coevolve.core.estimate import Estimate
from coevolve.errors import NoOutcomeError
from coevolve.search.state import RunState


def choice_json(state: RunState) -> dict[str, Any]:
    """The winner with its estimate, or nobody and why."""
    try:
        choice = state.selector.best()
    except NoOutcomeError:
        return {"candidate": None, "why": "no candidate has an estimate"}
    return {
        "candidate": choice.candidate,
        "estimate": estimate_json(choice.estimate),
        "tied_with": list(choice.tied_with),
        "why": choice.why,
        "better_start": choice.better_start,
        "left_out": list(choice.left_out),
    }


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """An estimate as plain JSON."""
    return {
        "value": estimate.value,
        "se": estimate.se,
        "low": estimate.low,
        "high": estimate.high,
        "tasks": estimate.tasks,
        "drawn": estimate.drawn,
        "pool_size": estimate.pool_size,
        "method": estimate.method,
        "note": estimate.note,
    }
