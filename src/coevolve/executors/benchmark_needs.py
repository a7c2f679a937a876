"""What a benchmark needs of its executor: limits, time, sandboxes, and how its workers end."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from coevolve.errors import ConfigError, InputError, nearest
from coevolve.executors.isolation import Limits

TRIAL_SECONDS = 600.0
"""The time limit of a trial, unless the benchmark or the user sets another."""
GRACE_SECONDS = 0.5
"""How long a worker that is ended may clean up, unless its benchmark needs longer."""

_LIMITS = tuple(limit.name for limit in fields(Limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a benchmark states in its attributes; the user's settings override limits and time.

    Args:
        limits: Some of the `Limits` of its candidates, by name.
        trial_seconds: The time limit of one trial.
        fresh_sandbox: Whether every trial needs a new sandbox.
        grace_seconds: How long a worker that is ended may take to clean up.

    >>> Needs(limits={"asks": 100_000}).limited({"seconds": 5}).asks
    100000
    """

    limits: Mapping[str, Any] = field(default_factory=dict)
    trial_seconds: float = TRIAL_SECONDS
    fresh_sandbox: bool = False
    grace_seconds: float = GRACE_SECONDS

    def limited(self, given: Mapping[str, Any] | None = None) -> Limits:
        """The limits, with those that the user has given; None values are left out."""
        own = {name: value for name, value in (given or {}).items() if value is not None}
        return Limits(**{**self.limits, **own})


def needs_of(benchmark: object) -> Needs:
    """What a benchmark needs, from its attributes of these names.

    Raises:
        ConfigError: An attribute has an invalid value.

    >>> class Agents:
    ...     limits = {"asks": 100_000, "answer_mb": 32}
    ...     trial_seconds = 7200
    >>> needs_of(Agents()).trial_seconds
    7200.0
    """
    fresh = getattr(benchmark, "fresh_sandbox", False)
    if not isinstance(fresh, bool):
        raise ConfigError(f"a benchmark's fresh_sandbox must be True or False, got {fresh!r}.")
    needs = Needs(
        limits=_limits(getattr(benchmark, "limits", {})),
        trial_seconds=_seconds(benchmark, "trial_seconds", TRIAL_SECONDS),
        fresh_sandbox=fresh,
        grace_seconds=_seconds(benchmark, "grace_seconds", GRACE_SECONDS),
    )
    try:
        needs.limited()
    except InputError as error:
        raise ConfigError(f"a benchmark's limits are invalid: {error}") from error
    return needs


def _limits(given: object) -> dict[str, Any]:
    if isinstance(given, Limits):
        default = asdict(Limits())
        return {name: value for name, value in asdict(given).items() if value != default[name]}
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"a benchmark's limits must map names to numbers, such as {{'asks': 100_000}}, got "
            f"{given!r:.80}."
        )
    for name in given:
        if name not in _LIMITS:
            raise ConfigError(
                f"a benchmark's limits have no {name!r}.{nearest(str(name), _LIMITS)}"
            )
    return dict(given)


def _seconds(benchmark: object, name: str, default: float) -> float:
    value = getattr(benchmark, name, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value > 0):
        raise ConfigError(f"a benchmark's {name} must be a positive number, got {value!r:.80}.")
    return float(value)
