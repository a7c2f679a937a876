"""Small runs and series whose tables can be worked out by hand."""

import json
from pathlib import Path

import numpy as np

from coevolve import Pool, Selector
from coevolve.analysis import Matrix, Series
from coevolve.core.outcomes import Outcome, Usage

TASKS = ("a", "b", "c", "d")
STARTS = {"start-0": (1, 0, 0, 0), "start-1": (1, 1, 0, 0)}
CANDIDATES = {"x": (1, 0, 1, 0), "y": (1, 1, 1, 0), "z": (1, 1, 0, 0)}
SCORES = STARTS | CANDIDATES


def usage(task: str) -> Usage:
    """A task costs more the later it stands: 100, 200, 300, 400 tokens and a tenth in dollars."""
    size = 100 * (1 + TASKS.index(task))
    return Usage(tokens_in=size, tokens_out=size // 10, dollars=size / 1_000, seconds=36 * size)


def told(candidate: str, tasks: tuple[str, ...], *, priced: bool = False) -> list[Outcome]:
    """The outcomes of a candidate on some tasks."""
    scores = dict(zip(TASKS, SCORES[candidate], strict=True))
    return [
        Outcome(
            candidate=candidate,
            task=task,
            score=scores[task],
            usage=usage(task) if priced else None,
        )
        for task in tasks
    ]


def finished(
    protocol: str = "naive",
    *,
    fraction: float = 0.5,
    rescored: tuple[str, ...] = (),
    priced: bool = False,
) -> Selector:
    """A run of three rounds; some candidates are scored on every task when it is over."""
    selector = Selector(Pool(TASKS), protocol=protocol, fraction=fraction, seed=3)
    for start in STARTS:
        selector.tell_full(start, told(start, TASKS, priced=priced))
    for name in CANDIDATES:
        for assignment in selector.ask([name]):
            selector.tell(assignment, told(name, assignment.tasks, priced=priced))
    for name in rescored:
        selector.tell_full(name, told(name, TASKS, priced=priced))
    return selector


def series() -> Series:
    """The same outcomes as a series."""
    outcomes = np.array(list(SCORES.values()), dtype=float)
    made = Matrix.from_arrays("tiny", outcomes, tasks=TASKS, candidates=list(SCORES))
    return made.series[0]


def written(selector: Selector, path: Path) -> Path:
    """The events of a run as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(event)}\n" for event in selector.events))
    return path
