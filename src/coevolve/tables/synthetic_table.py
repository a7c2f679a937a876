"""Tables of invented outcomes, with the structure of real ones: for tests and for protocols."""

from collections.abc import Mapping, Sequence

import numpy as np

from coevolve.proposers.offline.building_blocks import Recipe
from coevolve.tables.harness_runs import Evaluated
from coevolve.tables.harness_table import HarnessTable, TableFacts, table_arrays
from coevolve.tables.table_space import STAGES, STARTS, TableSpace, prompts_of

LABELS = 24
SKILLS = 3
"""Directions in which tasks and blocks differ."""
BLOCK, PAIR, SKILL = 0.35, 0.2, 0.35
"""Standard deviations of the gain of a block, of two blocks together, and for a kind of task."""
TASK = 1.6
"""Standard deviation of the difficulty of tasks."""
SAME = 0.85
"""The share of chance that harnesses with the same prompt have in common."""


def synthetic_table(
    seed: int,
    *,
    validation: int = 96,
    test: int = 120,
    stages: Sequence[Mapping[str, Sequence[str]]] = STAGES[:3],
) -> HarnessTable:
    """A table of invented outcomes over the harnesses of a real space.

    The chance to solve a task depends on its difficulty, on the blocks, on pairs of blocks, and on
    how the blocks suit the kind of task. Harnesses that share prompts share most of their luck.
    """
    generator = np.random.default_rng(seed)
    space, tasks = TableSpace(stages), validation + test
    hard = generator.normal(0.0, TASK, tasks)
    kinds = generator.normal(size=(tasks, SKILLS))
    gold = generator.integers(LABELS, size=tasks).astype(np.uint8)
    effects: dict[str, float] = {}
    skills: dict[str, np.ndarray] = {}
    luck: dict[tuple[str, ...], np.ndarray] = {}
    rows: dict[str, Evaluated] = {}
    for row in space.rows():
        parts = row.recipe.components if row.recipe else (row.key,)
        pairs = [f"{one} {other}" for i, one in enumerate(parts) for other in parts[:i]]
        for part in parts:
            if part not in effects:
                effects[part] = generator.normal(0.0, BLOCK)
                skills[part] = generator.normal(0.0, SKILL, SKILLS)
        for pair in pairs:
            if pair not in effects:
                effects[pair] = generator.normal(0.0, PAIR / np.sqrt(len(parts)))
        family = prompts_of(row.recipe) if row.recipe else parts
        if family not in luck:
            luck[family] = generator.logistic(size=tasks)
        chance = SAME * luck[family] + (1 - SAME) * generator.logistic(size=tasks)
        suits = kinds @ sum(skills[part] for part in parts)
        level = sum(effects[part] for part in (*parts, *pairs))
        correct = level + suits - hard + chance > 0
        wrong = (gold + generator.integers(1, LABELS, size=tasks)) % LABELS
        read = _read(row.recipe)
        rows[row.key] = Evaluated(
            answers=np.where(correct, gold, wrong).astype(np.uint8),
            correct=correct,
            tokens_in=np.full(tasks, read, np.uint16),
            tokens_out=np.zeros(tasks, np.uint16),
            offered=correct | (generator.random(tasks) < 0.7),
            shown=correct | (generator.random(tasks) < 0.5),
            learning=0,
        )
    assert set(STARTS) <= rows.keys()
    facts = TableFacts(
        set="synthetic",
        validation=validation,
        test=test,
        labels=LABELS,
        stages=stages,
        stage=len(stages),
        characters=space.characters,
        source={"synthetic": seed},
    )
    return HarnessTable(table_arrays(facts, gold, rows))


def _read(recipe: Recipe | None) -> int:
    """About how many tokens the model reads for an answer."""
    if recipe is None or not recipe.has("count"):
        return 40
    return 40 + 30 * int(recipe["count"])
