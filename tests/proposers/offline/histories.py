"""Views of searches that never ran, for tests of the offline proposer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.benchmarks.textclass.blocks.text_recipe import TextRecipe
from coevolve.core.estimators import Estimate
from coevolve.proposers.base import Proposal, Standing, View
from coevolve.proposers.offline.building_blocks import Recipe, RecipeSpace
from coevolve.search.acceptance import unique
from coevolve.search.candidate import Candidate

SPACE = RecipeSpace(TextBlocks())
TASKS = tuple(f"task-{number:02}" for number in range(96))
Trace = Mapping[str, object]


def recipe_of(**blocks: str) -> Recipe:
    """A recipe for text classification, with usual blocks in the other slots."""
    return SPACE.recipe(TextRecipe(**blocks).active)


def estimated(value: float, se: float = 0.05) -> Estimate:
    """An estimate from a fifth of the tasks."""
    return Estimate(
        value=value,
        se=se,
        low=value - 2 * se,
        high=value + 2 * se,
        tasks=20,
        drawn=20,
        pool_size=len(TASKS),
        method="test",
    )


@dataclass
class History:
    """A search so far: candidates with estimates, outcomes and traces."""

    seed: int = 0
    standings: list[Standing] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    traces: dict[tuple[str, str], str] = field(default_factory=dict)
    rounds: int = 0

    def add(
        self,
        proposal: Proposal,
        value: float | None,
        *,
        se: float = 0.05,
        outcomes: Mapping[str, float] | None = None,
        traces: Mapping[str, Trace] | None = None,
    ) -> str:
        """Add a candidate with its outcomes; returns its name."""
        name = unique(proposal.name, {s.candidate.name for s in self.standings})
        candidate = Candidate.of(
            proposal.files,
            name=name,
            round=self.rounds,
            parents=proposal.parents,
            hypothesis=proposal.hypothesis,
            kind=proposal.kind,
            components=proposal.components,
        )
        self.files |= {candidate.files[path]: data for path, data in proposal.files.items()}
        self.traces |= {(name, task): json.dumps(t) for task, t in (traces or {}).items()}
        self.standings.append(
            Standing(
                candidate=candidate,
                status="refused" if value is None else "evaluated",
                reason="",
                estimate=None if value is None else estimated(value, se),
                outcomes=dict(outcomes or {}),
            )
        )
        return name

    def view(self) -> View:
        """What a proposer sees before the next round."""
        return View(
            round=self.rounds + 1,
            seed=1_000 * self.seed + self.rounds,
            tasks=TASKS,
            standings=tuple(self.standings),
            best=None,
            parent="",
            read=self.files.__getitem__,
            trace=lambda name, task: self.traces.get((name, task)),
        )

    def recipes(self) -> list[Recipe]:
        """The recipes of all candidates that have one."""
        found = (SPACE.of(standing.candidate.components) for standing in self.standings)
        return [recipe for recipe in found if recipe is not None]


def proposal(recipe: Recipe, name: str = "some") -> Proposal:
    """A candidate of a recipe, with a file that is not a harness."""
    content = " ".join(recipe.components).encode()
    return Proposal(name=name, files={"harness.py": content}, components=recipe.components)


def searched(
    propose: Callable[[View, int], Sequence[Proposal]],
    truth: Callable[[Recipe], float],
    *,
    rounds: int,
    count: int,
    seed: int,
    se: float = 0.08,
) -> History:
    """A search in a world where every recipe has a true score, estimated with an error."""
    history = History(seed=seed)
    generator = np.random.default_rng(seed)
    hardness = generator.permutation(np.linspace(0, 1, len(TASKS), endpoint=False))
    for _ in range(rounds):
        made = propose(history.view(), count)
        history.rounds += 1
        for one in made:
            recipe = SPACE.of(one.components)
            assert recipe is not None
            score = truth(recipe)
            drawn = generator.choice(len(TASKS), 20, replace=False)
            outcomes = {TASKS[i]: float(hardness[i] < score) for i in sorted(drawn)}
            history.add(one, score + se * generator.normal(), se=se, outcomes=outcomes)
    return history


def additive(seed: int, spread: float = 0.06) -> Callable[[Recipe], float]:
    """A world where each block adds something to the score."""
    generator = np.random.default_rng(seed)
    worth = {
        f"{slot}:{block}": spread * generator.normal()
        for slot, blocks in SPACE.slots.items()
        for block in blocks
    }
    return lambda recipe: 0.5 + sum(worth[component] for component in recipe.components)
