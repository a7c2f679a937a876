"""The offline proposer: seeds first, then recipes that are promising or little known."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.proposers.base import in_thread
from coevolve.proposers.offline.building_blocks import (
    BuildingBlocks,
    Finding,
    Recipe,
    RecipeSpace,
)
from coevolve.proposers.offline.surrogate import Known, Surrogate, Tried
from coevolve.search.candidate import Kind
from coevolve.search.proposal import Proposal, Proposed, Standing, View

PLAN = ("refine", "cross", "refine", "explore")
"""The steps after the seeds, repeated in this order."""
PARENTS = 3
"""Candidates whose neighbours are compared, to refine one of them."""
HOPE, CURIOSITY = 0.3, 1.5
"""Standard deviations added to the mean of a recipe, to refine and to explore."""
HUNCH = 0.3
"""The expected gain of a block that would remedy all failures of a parent."""
FURTHER = 0.01
"""The least gain of each change after the first: single changes are preferred."""
NEAR = 2
"""Two recipes that differ in at most this many slots are similar."""
FEW = 3
"""Added to the number of failed tasks, to discount a share of few tasks."""
TRIES = 1000
"""Random recipes that are drawn to find a new one, at most."""


class OfflineProposer:
    """Proposes recipes of building blocks, without a model.

    It proposes the seeds first. Then it refines good candidates, crosses candidates that fail
    different tasks, and tries blocks that were not tried before. It learns the worth of blocks
    from the estimates, and what to change from the failures. It proposes no recipe twice. It keeps
    no state: the recipe of a candidate is read from its components.

    Args:
        blocks: The building blocks of the benchmark.
        independent: Draw every candidate near a random seed, whatever was evaluated: the control
            that shows the gain of the search.

    >>> import asyncio
    >>> from coevolve.benchmarks.textclass.blocks import TextBlocks
    >>> view = View(round=1, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    ...     trace=lambda candidate, task: None)
    >>> made = asyncio.run(OfflineProposer(TextBlocks()).propose(view, 2)).proposals
    >>> [sorted(proposal.files) for proposal in made]
    [['harness.py'], ['harness.py']]
    """

    def __init__(self, blocks: BuildingBlocks, *, independent: bool = False) -> None:
        self._space = RecipeSpace(blocks)
        self._ideas = drawn if independent else ideas

    async def propose(self, view: View, count: int) -> Proposed:
        """Up to `count` new candidates; fewer when there are no more recipes."""
        found = await in_thread(self._ideas, view, count, self._space)
        return Proposed(proposals=tuple(self._proposal(idea) for idea in found))

    def _proposal(self, idea: "Idea") -> Proposal:
        blocks = self._space.blocks
        return Proposal(
            files=blocks.render(idea.recipe, idea.hypothesis),
            name=blocks.name(idea.recipe),
            parents=idea.parents,
            hypothesis=idea.hypothesis,
            kind=idea.kind,
            components=idea.recipe.components,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """A recipe to propose, and why."""

    recipe: Recipe
    hypothesis: str
    kind: Kind
    parents: tuple[str, ...] = ()


def ideas(view: View, count: int, space: RecipeSpace) -> list[Idea]:
    """New recipes for a round; none of them was proposed before."""
    generator = np.random.default_rng(view.seed)
    known = Known.of(view, space)
    made: list[Idea] = []
    failures, surrogate = Failures(view, space, known), Surrogate.after(space, known.tried)
    while len(made) < count and (new := _Search(failures, surrogate, made, generator).idea()):
        made.append(new)
    return made


def drawn(view: View, count: int, space: RecipeSpace) -> list[Idea]:
    """Recipes near random seeds; the draw ignores all outcomes."""
    generator = np.random.default_rng(view.seed)
    seeds, made = list(space.seeds.values()), dict[Recipe, Idea]()
    for _ in range(TRIES):
        if len(made) == count:
            break
        seed = seeds[int(generator.integers(len(seeds)))]
        for recipe in space.wide(seed, generator, count=1):
            text = f"A simple candidate with {_changes(seed, recipe)}, drawn at random."
            made[recipe] = Idea(recipe=recipe, hypothesis=text, kind="explore")
    return list(made.values())


class Failures:
    """What the failures of candidates suggest; each candidate's are read once in a round."""

    def __init__(self, view: View, space: RecipeSpace, known: Known) -> None:
        self.view, self.space, self.known = view, space, known
        self._found: dict[str, Sequence[Finding]] = {}

    def of(self, parent: Tried) -> Sequence[Finding]:
        """The findings on a candidate."""
        if parent.name not in self._found:
            self._found[parent.name] = self.space.blocks.findings(
                self.view, parent.standing, self.known.recipes
            )
        return self._found[parent.name]


