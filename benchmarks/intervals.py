"""How often the intervals of a joint model hold the full-set score.

Run as `make bench-intervals` or `python benchmarks/intervals.py`. Outcomes are 0 or 1 in three
sources:

- abilities: the model is right. Candidates have an ability, tasks an easiness.
- skills: the model is wrong. Each task needs one of eight skills, and children of earlier
  candidates gain or lose one, so tasks of a skill are solved together.
- real outcome matrices, as in `benchmarks/matrices.py`; skipped where there are none.

Further rows are of the abilities with the true variances of abilities and drift in place of those
that the fit estimates. "estimated" are intervals with the variances of the model as estimated,
"held" those that `estimate` returns, with variances one standard error larger; "error / sd" is
the root mean square of the error in standard deviations, which is 1 if they are right.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import record
from matrices import matrices

from coevolve import Assignment, Pool, Selector
from coevolve.core import joint
from coevolve.core.arrays import Floats
from coevolve.core.joint import Seen, Step
from coevolve.core.joint_effects import Effects
from coevolve.core.posterior import JointModel

SEARCHES, SEEDS = 100, 3
LEVELS = {90: 1.6449, 95: 1.9600}


def abilities(seed: int, candidates: int, tasks: int) -> Floats:
    """Outcomes of candidates whose abilities drift upwards."""
    rng = np.random.default_rng([seed, 1])
    drift = np.cumsum(rng.normal(0.1, 0.2, candidates))
    ability = drift + rng.normal(0, 0.6, candidates)
    logits = ability[:, None] + rng.normal(0, 2, tasks)
    return (rng.random((candidates, tasks)) < 1 / (1 + np.exp(-logits))).astype(float)


def skills(seed: int, candidates: int, tasks: int, number: int = 8) -> Floats:
    """Outcomes of candidates with or without the skill that a task needs; 5% are the opposite."""
    rng = np.random.default_rng([seed, 2])
    needed = rng.integers(number, size=tasks)
    has = rng.random((candidates, number)) < 0.4
    for child in range(2, candidates):
        has[child] = has[rng.integers(child)]
        has[child, rng.integers(number)] = rng.random() < 0.7
    solved = has[:, needed] ^ (rng.random((candidates, tasks)) < 0.05)
    return solved.astype(float)


def searched(outcomes: Floats, protocol: str, fraction: float, seed: int) -> Selector:
    """A search whose candidates have these outcomes; the first two are starting harnesses."""
    tasks = [f"t{i}" for i in range(outcomes.shape[1])]
    selector = Selector(Pool(tasks), protocol=protocol, fraction=fraction, seed=seed)

    def tell(assignments: list[Assignment]) -> bool:
        for assignment in assignments:
            row = outcomes[assignment.candidate]
            selector.tell(assignment, {task: row[int(task[1:])] for task in assignment.tasks})
        return bool(assignments)

    for start in range(2):
        selector.tell_full(start, dict(zip(tasks, outcomes[start].tolist(), strict=True)))
    for candidate in range(2, len(outcomes)):
        tell(selector.ask([candidate]))
        while tell(selector.ask()):
            pass
    while tell(selector.ask(final=True)):
        pass
    return selector


def errors(outcomes: Floats, selector: Selector) -> Iterator[tuple[float, float, float]]:
    """Error, standard deviation as estimated, and that of the interval, of every candidate."""
    assert isinstance(selector.protocol.estimator, JointModel)
    posterior = selector._state.posterior()
    narrow = np.sqrt(np.diag(posterior.covariance))
    for candidate in range(2, len(outcomes)):
        found = selector.estimate(candidate)
        if found.se:
            error = found.value - float(outcomes[candidate].mean())
            yield error, float(narrow[candidate]), found.se


def row(source: str, protocol: str, fraction: float, found: list[Any]) -> dict[str, Any]:
    """Coverage at both levels, before and after, of one source of outcomes."""
    error, narrow, wide = np.array(found).T
    cells: dict[str, Any] = {"outcomes": source, "protocol": protocol, "fraction": fraction}
    cells["intervals"] = len(error)
    for name, sd in (("estimated", narrow), ("held", wide)):
        for level, reach in LEVELS.items():
            cells[f"{name} {level}%"] = round(100 * float(np.mean(abs(error) <= reach * sd)), 1)
        cells[f"error / sd {name}"] = round(float(np.sqrt(np.mean((error / sd) ** 2))), 2)
    return cells


@contextmanager
def true_variances() -> Iterator[None]:
    """Fits that know the variances of the abilities above, and of their drift."""
    estimate = joint.updated

    def known(seen: Seen, at: Effects, step: Step, *, settled: bool) -> Effects:
        after = estimate(seen, at, step, settled=settled)
        after = replace(after, own=0.4, start_ability=0.4, walk=0.1)
        return replace(after, slope=1e-3, start_slope=1e-3)

    joint.updated = known
    try:
        yield
    finally:
        joint.updated = estimate


def of_family(
    family: Callable[[int, int, int], Floats], candidates: int, tasks: int, note: str = ""
) -> list[dict[str, Any]]:
    """Rows of one family with both protocols."""
    rows = []
    for protocol in ("joint", "adaptive"):
        found: list[Any] = []
        for seed in range(SEARCHES):
            outcomes = family(seed, candidates, tasks)
            found += errors(outcomes, searched(outcomes, protocol, 0.2, seed))
        source = f"{family.__name__}, {candidates} x {tasks}{note}"
        rows.append(row(source, protocol, 0.2, found))
    return rows


def main() -> None:
    """Measure, print and record."""
    rows = []
    sizes = ((20, 100), (12, 30))
    for family in (abilities, skills):
        for candidates, tasks in sizes:
            rows += of_family(family, candidates, tasks)
    with true_variances():
        for candidates, tasks in sizes:
            rows += of_family(abilities, candidates, tasks, ", true variances")
    record.show("Intervals of the joint model, 0/1 families", rows)
    real = []
    series = [one for matrix in matrices() for one in matrix.series]
    series = [one for one in series if not np.isnan(one.outcomes).any()]
    for fraction in (0.07, 0.2):
        for protocol in ("joint", "adaptive"):
            found: list[Any] = []
            for one in series:
                for seed in range(SEEDS):
                    found += errors(one.outcomes, searched(one.outcomes, protocol, fraction, seed))
            if found:
                real.append(row("real matrices", protocol, fraction, found))
    if real:
        record.show("Intervals of the joint model, real outcome matrices", real)
    record.save("intervals", {"families": rows, "matrices": real})


if __name__ == "__main__":
    main()
