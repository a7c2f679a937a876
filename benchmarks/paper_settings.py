"""The paper's two settings: searches in synthetic worlds, and errors on its Phase 0 pools.

Text classification: three pools of 30, 50 and 50 tasks, 20 rounds of 3 candidates, the winner
judged on held-out tasks. Terminal-Bench: one pool of 89 tasks, 10 rounds of 1 candidate, judged on
the same tasks. The sharpness of the world is chosen so that Phase 0 looks like the paper's, and
its steps and fixes so that full search gains about as much.

Tables `tc_phase0` and `difficulty` of the paper say how many tasks neither, one or both starting
harnesses solve. For `phase_zero_errors`, a candidate solves a task of these groups with
probability 0.1, 0.5 and 0.95.
"""

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from coevolve import protocol
from coevolve.benchmarks.synthetic import Harness, SyntheticWorld, search
from coevolve.core.allocation import Share
from coevolve.core.arrays import Floats
from coevolve.core.assignment import Sample
from coevolve.core.designs import DesignMethod, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Difference, Estimator, Hajek, RawMean
from coevolve.core.outcome_table import History
from coevolve.core.protocols import SearchProtocol
from coevolve.core.weights import TaskView, VarianceWeights

WORKERS = 2
USUAL: Mapping[str, float] = {"sharpness": 0.8, "step": 0.4, "mends": 3}
VARIANTS: Mapping[str, Mapping[str, float]] = {
    "usual": {},
    "no fixes": {"mends": 0},
    "many fixes": {"mends": 8},
    "large steps": {"step": 0.8},
    "little chance": {"sharpness": 3.0},
}
ROWS = ("naive", "random-resample", "random-estimate", "task-coevolve")
SWAPPED = "other estimator"


@dataclass(frozen=True, kw_only=True)
class Regime:
    """A setting of the paper.

    `solved` is the mean score of the starting harnesses in each pool, `estimator` the one the
    paper used there and `other` the one it swapped it for; `fewer` searches are run in worlds
    that are not the usual one.
    """

    name: str
    pools: Mapping[str, int]
    solved: Mapping[str, float]
    rounds: int
    per_round: int
    estimator: Estimator
    other: Estimator
    fractions: tuple[float, ...]
    held_out: bool
    searches: int
    fewer: int


TEXT = Regime(
    name="text classification",
    pools={"uspto": 30, "s2d": 50, "law": 50},
    solved={"uspto": 0.08, "s2d": 0.71, "law": 0.14},
    rounds=20,
    per_round=3,
    estimator=Hajek(),
    other=Difference(),
    fractions=(0.07, 0.2),
    held_out=True,
    searches=100,
    fewer=32,
)
TERMINAL = Regime(
    name="terminal-bench",
    pools={"all": 89},
    solved={"all": 0.5},
    rounds=10,
    per_round=1,
    estimator=Difference(),
    other=Hajek(),
    fractions=(0.2,),
    held_out=False,
    searches=400,
    fewer=200,
)


class RecordingWorld(SyntheticWorld):
    """A world that remembers its harnesses and has held-out tasks, ten for every other one."""

    @cached_property
    def known(self) -> dict[str, Harness]:
        return {harness.name: harness for harness in self.start(2)}

    @cached_property
    def held_out(self) -> SyntheticWorld:
        same = {f.name: getattr(self, f.name) for f in fields(SyntheticWorld)}
        pools = {name: 10 * size for name, size in self.pools.items()}
        return SyntheticWorld(**same | {"pools": pools, "seed": self.seed + 10**6})

    def child(self, parent: Harness, failed: Iterable[int], *, round: int, index: int) -> Harness:
        made = super().child(parent, failed, round=round, index=index)
        self.known[made.name] = made
        return made

    def on_held_out(self, name: str) -> float:
        """The score on held-out tasks, where fixes of single tasks do not help."""
        return self.held_out.truth(replace(self.known[name], mended=frozenset()))


class Job(NamedTuple):
    """One search."""

    regime: Regime
    variant: str
    fraction: float
    row: str
    seed: int


def world(regime: Regime, variant: str, seed: int) -> RecordingWorld:
    """The world of a search; pools are as easy as the paper's starting harnesses found them."""
    settings: dict[str, Any] = {**USUAL, **VARIANTS[variant]}
    plain = SyntheticWorld(pools=regime.pools, **settings)
    chance = (1.7 / plain.sharpness) ** 2  # a logistic curve is about a normal one 1.7 times wider
    spread = np.sqrt(plain.spread**2 + chance + 0.68 * plain.step**2)
    ease = {name: NormalDist().inv_cdf(p) * spread for name, p in regime.solved.items()}
    return RecordingWorld(pools=regime.pools, ease=ease, seed=seed, **settings)


def rule(job: Job) -> SearchProtocol:
    """The protocol of a row, with the estimator the paper used in the regime."""
    name = "task-coevolve" if job.row == SWAPPED else job.row
    found = protocol(name)
    if name in ("random-estimate", "task-coevolve"):
        other = job.row == SWAPPED
        found = replace(found, estimator=job.regime.other if other else job.regime.estimator)
    if name != "full":
        rounding: Any = "floor" if job.fraction < 0.1 else "ceil"  # as the paper's rows
        found = replace(found, allocation=Share(fraction=job.fraction, rounding=rounding))
    return found


