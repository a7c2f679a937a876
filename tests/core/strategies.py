"""Selectors in use, for tests."""

import numpy as np

from coevolve import Assignment, Pool, Selector

BUILT_IN = ("full", "naive", "random-resample", "random-estimate", "task-coevolve")
TASKS = tuple(f"t{i:02d}" for i in range(20))


def scores(seed: int, tasks: tuple[str, ...] = TASKS, rate: float = 0.5) -> dict[str, float]:
    """Outcomes that depend on the seed alone."""
    luck = np.random.default_rng(seed).random(len(TASKS))
    return {task: float(luck[TASKS.index(task)] < rate) for task in tasks}


def started(protocol: str = "task-coevolve", **options: object) -> Selector:
    """A selector after Phase 0 with two starting harnesses."""
    selector = Selector(Pool(TASKS), protocol=protocol, **options)  # type: ignore[arg-type]
    selector.tell_full("start-a", scores(1))
    selector.tell_full("start-b", scores(2))
    return selector


def answer(selector: Selector, assignment: Assignment, seed: int = 9) -> None:
    """Tell all outcomes of an assignment."""
    selector.tell(assignment, scores(seed, assignment.tasks))
