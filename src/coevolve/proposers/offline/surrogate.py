"""What recipes are worth: a Gaussian process over their blocks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coevolve.proposers.offline.recipe import SLOTS, Recipe

Floats = NDArray[np.float64]

COLUMNS = {
    component: column
    for column, component in enumerate(
        f"{slot}:{block}" for slot, blocks in SLOTS.items() for block in blocks
    )
}
"""The column of each component."""

EXPECTED = {
    "order:nearest-first": -0.05,
    "order:shuffled": -0.03,
    "select:all": -0.1,
    "lead:labels": -0.05,
    "ask:free": -0.1,
    "ask:calibrated": 0.05,
    "ask:standardised": 0.1,
    "trust:1": 0.08,
    "trust:2": 0.08,
}
"""What some blocks add as a rule, with small models (docs/text-classification.md)."""
DISTRACTED = -0.1
"""What is lost, as a rule, where scores that are standardised are taken after examples."""

LEVEL = 0.2
"""Standard deviation of the level of all recipes, beforehand."""
BLOCK = 0.07
"""Standard deviation of what a block adds, beforehand."""
TOGETHER = 0.1
"""Standard deviation of what blocks add together, beyond their sum."""
REACH = 2.0
"""Over how many blocks that differ such a gain carries."""


class Surrogate:
    """Expected scores of recipes, with their uncertainty, from the estimates of others.

    A score is a level, plus what each block adds, plus what the blocks add together; the last is
    alike for recipes that differ in few blocks. All are normal beforehand, an estimate is told
    with its standard error, and so the posterior is normal, too.

    Args:
        recipes: What was tried.
        values: The estimates.
        errors: Their standard errors.

    >>> weak, strong = Recipe(ask="free"), Recipe(ask="choose")
    >>> known = Surrogate([weak, strong], [0.1, 0.6], [0.02, 0.02])
    >>> mean, sd = known.of([strong.given("count", "6"), weak.given("count", "6")])
    >>> bool(mean[0] > mean[1] + 0.2)
    True
    """

    def __init__(
        self, recipes: Sequence[Recipe], values: Sequence[float], errors: Sequence[float]
    ) -> None:
        noise = np.asarray(errors, dtype=float)
        self._rows = rows_of(recipes)
        given = np.asarray(values, dtype=float) - expected(recipes)
        self._center = float(given.mean()) if len(given) else 0.5
        told = _covariance(self._rows, self._rows) + np.diag(noise**2 + 1e-6)
        self._inverse = np.linalg.inv(told)
        self._pull = self._inverse @ (given - self._center)

    def of(self, recipes: Sequence[Recipe]) -> tuple[Floats, Floats]:
        """Expected scores of recipes, and their standard deviations."""
        rows = rows_of(recipes)
        with_told = _covariance(rows, self._rows)
        own = LEVEL**2 + BLOCK**2 * rows.sum(axis=1) + TOGETHER**2
        known = np.einsum("ij,jk,ik->i", with_told, self._inverse, with_told)
        mean = self._center + expected(recipes) + with_told @ self._pull
        return mean, np.sqrt(np.maximum(own - known, 0.0))

    def adds(self, component: str) -> float:
        """What a block adds to a score, as far as is known."""
        learned = BLOCK**2 * self._rows[:, COLUMNS[component]] @ self._pull
        return float(EXPECTED.get(component, 0.0) + learned)


def expected(recipes: Sequence[Recipe]) -> Floats:
    """What recipes add to the level of all, before anything was tried."""
    gains = [sum(EXPECTED.get(one, 0.0) for one in recipe.components) for recipe in recipes]
    distracted = [recipe.shows and recipe.ask == "standardised" for recipe in recipes]
    return np.array(gains) + DISTRACTED * np.array(distracted)


def rows_of(recipes: Sequence[Recipe]) -> Floats:
    """A row for each recipe, with 1 for each of its components."""
    rows = np.zeros((len(recipes), len(COLUMNS)))
    for row, recipe in zip(rows, recipes, strict=True):
        row[[COLUMNS[component] for component in recipe.components]] = 1
    return rows


def _covariance(some: Floats, others: Floats) -> Floats:
    shared = some @ others.T
    apart = (some.sum(axis=1)[:, None] + others.sum(axis=1)[None, :]) / 2 - shared
    covariance: Floats = LEVEL**2 + BLOCK**2 * shared + TOGETHER**2 * np.exp(-apart / REACH)
    return covariance