def run(job: Job) -> dict[str, float]:
    """The winner's true score, and how the search went."""
    place = world(job.regime, job.variant, job.seed)
    found = search(
        place,
        protocol=rule(job),
        fraction=job.fraction,
        rounds=job.regime.rounds,
        per_round=job.regime.per_round,
    )
    winner = found.choice.candidate
    start = max(place.start(2), key=place.score).name
    held_out = job.regime.held_out
    return {
        "score": 100 * (place.on_held_out(winner) if held_out else found.truth),
        "start": 100 * (place.on_held_out(start) if held_out else found.start),
        "full set": 100 * found.truth,
        "spearman": found.spearman,
        "ties": 1 + len(found.choice.tied_with),
    }


Results = dict[tuple[str, str, float, str], list[dict[str, float]]]


def run_all() -> Results:
    """Every search, by regime, variant, fraction and row."""
    jobs = [
        Job(regime, variant, fraction, row, seed)
        for regime in (TEXT, TERMINAL)
        for variant in VARIANTS
        for fraction in regime.fractions
        for row in (*ROWS, SWAPPED, "full")
        for seed in range(regime.searches if variant == "usual" else regime.fewer)
        if row != "full" or (variant == "usual" and fraction == regime.fractions[-1])
    ]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    results: Results = {}
    with ProcessPoolExecutor(WORKERS) as workers:
        for job, found in zip(jobs, workers.map(run, jobs, chunksize=8), strict=True):
            key = (job.regime.name, job.variant, job.fraction, job.row)
            results.setdefault(key, []).append(found)
    return results


PAIRS, DRAWS = 30, 30
SOLVES = (0.1, 0.5, 0.95)

Groups = Mapping[str, tuple[int, int, int]]
_TEXT_GROUPS: Groups = {"uspto": (26, 3, 1), "s2d": (9, 11, 30), "law": (39, 8, 3)}
_TERMINAL_GROUPS: Groups = {"all": (32, 23, 34)}
SETTINGS = (
    ("text classification, 7%", _TEXT_GROUPS, (2, 3, 3)),
    ("text classification, 20%", _TEXT_GROUPS, (6, 10, 10)),
    ("terminal-bench, 20%", _TERMINAL_GROUPS, (18,)),
)
ESTIMATORS: Mapping[str, Estimator] = {
    "raw mean": RawMean(),
    "Hájek": Hajek(),
    "difference": Difference(),
}


class Errors(NamedTuple):
    """Errors of one estimate, and of the gap between two candidates with one draw, or one each."""

    single: list[float]
    same_draw: list[float]
    two_draws: list[float]


def phase_zero_errors() -> list[dict[str, Any]]:
    """Root mean squared errors in points, by setting, draw and estimator."""
    rows = []
    for setting, groups, sizes in SETTINGS:
        for draw, design in (("uniform", UniformDesign()), ("weighted", SuccessiveDesign())):
            found = _measured(groups, sizes, design)
            for name, each in found.items():
                bias, single, same, two = (
                    100 * float(np.mean(each.single)),
                    *(100 * float(np.sqrt(np.mean(np.square(values)))) for values in each),
                )
                rows.append(
                    {
                        "setting": setting,
                        "draw": draw,
                        "estimator": name,
                        "bias": round(bias, 1),
                        "one estimate": round(single, 1),
                        "gap, same draw": round(same, 1),
                        "gap, two draws": round(two, 1),
                    }
                )
    return rows


def _measured(groups: Groups, sizes: tuple[int, ...], design: DesignMethod) -> dict[str, Errors]:
    found = {name: Errors([], [], []) for name in ESTIMATORS}
    weights = np.full(len(groups), 1 / len(groups))
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        two = [_candidate(groups, rng) for _ in range(2)]
        truths = [float(np.mean([pool.mean() for pool in candidate])) for candidate in two]
        gap = truths[0] - truths[1]
        for _ in range(DRAWS):
            first, second = (_draw(groups, sizes, design, rng) for _ in range(2))
            for name, estimator in ESTIMATORS.items():
                a, b, other = (
                    estimator.estimate(_samples(groups, *pick), weights, 0.95).value
                    for pick in ((two[0], first), (two[1], first), (two[1], second))
                )
                found[name].single.append(a - truths[0])
                found[name].same_draw.append(a - b - gap)
                found[name].two_draws.append(a - other - gap)
    return found


def _candidate(groups: Groups, rng: np.random.Generator) -> list[Floats]:
    chances = (np.repeat(SOLVES, sizes) for sizes in groups.values())
    return [(rng.random(len(chance)) < chance).astype(np.float64) for chance in chances]


def _history(sizes: tuple[int, int, int]) -> History:
    return History(mean=np.repeat([0.0, 0.5, 1.0], sizes), count=np.full(sum(sizes), 2))


def _draw(
    groups: Groups, sizes: tuple[int, ...], design: DesignMethod, rng: np.random.Generator
) -> list[Any]:
    views = (TaskView(history=_history(counts)) for counts in groups.values())
    weights = (VarianceWeights()(view) for view in views)
    return [design.draw(w, size, rng) for w, size in zip(weights, sizes, strict=True)]


def _samples(groups: Groups, candidate: list[Floats], draws: list[Any]) -> list[Sample]:
    made = []
    for scores, draw, counts in zip(candidate, draws, groups.values(), strict=True):
        history, chosen = _history(counts), draw.chosen
        sample = Sample.without_history(
            scores[chosen], draw.probabilities[chosen], pool_size=len(scores)
        )
        made.append(
            replace(sample, anchors=history.mean[chosen], anchor_mean=float(history.mean.mean()))
        )
    return made
