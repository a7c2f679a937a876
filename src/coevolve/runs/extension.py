"""New limits for a run: more rounds, or higher caps of its budget."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError, nearest
from coevolve.search.budget import CAPS, WHOLE_CAPS, Settings
from coevolve.search.journal import Recorder
from coevolve.search.run_state import RunState

LIMITS = ("rounds", *CAPS)
"""Names of the limits of a run."""


def limits_of(settings: Settings) -> dict[str, Any]:
    """The limits of a run by name; None where there is no cap.

    >>> limits_of(Settings(rounds=3))["rounds"]
    3
    """
    return {"rounds": settings.rounds, **settings.budget.to_json()}


def limit_reached(state: RunState) -> str:
    """The limit that ended a run; empty if it has not ended."""
    why = "" if state.ended is None else str(state.ended["why"])
    return "rounds" if why == "finished" else why.removeprefix("budget: ")


def _total(now: float, increase: float) -> str:
    """The total that a value is the increase to, if it can be one."""
    total = round(now + increase, 2)
    return f": {total:,}" if 0 < increase < now < total else ""


def check_limits(state: RunState, limits: Mapping[str, float | None]) -> None:
    """Refuse limits that a run cannot be extended with: rounds, or caps; None means no cap.

    Raises:
        InputError: One is unknown or not above the current limit, or they do not let the run
            continue.
    """
    if not limits:
        raise InputError(f"extend needs a new limit: {', '.join(LIMITS)}.")
    for name, value in limits.items():
        if name not in LIMITS:
            raise InputError(
                f"unknown limit {name!r}; use {', '.join(LIMITS)}.{nearest(name, LIMITS)}"
            )
        now = limits_of(state.settings)[name]
        what = "the current limit of"
        if now is None:
            now, what = getattr(state.spending(), name), "what the run has spent,"
        whole = name in ("rounds", *WHOLE_CAPS)
        if whole and not (value is None or is_whole(value, least=1)):
            raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")
        if value is not None and not value > now:
            raise InputError(
                f"{name} must be above {what} {now:,}, got {value!r}; pass the new total, not the "
                f"increase{_total(now, value)}."
            )
    needed = limit_reached(state)
    if needed and needed not in limits:
        raise InputError(f"the run ended at its limit of {needed}; raise {needed}.")


def extend(recorder: Recorder, limits: Mapping[str, float | None]) -> None:
    """Record new limits of a run, which `check_limits` has to accept."""
    state = recorder.state
    check_limits(state, limits)
    caps: dict[str, Any] = {name: limits[name] for name in CAPS if name in limits}
    budget = replace(state.settings.budget, **caps)
    rounds = limits.get("rounds") or state.settings.rounds
    body = {"rounds": int(rounds), "budget": budget.to_json(), "complete": True}
    recorder.record("extended", body)
