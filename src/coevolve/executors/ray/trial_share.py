"""What one trial reserves on a node of the cluster, and how many trials fit on a node."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coevolve.errors import InputError

_MB = 1_000_000
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialShare:
    """The resources of Ray that one trial reserves.

    Args:
        cpus: Processors; 0 reserves none, if another resource is reserved.
        memory_mb: Memory in megabytes. Ray only counts it; `[isolation]` limits it.
        gpus: Graphics processors; a fraction shares one.
        resources: Custom resources of the cluster, by name.

    >>> share = TrialShare(cpus=2, memory_mb=1000)
    >>> share.fit({"CPU": 9.0, "memory": 3.5e9})
    3
    """

    cpus: float = 1.0
    memory_mb: float = 0.0
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.named().items():
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"a trial cannot reserve {value!r} of {name!r}.")
        if not any(self.named().values()):
            raise InputError(
                "a trial must reserve something, or any number of trials would fit on a node; "
                "set executor.cpus."
            )

    def named(self) -> dict[str, float]:
        """The resources of one trial by the names that Ray gives them."""
        return {
            "CPU": self.cpus,
            "memory": self.memory_mb * _MB,
            "GPU": self.gpus,
            **self.resources,
        }

    def fit(self, free: Mapping[str, float]) -> int:
        """How many trials fit into free resources."""
        wanted = {name: value for name, value in self.named().items() if value}
        return max(
            0,
            min(
                math.floor(free.get(name, 0.0) / value + _ROUNDING)
                for name, value in wanted.items()
            ),
        )

    def options(self, trials: int) -> dict[str, Any]:
        """The reservation of some trials as options of a Ray actor."""
        return {
            "num_cpus": self.cpus * trials,
            "num_gpus": self.gpus * trials,
            "memory": int(self.memory_mb * _MB * trials) or None,
            "resources": {name: value * trials for name, value in self.resources.items()},
        }

    def bundles(self, trials: int) -> list[dict[str, float]]:
        """The reservations of some trials, one each, as the autoscaler takes them."""
        own = {name: value for name, value in self.named().items() if value}
        return [own] * trials
