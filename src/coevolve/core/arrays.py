"""Array types, and ranks of values."""

import math

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


DECIMALS = 12
"""Values that agree to this many decimals differ by rounding only, and are tied."""


def ranks(values: Floats) -> Floats:
    """Ranks from 1 for the lowest; ties share the mean of their ranks.

    >>> ranks(np.array([0.3, 0.1, 0.3, 0.9])).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    rounded = np.round(np.asarray(values, dtype=np.float64), DECIMALS)
    _, place, count = np.unique(rounded, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def spearman(a: Floats, b: Floats) -> float:
    """Correlation of the ranks; NaN where one side does not vary.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.9]))
    1.0
    """
    x, y = ranks(a), ranks(b)
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip(x @ y / size, -1, 1)) if size > 0 else math.nan


def kendall(a: Floats, b: Floats) -> float:
    """Kendall's τ_b; NaN where one side does not vary.

    τ_b = (C - D) / √((P - T_a)(P - T_b)): C and D count the concordant and discordant of all P
    pairs, T_a and T_b the pairs tied on either side.

    >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.9, 0.2])), 3)
    0.333
    """
    x, y = ranks(a), ranks(b)
    signs_x, signs_y = (np.sign(v[:, None] - v[None, :]) for v in (x, y))
    size = float(np.sqrt((signs_x**2).sum() * (signs_y**2).sum()))
    return float((signs_x * signs_y).sum() / size) if size > 0 else math.nan
