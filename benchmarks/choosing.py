"""Which protocol to choose: budgets, whole searches, costs and stopping rules in synthetic worlds.

Run as `make bench-choosing` or `python benchmarks/choosing.py`. `docs/choosing.md` shows what came
out. Replays judge protocols on the same candidates; searches let the proposer build on whatever
the protocol holds to be the best, and show it the failures the protocol asked for.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import record

from coevolve import SearchProtocol, protocol
from coevolve.analysis import Replay, replay, synthetic_matrix
from coevolve.benchmarks.synthetic import SyntheticWorld, search
from coevolve.core.allocation import AdaptiveShare, CostShare
from coevolve.core.weights import VarianceWeights

WORLDS = 12
SEEDS = range(3)
FRACTIONS = (0.03, 0.07, 0.1, 0.2, 0.4)
PROTOCOLS = ("random-resample", "naive", "task-coevolve", "joint", "adaptive")
SEARCHES = 40


def number(value: float | None, digits: int) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def points(value: float | None, digits: int = 2) -> str:
    """A share in points."""
    return "-" if value is None else f"{100 * value:.{digits}f}"


def budgets(workers: int) -> list[dict[str, Any]]:
    """Regret and Spearman at several budgets, on the same candidates."""
    found = replay(
        [synthetic_matrix(tasks=89, candidates=42, worlds=WORLDS)],
        protocols=PROTOCOLS,
        fractions=FRACTIONS,
        seeds=SEEDS,
        workers=workers,
    )
    return [
        {
            "fraction": fraction,
            "protocol": name,
            "regret": points(means["regret"].mean),
            "±": points(means["regret"].se),
            "spearman": number(means["spearman"].mean, 2),
            "rmse": points(means["rmse"].mean),
        }
        for fraction in FRACTIONS
        for name in PROTOCOLS
        for means in [found.overall(name, fraction).means]
    ]


def searched(rule: SearchProtocol, fraction: float, seed: int) -> tuple[float, float, int]:
    """True score of the winner, regret and evaluations of a whole search."""
    world = SyntheticWorld(pools={"all": 89}, seed=seed)
    found = search(world, protocol=rule, fraction=fraction, rounds=20, per_round=3)
    return found.truth, found.regret, found.evaluations


def searches(workers: int) -> list[dict[str, Any]]:
    """Whole searches of 20 rounds of 3 candidates, compared with the paper's protocol."""
    rules = {name: protocol(name) for name in ("full", *PROTOCOLS)}
    for reserve in (0.0, 0.5):
        allocation = AdaptiveShare(reserve=reserve)
        name = f"adaptive, reserve {reserve:g}"
        rules[name] = replace(protocol("adaptive"), name=name, allocation=allocation)
    rows = []
    for fraction in (0.07, 0.2):
        with ProcessPoolExecutor(workers) as pool:
            results = {
                name: np.array(list(pool.map(partial(searched, rule, fraction), range(SEARCHES))))
                for name, rule in rules.items()
            }
        for name, values in results.items():
            gain = values[:, 0] - results["task-coevolve"][:, 0]
            rows.append(
                {
                    "fraction": fraction,
                    "protocol": name,
                    "true score": points(values[:, 0].mean(), 1),
                    "gain over task-coevolve": points(gain.mean(), 1),
                    "±": points(gain.std(ddof=1) / np.sqrt(SEARCHES), 1),
                    "regret": points(values[:, 1].mean(), 1),
                    "evaluations": round(values[:, 2].mean()),
                }
            )
    return rows


def costs(workers: int) -> list[dict[str, Any]]:
    """The same share of the cost, with weights that look at costs more and more."""
    rules = [protocol("task-coevolve"), protocol("joint")]
    for exponent in (0.0, 0.5, 1.0):
        rules.append(
            replace(
                protocol("joint"),
                name=f"share of cost, weights / cost^{exponent:g}",
                weighting=VarianceWeights(cost=exponent),
                allocation=CostShare(),
            )
        )
    found = replay(
        [synthetic_matrix(tasks=89, candidates=42, worlds=WORLDS)],
        protocols=rules,
        fractions=(0.2,),
        seeds=SEEDS,
        workers=workers,
    )
    base = found.overall("joint", 0.2).means["cost"].mean
    return [
        {
            "protocol": rule.name,
            "evaluations": number(means["evaluations"].mean, 0),
            "cost / joint": "-" if not base else number((means["cost"].mean or 0.0) / base, 2),
            "rmse": points(means["rmse"].mean),
            "spearman": number(means["spearman"].mean, 3),
            "regret": points(means["regret"].mean),
        }
        for rule in rules
        for means in [found.overall(rule.name, 0.2).means]
    ]


def stopping(workers: int) -> list[dict[str, Any]]:
    """Adaptive until the expected regret is below a limit, or the budget of 40% is spent."""
    rules = [
        replace(
            protocol("adaptive"), name=f"regret {limit:g}", allocation=AdaptiveShare(regret=limit)
        )
        for limit in (0.0, 0.005, 0.01, 0.02)
    ]
    found = replay(
        [synthetic_matrix(tasks=89, candidates=42, worlds=WORLDS)],
        protocols=rules,
        fractions=(0.4,),
        seeds=SEEDS,
        workers=workers,
    )
    return [stated(found, rule.name) for rule in rules]


def stated(found: Replay, name: str) -> dict[str, Any]:
    """What a protocol said of its choice, and what was true."""
    means = found.overall(name, 0.4).means
    best = np.mean([row.values["rank"] == 1 for row in found.rows if row.protocol == name])
    return {
        "stop below": name.removeprefix("regret "),
        "share spent": points(means["share"].mean, 1),
        "regret": points(means["regret"].mean),
        "expected regret": points(means["expected_regret"].mean),
        "winner is best": points(float(best), 0),
        "stated": points(means["probability"].mean, 0),
    }


def main() -> None:
    """Measure, print and record."""
    workers = os.cpu_count() or 1
    tables: dict[str, Sequence[dict[str, Any]]] = {
        "budgets": budgets(workers),
        "searches": searches(workers),
        "costs": costs(workers),
        "stopping": stopping(workers),
    }
    for title, rows in tables.items():
        record.show(title, rows)
    record.save("choosing", tables)


if __name__ == "__main__":
    main()