class _Search:
    """The search for one idea, beside those that the round already has."""

    def __init__(
        self,
        failures: Failures,
        surrogate: Surrogate,
        beside: Sequence[Idea],
        generator: np.random.Generator,
    ) -> None:
        self._failures, self._space, self._known = failures, failures.space, failures.known
        self._beside, self._generator = beside, generator
        others = [idea.recipe for idea in beside]
        self._taken = {*self._known.recipes.values(), *others}
        self._places = self._space.places(list(self._taken))
        self._surrogate = surrogate.beside(others)

    def idea(self) -> Idea | None:
        """A new recipe, in the way that is next in the plan; None when there is none left."""
        seeds = self._space.seeds
        left = [(text, seed) for text, seed in seeds.items() if seed not in self._taken]
        if len(self._taken) < len(seeds) and left:
            text, seed = left[0]
            return Idea(recipe=seed, hypothesis=text, kind="explore")
        ways: Mapping[str, Callable[[], Idea | None]] = {
            "refine": self._refined,
            "cross": self._crossed,
            "explore": self._explored,
        }
        way = PLAN[(len(self._taken) - len(seeds)) % len(PLAN)]
        return ways[way]() or self._refined() or self._random()

    def _refined(self) -> Idea | None:
        """The most promising neighbour of one of the best candidates."""
        options = []
        for parent in self._best(PARENTS):
            near = self._beside_others(
                parent, self._new(self._space.neighbours(parent.recipe, self._generator))
            )
            if near:
                found = self._findings(parent)
                worth = self._worth(near, HOPE) + _hunches(self._space, parent.recipe, near, found)
                place = int(np.argmax(worth))
                options.append((worth[place], parent, near[place], found))
        if not options:
            return None
        _, parent, best, found = max(options, key=lambda option: option[0])
        text = _why_refined(parent, best, found, self._surrogate)
        return Idea(recipe=best, hypothesis=text, kind="exploit", parents=(parent.name,))

    def _crossed(self) -> Idea | None:
        """The most promising mixture of a good candidate and one that solves what it fails."""
        parent = next(iter(self._best(1)), None)
        partner = self._partner(parent) if parent else None
        if parent is None or partner is None:
            return None
        mixed = self._new(self._space.crossings(parent.recipe, partner.recipe, self._generator))
        if not mixed:
            return None
        best = mixed[int(np.argmax(self._worth(mixed, HOPE)))]
        text = _why_crossed(parent, partner, best)
        names = (parent.name, partner.name)
        return Idea(recipe=best, hypothesis=text, kind="exploit", parents=names)

    def _explored(self) -> Idea | None:
        """Several new blocks in a good candidate: those that are known least."""
        parent = next(iter(self._best(1)), None)
        far = self._new(self._space.wide(parent.recipe, self._generator)) if parent else []
        if parent is None or not far:
            return None
        best = far[int(np.argmax(self._worth(far, CURIOSITY)))]
        text = _why_explored(parent, best, [one.recipe for one in self._known.tried])
        return Idea(recipe=best, hypothesis=text, kind="explore", parents=(parent.name,))

    def _random(self) -> Idea | None:
        """Any recipe that is new."""
        for _ in range(TRIES):
            if (made := self._space.drawn(self._generator)) not in self._taken:
                text = "A random mixture that was not tried before."
                return Idea(recipe=made, hypothesis=text, kind="explore")
        return None

    def _findings(self, parent: Tried) -> tuple[Finding, ...]:
        """Findings on the failures of a parent, with the remedies that were not tried yet.

        A remedy was tried if a recipe similar to the parent has it. The outcomes of that recipe
        show whether it helps.
        """
        left = []
        for finding in self._failures.of(parent):
            remedies = {
                (slot, block): why
                for (slot, block), why in finding.remedies.items()
                if not self._tried(self._space.changed(parent.recipe, {slot: block}), slot)
            }
            if remedies:
                left.append(replace(finding, remedies=remedies))
        return tuple(left)

    def _tried(self, remedied: Recipe, slot: str) -> bool:
        column, place = self._space.having(slot, remedied[slot])
        differing = (self._places != self._space.places([remedied])).sum(axis=1)
        return bool(((self._places[:, column] == place) & (differing <= NEAR)).any())

    def _beside_others(self, parent: Tried, made: list[Recipe]) -> list[Recipe]:
        """The recipes without another block in a slot that this round already changes."""
        beside = [idea.recipe for idea in self._beside if parent.name in idea.parents]
        if not beside:
            return made
        own = self._space.places([parent.recipe])
        changed = (self._space.places(beside) != own).any(axis=0)
        free = ((self._space.places(made) != own) & changed).any(axis=1)
        return [recipe for recipe, taken in zip(made, free.tolist(), strict=True) if not taken]

    def _best(self, count: int) -> list[Tried]:
        """Good candidates: the best by one draw from the posterior of each."""
        tried = self._known.tried
        mean, sd = self._surrogate.of([one.recipe for one in tried])
        draws = self._generator.normal(mean, sd)
        return [tried[place] for place in np.argsort(-draws)[:count]]

    def _partner(self, parent: Tried) -> Tried | None:
        """A good candidate that solves tasks the parent fails."""
        others = [one for one in self._known.tried if one.recipe != parent.recipe]
        if not others:
            return None
        mean, _ = self._surrogate.of([one.recipe for one in others])
        gains = []
        for one in others:
            solved, failed = _makes_up(parent.standing, one.standing)
            gains.append(solved / (failed + FEW))
        return others[int(np.argmax(mean + gains))]

    def _worth(self, recipes: Sequence[Recipe], hope: float) -> Floats:
        mean, sd = self._surrogate.of(recipes)
        return np.asarray(mean + hope * sd - self._space.costs(recipes))

    def _new(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        return [recipe for recipe in recipes if recipe not in self._taken]


def _hunches(
    space: RecipeSpace, parent: Recipe, made: Sequence[Recipe], found: Sequence[Finding]
) -> Floats:
    """The gain that findings on a parent suggest for recipes, less a cost for further changes."""
    places, own = space.places(made), space.places([parent])
    gains = np.zeros(len(made))
    for finding in found:
        for slot, block in finding.remedies:
            column, place = space.having(slot, block)
            if place != own[0, column]:
                remedied = places[:, column] == place
                gains[remedied] = np.maximum(gains[remedied], HUNCH * finding.weight)
    return np.asarray(gains - FURTHER * ((places != own).sum(axis=1) - 1))


def _makes_up(parent: Standing, partner: Standing) -> tuple[int, int]:
    """How many tasks a partner solves that the parent fails, and of how many."""
    failed = [
        task
        for task, score in parent.outcomes.items()
        if score == 0.0 and isinstance(partner.outcomes.get(task), float)
    ]
    return sum(partner.outcomes[task] == 1.0 for task in failed), len(failed)


def _why_refined(
    parent: Tried, made: Recipe, found: Sequence[Finding], surrogate: Surrogate
) -> str:
    slots = [slot for slot in parent.recipe.differs(made) if made.has(slot)]
    for finding in found:
        for slot in slots:
            if why := finding.remedies.get((slot, made[slot])):
                others = [f"{other}:{made[other]}" for other in slots if other != slot]
                beside = f", with {_listed(others)}" if others else ""
                return f"{finding.says}, so {why}{beside}."
    changes = f"{parent.name} with {_changes(parent.recipe, made)}"
    old = parent.recipe
    gain = sum(_adds(made, slot, surrogate) - _adds(old, slot, surrogate) for slot in slots)
    if gain > 0.005:
        return f"{changes}: expected to score {gain:.2f} more, by the scores so far."
    return f"{changes}: little is known about it, and it may be better."


def _why_crossed(parent: Tried, partner: Tried, made: Recipe) -> str:
    solved, failed = _makes_up(parent.standing, partner.standing)
    takes = f"{parent.name} takes {_changes(parent.recipe, made)} from {partner.name}"
    if not solved:
        return f"{takes}, the next best."
    return f"{takes}, which solves {solved} of the {failed} tasks that it fails."


def _why_explored(parent: Tried, made: Recipe, tried: Collection[Recipe]) -> str:
    seen = {component for recipe in tried for component in recipe.components}
    new = [component for component in made.components if component not in seen]
    changes = f"{parent.name} with {_changes(parent.recipe, made)}"
    if new:
        return f"{changes}, because no candidate had {_listed(new)} yet."
    return f"{changes}: no candidate had these together yet."


def _adds(recipe: Recipe, slot: str, surrogate: Surrogate) -> float:
    return surrogate.adds(f"{slot}:{recipe[slot]}") if recipe.has(slot) else 0.0


def _changes(parent: Recipe, made: Recipe) -> str:
    """The components in which a recipe differs from its parent, in words."""
    return _listed([part for part in made.components if part not in parent.components])


def _listed(components: Sequence[str]) -> str:
    """Components in words: `count:8` is "count 8"."""
    if not components:
        return "fewer parts"
    words = [component.replace(":", " ") for component in components]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
