"""A whole search in a synthetic world, under any protocol."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevolve.benchmarks.synthetic.world import Harness, SyntheticWorld
from coevolve.core.arrays import spearman
from coevolve.core.assignment import Assignment
from coevolve.core.choice import Choice
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector import Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDone:
    """A finished round of a search."""

    round: int
    evaluations: int
    best: str
    estimate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search, compared with the true scores.

    `regret` is the true score of the best candidate minus that of the winner; `spearman` is the
    rank correlation of estimates and true scores.
    """

    protocol: str
    evaluations: int
    choice: Choice
    start: float
    truth: float
    best: float
    spearman: float

    @property
    def regret(self) -> float:
        return self.best - self.truth


def search(
    world: SyntheticWorld,
    *,
    protocol: str | SearchProtocol,
    fraction: float = 0.2,
    rounds: int = 20,
    per_round: int = 3,
    report: Callable[[RoundDone], None] = lambda done: None,
) -> SearchResult:
    """Search with a proposer that builds on the best candidate and fixes tasks it fails.

    The random choices of the proposer depend only on the world, the round and the index, so
    protocols differ only in what they choose.
    """
    selector = Selector(world.pool, fraction=fraction, protocol=protocol, seed=world.seed)
    known = {harness.name: harness for harness in world.start(2)}
    shown = dict.fromkeys(known, world.pool.tasks)

    def answer(assignments: Sequence[Assignment]) -> bool:
        for assignment in assignments:
            scores = _scores(world, known[assignment.candidate])
            selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
            earlier = shown.get(assignment.candidate, ()) if assignment.batch else ()
            shown[assignment.candidate] = (*earlier, *assignment.tasks)
        return bool(assignments)

    for harness in known.values():
        selector.tell_full(harness.name, _scores(world, harness))
    parent = max(selector.starts, key=lambda name: selector.estimate(name).value)
    for round in range(1, rounds + 1):
        failed = world.failures(known[parent], shown[parent])
        new = [
            world.child(known[parent], failed, round=round, index=index)
            for index in range(per_round)
        ]
        known |= {harness.name: harness for harness in new}
        answer(selector.ask([harness.name for harness in new]))
        while answer(selector.ask()):
            pass
        choice = selector.best()
        parent = choice.better_start or choice.candidate
        report(
            RoundDone(
                round=round,
                evaluations=selector.evaluations,
                best=choice.candidate,
                estimate=choice.estimate.value,
            )
        )
    while answer(selector.ask(final=True)):
        pass
    return _result(world, selector, known)


def summary(found: Sequence[SearchResult]) -> dict[str, Any]:
    """Means over searches, with standard errors; NaN becomes null."""
    first = found[0]
    row: dict[str, Any] = {
        "protocol": first.protocol,
        "searches": len(found),
        "evaluations": first.evaluations,
        "winner": first.choice.candidate,
        "tied": float(np.mean([len(result.choice.tied_with) for result in found])),
    }
    for name in ("start", "truth", "regret", "spearman"):
        values = np.array([getattr(result, name) for result in found])
        values = values[~np.isnan(values)]
        row[name] = float(values.mean()) if len(values) else None
        row[f"{name}_se"] = (
            float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
        )
    return row


def _scores(world: SyntheticWorld, harness: Harness) -> dict[str, float]:
    return dict(zip(world.pool.tasks, world.outcomes(harness).tolist(), strict=True))


def _result(world: SyntheticWorld, selector: Selector, known: dict[str, Harness]) -> SearchResult:
    truth = {name: world.truth(harness) for name, harness in known.items()}
    names = selector.candidates
    estimates = np.array([selector.estimate(name).value for name in names])
    true = np.array([truth[name] for name in names])
    choice = selector.best()
    return SearchResult(
        protocol=selector.protocol.name,
        evaluations=selector.evaluations,
        choice=choice,
        start=max(truth[name] for name in selector.starts),
        truth=truth[choice.candidate],
        best=float(true.max()),
        spearman=spearman(estimates, true),
    )
