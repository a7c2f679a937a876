"""Which recipes to propose: seeds first, then what is promising or unknown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coevolve.proposers.base import View
from coevolve.proposers.offline import reasons
from coevolve.proposers.offline.evidence import Finding, findings
from coevolve.proposers.offline.known import Known, Tried, surrogate_of
from coevolve.proposers.offline.moves import crossings, neighbours, wide
from coevolve.proposers.offline.recipe import Recipe, effort
from coevolve.proposers.offline.seeds import SEEDS
from coevolve.search.candidate import Kind

FIRST = 4
"""Seeds that are proposed before anything else."""
PLAN = ("refine", "cross", "refine", "explore")
"""What is done in turn afterwards."""
COST = 0.004
"""What a prediction that takes as long as one more plain choice must gain to be worth it."""
DARING = 0.5
KAPPA = 0.5
CURIOUS = 1.5
HUNCH = 0.15
"""What a block gains that would mend all failures of a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """A recipe to propose, and why."""

    recipe: Recipe
    hypothesis: str
    kind: Kind
    parents: tuple[str, ...] = ()


def ideas(view: View, count: int) -> list[Idea]:
    """New recipes for a round; none of them was proposed before."""
    generator = np.random.default_rng(view.seed)
    known = Known.of(view)
    made: list[Idea] = []
    while len(made) < count:
        taken = known.recipes | {idea.recipe for idea in made}
        turn = _Turn(view, known, tuple(idea.recipe for idea in made), taken, generator)
        made.append(turn.idea())
    return made


class _Turn:
    """The search for one idea."""

    def __init__(
        self,
        view: View,
        known: Known,
        beside: tuple[Recipe, ...],
        taken: frozenset[Recipe],
        generator: np.random.Generator,
    ) -> None:
        self._view, self._known, self._taken, self._generator = view, known, taken, generator
        self._surrogate = surrogate_of(known.tried, beside) if beside else known.surrogate

    def idea(self) -> Idea:
        """Something new, in the way whose turn it is, or else by chance."""
        left = [(text, seed) for text, seed in SEEDS.items() if seed not in self._taken]
        if len(self._taken) < FIRST and left:
            text, seed = left[self._generator.integers(len(left))]
            return Idea(recipe=seed, hypothesis=text, kind="explore")
        ways: dict[str, Callable[[], Idea | None]] = {
            "refine": self._refined,
            "cross": self._crossed,
            "explore": self._explored,
        }
        way = PLAN[(len(self._taken) - FIRST) % len(PLAN)]
        return ways[way]() or self._refined() or self._explored() or self._random()

    def _refined(self) -> Idea | None:
        """The most promising neighbour of a good candidate."""
        parent = self._parent()
        if parent is None:
            return None
        found = findings(self._view, parent.standing, parent.recipe)
        near = self._new(neighbours(parent.recipe, self._generator))
        if not near:
            return None
        worth = self._worth(near, KAPPA) + [_hunch(parent.recipe, made, found) for made in near]
        best = near[int(np.argmax(worth))]
        text = reasons.refined(parent, best, found, self._surrogate)
        return Idea(recipe=best, hypothesis=text, kind="exploit", parents=(parent.name,))

    def _crossed(self) -> Idea | None:
        """The most promising mixture of a good candidate and one that makes up for it."""
        parent = self._parent()
        partner = parent and self._partner(parent)
        if parent is None or partner is None:
            return None
        mixed = self._new(crossings(parent.recipe, partner.recipe, self._generator))
        if not mixed:
            return None
        best = mixed[int(np.argmax(self._worth(mixed, KAPPA)))]
        text = reasons.crossed(parent, partner, best)
        names = (parent.name, partner.name)
        return Idea(recipe=best, hypothesis=text, kind="exploit", parents=names)

    def _explored(self) -> Idea | None:
        """A recipe of which little is known and something may be hoped."""
        parent = self._parent()
        far = self._new(wide(self._generator, parent and parent.recipe))
        if not far:
            return None
        best = far[int(np.argmax(self._worth(far, CURIOUS)))]
        tried = [one.recipe for one in self._known.tried]
        return Idea(recipe=best, hypothesis=reasons.explored(best, tried), kind="explore")

    def _random(self) -> Idea:
        """Any recipe that is new."""
        while (made := Recipe.drawn(self._generator)) in self._taken:
            pass
        return Idea(recipe=made, hypothesis="A mixture that nobody has tried.", kind="explore")

    def _parent(self) -> Tried | None:
        """A good candidate: the best of one draw from what each of them may be worth."""
        tried = self._known.tried
        if not tried:
            return None
        mean, sd = self._surrogate.of([one.recipe for one in tried])
        return tried[int(np.argmax(self._generator.normal(mean, DARING * sd)))]

    def _partner(self, parent: Tried) -> Tried | None:
        """The candidate that solves most of what the parent fails, for its own level."""
        others = [one for one in self._known.tried if one.recipe != parent.recipe]
        if not others:
            return None
        gains = [
            one.estimate.value + reasons.makes_up(parent.standing, one.standing)[2]
            for one in others
        ]
        return others[int(np.argmax(gains))]

    def _worth(self, recipes: Sequence[Recipe], curiosity: float) -> np.ndarray:
        mean, sd = self._surrogate.of(recipes)
        efforts = np.array([effort(recipe) for recipe in recipes])
        return np.asarray(mean + curiosity * sd - COST * efforts)

    def _new(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        return [recipe for recipe in recipes if recipe not in self._taken]


def _hunch(parent: Recipe, made: Recipe, found: Sequence[Finding]) -> float:
    """What the failures of a parent say for a recipe."""
    gains = [
        HUNCH * finding.share
        for finding in found
        for slot, block in finding.mends
        if getattr(made, slot) == block != getattr(parent, slot)
    ]
    return max(gains, default=0.0)
