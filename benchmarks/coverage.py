"""How often 95% intervals hold the full-set score, in synthetic worlds.

Run as `make bench` or `python benchmarks/coverage.py`. Every row: 30 worlds, 4 rounds of 12
candidates with a draw each, so 1,440 intervals and a standard error of about 0.6 points. The
candidates are children of the starting harnesses; further rows are of a candidate unlike any
before, which fails whatever was always solved, and of trials that break down by chance. A second
table has the differences of two candidates of a round, which share a draw, and of two rounds.
"""

from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any, Literal

import numpy as np
import record

from coevolve import Missing, Pool, Selector, protocol
from coevolve.benchmarks.synthetic import Harness, SyntheticWorld
from coevolve.core.estimators import Difference, Estimator, Hajek, HorvitzThompson

WORLDS, ROUNDS, CANDIDATES = 30, 4, 12
NOISY, SHARP = 0.7, 3.0


def row(
    estimator: Estimator,
    tasks: int,
    fraction: float,
    sharpness: float,
    *,
    broken: bool = False,
    missing: float = 0.0,
) -> dict[str, Any]:
    """Coverage, and the standard error beside the true error."""
    held: list[bool] = []
    errors: list[float] = []
    claimed: list[float] = []
    drawn = 0
    for seed in range(WORLDS):
        world = SyntheticWorld(pools={"all": tasks}, sharpness=sharpness, seed=seed)
        selector = _selector(world, estimator, fraction)
        for number in range(1, ROUNDS + 1):
            new = {
                harness.name: harness
                for index in range(CANDIDATES)
                for harness in [_candidate(world, number, index, broken=broken)]
            }
            for assignment in selector.ask(list(new)):
                harness, drawn = new[assignment.candidate], len(assignment.tasks)
                scores = dict(zip(world.pool.tasks, world.outcomes(harness), strict=True))
                lost = np.random.default_rng([seed, len(errors)]).random(tasks) < missing
                gone = {task for task, out in zip(world.pool.tasks, lost, strict=True) if out}
                selector.tell(
                    assignment,
                    {t: Missing("lost") if t in gone else scores[t] for t in assignment.tasks},
                )
                estimate, truth = selector.estimate(harness.name), world.score(harness)
                errors.append(estimate.value - truth)
                if estimate.se is not None and estimate.low is not None:
                    claimed.append(estimate.se)
                    held.append(estimate.low <= truth <= (estimate.high or 1.0))
    return {
        "estimator": type(estimator).__name__,
        "tasks": tasks,
        "drawn": drawn,
        "outcomes": "noisy" if sharpness == NOISY else "sharp",
        "candidate": "breaks all" if broken else "child",
        "missing %": round(100 * missing),
        "intervals": len(held),
        "coverage %": round(100 * float(np.mean(held)), 1),
        "error": round(float(np.sqrt(np.mean(np.square(errors)))), 3),
        "claimed": round(float(np.sqrt(np.mean(np.square(claimed)))), 3),
    }


def _selector(
    world: SyntheticWorld,
    estimator: Estimator,
    fraction: float,
    draw_per: Literal["round", "candidate"] = "candidate",
) -> Selector:
    rule = replace(protocol("task-coevolve"), name="measured", estimator=estimator)
    pool = Pool(world.pool.tasks)
    selector = Selector(pool, protocol=rule, fraction=fraction, seed=world.seed, draw_per=draw_per)
    for harness in world.start(2):
        scores = dict(zip(pool.tasks, world.outcomes(harness), strict=True))
        selector.tell_full(harness.name, scores)
    return selector


def _candidate(world: SyntheticWorld, number: int, index: int, *, broken: bool) -> Harness:
    child = world.child(
        world.start(2)[index % 2], range(len(world.pool)), round=number, index=index
    )
    return replace(child, skills=(-6.0,) * world.skills) if broken else child


def differences(
    estimator: Estimator, tasks: int, fraction: float, sharpness: float, *, paired: bool
) -> dict[str, Any]:
    """Coverage of the intervals of differences: of a round, or of one round and the next."""
    held: list[bool] = []
    errors: list[float] = []
    claimed: list[float] = []
    for seed in range(WORLDS):
        world = SyntheticWorld(pools={"all": tasks}, sharpness=sharpness, seed=seed)
        selector = _selector(world, estimator, fraction, draw_per="round")
        rounds: list[dict[str, Harness]] = []
        for number in range(1, ROUNDS + 1):
            made = [_candidate(world, number, index, broken=False) for index in range(4)]
            rounds.append({harness.name: harness for harness in made})
            for assignment in selector.ask(list(rounds[-1])):
                harness = rounds[-1][assignment.candidate]
                scores = dict(zip(world.pool.tasks, world.outcomes(harness), strict=True))
                selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
        pairs = [pair for new in rounds for pair in combinations(new.values(), 2)]
        if not paired:
            pairs = [pair for a, b in pairwise(rounds) for pair in product(a.values(), b.values())]
        for one, other in pairs:
            found = selector.compare(one.name, other.name)
            errors.append(found.value - world.score(one) + world.score(other))
            if found.se is not None and found.low is not None and found.high is not None:
                claimed.append(found.se)
                truth = world.score(one) - world.score(other)
                held.append(found.low <= truth <= found.high)
    return {
        "estimator": type(estimator).__name__,
        "tasks": tasks,
        "share": fraction,
        "outcomes": "noisy" if sharpness == NOISY else "sharp",
        "candidates": "one draw" if paired else "two draws",
        "intervals": len(held),
        "coverage %": round(100 * float(np.mean(held)), 1),
        "error": round(float(np.sqrt(np.mean(np.square(errors)))), 3),
        "claimed": round(float(np.sqrt(np.mean(np.square(claimed)))), 3),
    }


def main() -> None:
    """Measure, print and record."""
    sizes = ((500, 0.2), (500, 0.07), (130, 0.2), (89, 0.2), (89, 0.07), (50, 0.06))
    rows = [
        row(estimator, tasks, fraction, sharpness)
        for estimator in (Difference(), Hajek())
        for tasks, fraction in sizes
        for sharpness in (NOISY, SHARP)
    ]
    rows += [row(HorvitzThompson(), 500, 0.2, sharpness) for sharpness in (NOISY, SHARP)]
    rows += [
        row(Difference(), tasks, 0.2, sharpness, broken=True)
        for tasks in (500, 89)
        for sharpness in (NOISY, SHARP)
    ]
    rows += [
        row(estimator, 130, fraction, NOISY, missing=0.3)
        for estimator in (Difference(), Hajek())
        for fraction in (0.2, 0.8, 1.0)
    ]
    record.show("Coverage of 95% intervals under the paper's weighted draw", rows)
    apart = [
        differences(estimator, tasks, fraction, sharpness, paired=paired)
        for paired in (True, False)
        for estimator in (Difference(), Hajek())
        for tasks, fraction in ((500, 0.2), (89, 0.2), (50, 0.06))
        for sharpness in (NOISY, SHARP)
    ]
    record.show("Coverage of 95% intervals of differences", apart)
    record.save("coverage", {"coverage": rows, "differences": apart})


if __name__ == "__main__":
    main()
