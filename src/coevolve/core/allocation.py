"""How many tasks a round may draw."""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, Protocol, Self, runtime_checkable

from coevolve.core.pool import Pool
from coevolve.errors import InputError


@runtime_checkable
class Allocation(Protocol):
    """Sets how many tasks a round draws from each pool."""

    def at(self, fraction: float) -> Self:
        """The same allocation at another fraction ρ."""
        ...

    def sizes(self, pool: Pool) -> tuple[int, ...]:
        """Number of tasks to draw from each pool, in the order of `pool.names`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A fixed share of every pool: m = ⌈ρN⌉, at least 1.

    Args:
        fraction: ρ in (0, 1].
        rounding: "ceil", or "floor", which the paper's 7% rows use.

    >>> pool = Pool.grouped({"uspto": map(str, range(30)), "law": map(str, range(30, 80))})
    >>> Share(fraction=0.07).sizes(pool), Share(fraction=0.07, rounding="floor").sizes(pool)
    ((3, 4), (2, 3))
    """

    fraction: float = 0.2
    rounding: Literal["ceil", "floor"] = "ceil"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", _checked(self.fraction))
        if self.rounding not in ("ceil", "floor"):
            raise InputError(f"rounding must be 'ceil' or 'floor', got {self.rounding!r}.")

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool) -> tuple[int, ...]:
        return tuple(self._size(len(pool.members(name))) for name in pool.names)

    def _size(self, tasks: int) -> int:
        # Rounded first, for 0.07 * 100 is 7.000000000000001 in floating point.
        exact = round(self.fraction * tasks, 9)
        return max(1, math.ceil(exact) if self.rounding == "ceil" else math.floor(exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePool:
    """Every task, every round, at any fraction.

    >>> WholePool().sizes(Pool(["a", "b", "c"]))
    (3,)
    """

    def at(self, fraction: float) -> Self:
        _checked(fraction)
        return self

    def sizes(self, pool: Pool) -> tuple[int, ...]:
        return tuple(len(pool.members(name)) for name in pool.names)


def _checked(fraction: object) -> float:
    number = float(fraction) if isinstance(fraction, Real) else math.nan
    if isinstance(fraction, bool) or not 0 < number <= 1:
        raise InputError(f"fraction must be in (0, 1], got {fraction!r}.")
    return number
