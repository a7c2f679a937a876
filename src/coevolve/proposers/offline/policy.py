"""Which recipes to propose: seeds first, then what is promising or unknown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coevolve.proposers.base import View
from coevolve.proposers.offline import reasons
from coevolve.proposers.offline.evidence import Finding, findings, untried
from coevolve.proposers.offline.known import Known, Tried, surrogate_of
from coevolve.proposers.offline.moves import crossings, neighbours, wide
from coevolve.proposers.offline.recipe import Recipe, effort
from coevolve.proposers.offline.seeds import SEEDS
from coevolve.proposers.offline.surrogate import Floats
from coevolve.search.candidate import Kind

FIRST = 4
"""Seeds that are proposed before anything else."""
PLAN = ("refine", "cross", "refine", "explore")
"""What is done in turn afterwards."""
COST = 0.003
"""What a prediction must gain to be worth as much reading as one more question."""
HUNCH = 0.3
"""What a block gains that would mend all failures of a parent."""
BESIDE = 0.01
"""What every further change must gain, for it is better to change one thing at a time."""
PARENTS = 3
"""Candidates whose neighbours are compared, to refine one of them."""
HOPE, CURIOSITY = 0.3, 1.5
"""How many standard deviations above its mean a recipe is taken for, to refine and to explore."""


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
        made.append(_Turn(view, known, made, generator).idea())
    return made


def drawn(view: View, count: int) -> list[Idea]:
    """Recipes near a seed each, drawn without regard to anything that was evaluated."""
    generator = np.random.default_rng(view.seed)
    seeds, made = list(SEEDS.values()), dict[Recipe, Idea]()
    while len(made) < count:
        seed = seeds[int(generator.integers(len(seeds)))]
        for recipe in wide(seed, generator, count=1):
            text = f"A plain harness with {reasons.changed(seed, recipe)}, drawn by chance."
            made[recipe] = Idea(recipe=recipe, hypothesis=text, kind="explore")
    return list(made.values())


class _Turn:
    """The search for one idea, beside those that the round has already."""

    def __init__(
        self, view: View, known: Known, beside: Sequence[Idea], generator: np.random.Generator
    ) -> None:
        self._view, self._known, self._generator = view, known, generator
        self._beside = beside
        others = [idea.recipe for idea in beside]
        self._taken = known.recipes.union(others)
        self._surrogate = surrogate_of(known.tried, others)

    def idea(self) -> Idea:
        """Something new, in the way whose turn it is, or else by chance."""
        left = [(text, seed) for text, seed in SEEDS.items() if seed not in self._taken]
        if len(self._taken) < FIRST and left:
            text, seed = left[0]
            return Idea(recipe=seed, hypothesis=text, kind="explore")
        ways: dict[str, Callable[[], Idea | None]] = {
            "refine": self._refined,
            "cross": self._crossed,
            "explore": self._explored,
        }
        way = PLAN[(len(self._taken) - FIRST) % len(PLAN)]
        return ways[way]() or self._refined() or self._random()

    def _refined(self) -> Idea | None:
        """The most promising neighbour of one of the best candidates."""
        options = []
        for parent in self._best(PARENTS):
            changed = self._changed(parent)
            near = [
                made
                for made in self._new(neighbours(parent.recipe, self._generator))
                if changed.isdisjoint(parent.recipe.differs(made))
            ]
            if near:
                found = untried(
                    findings(self._view, parent.standing, parent.recipe),
                    parent.recipe,
                    self._taken,
                )
                hunches = np.array([_hunch(parent.recipe, made, found) for made in near])
                worth = self._worth(near, HOPE) + hunches
                place = int(np.argmax(worth))
                options.append((worth[place], parent, near[place], found))
        if not options:
            return None
        _, parent, best, found = max(options, key=lambda option: option[0])
        text = reasons.refined(parent, best, found, self._surrogate)
        return Idea(recipe=best, hypothesis=text, kind="exploit", parents=(parent.name,))

    def _crossed(self) -> Idea | None:
        """The most promising mixture of a good candidate and one that makes up for it."""
        parent = self._parent()
        partner = self._partner(parent) if parent else None
        if parent is None or partner is None:
            return None
        mixed = self._new(crossings(parent.recipe, partner.recipe, self._generator))
        if not mixed:
            return None
        best = mixed[int(np.argmax(self._worth(mixed, HOPE)))]
        text = reasons.crossed(parent, partner, best)
        names = (parent.name, partner.name)
        return Idea(recipe=best, hypothesis=text, kind="exploit", parents=names)

    def _explored(self) -> Idea | None:
        """Several new blocks in a good candidate: those of which least is known."""
        parent = self._parent()
        far = self._new(wide(parent.recipe, self._generator)) if parent else []
        if parent is None or not far:
            return None
        best = far[int(np.argmax(self._worth(far, CURIOSITY)))]
        text = reasons.explored(parent, best, [one.recipe for one in self._known.tried])
        return Idea(recipe=best, hypothesis=text, kind="explore", parents=(parent.name,))

    def _random(self) -> Idea:
        """Any recipe that is new."""
        while (made := Recipe.drawn(self._generator)) in self._taken:
            pass
        return Idea(recipe=made, hypothesis="A mixture that nobody has tried.", kind="explore")

    def _changed(self, parent: Tried) -> set[str]:
        """The slots that the round changes in a parent: another strength is no other idea."""
        beside = [idea.recipe for idea in self._beside if parent.name in idea.parents]
        return {slot for recipe in beside for slot in parent.recipe.differs(recipe)}

    def _parent(self) -> Tried | None:
        """A good candidate."""
        return next(iter(self._best(1)), None)

    def _best(self, count: int) -> list[Tried]:
        """Good candidates: the best by one draw from what each of them may be worth."""
        tried = self._known.tried
        mean, sd = self._surrogate.of([one.recipe for one in tried])
        draws = self._generator.normal(mean, sd)
        return [tried[place] for place in np.argsort(-draws)[:count]]

    def _partner(self, parent: Tried) -> Tried | None:
        """A candidate that is good, and solves what the parent fails."""
        others = [one for one in self._known.tried if one.recipe != parent.recipe]
        if not others:
            return None
        mean, _ = self._surrogate.of([one.recipe for one in others])
        gains = [reasons.makes_up(parent.standing, one.standing)[2] for one in others]
        return others[int(np.argmax(mean + gains))]

    def _worth(self, recipes: Sequence[Recipe], hope: float) -> Floats:
        mean, sd = self._surrogate.of(recipes)
        efforts = np.array([effort(recipe) for recipe in recipes])
        return np.asarray(mean + hope * sd - COST * efforts)

    def _new(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        return [recipe for recipe in recipes if recipe not in self._taken]


def _hunch(parent: Recipe, made: Recipe, found: Sequence[Finding]) -> float:
    """What the failures of a parent say for a recipe, less what it changes beside."""
    beside = len(parent.differs(made)) - 1
    gains = [
        HUNCH * finding.weight
        for finding in found
        for slot, block in finding.mends
        if getattr(made, slot) == block != getattr(parent, slot)
    ]
    return max(gains, default=0.0) - BESIDE * beside
