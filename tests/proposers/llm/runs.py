"""Runs as an LLM proposer sees them."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.proposers.base import Solvability, Standing, View
from coevolve.search.candidate import Candidate, Files

PLAIN = b'''"""Answers at once."""


def answer(model, question):
    prompt = f"Question: {question}"
    return model(prompt)
'''
BRIEFING = "A harness is `harness.py` with a function `answer(model, question)`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one candidate of a run."""

    files: Files = field(default_factory=lambda: {"harness.py": PLAIN})
    value: float | None = None
    outcomes: Mapping[str, float | Missing] = field(default_factory=dict)
    round: int = 0
    refused: str = ""
    hypothesis: str = ""
    delta: float | None = None


def run(
    known: Mapping[str, Known] | None = None,
    *,
    parent: str = "plain",
    tasks: tuple[str, ...] = ("a", "b", "c", "d"),
    traces: Mapping[tuple[str, str], Any] | None = None,
    **more: Any,
) -> View:
    """The view of a run with these candidates; by default one that starts with PLAIN."""
    given = known if known is not None else {"plain": Known(value=0.5)}
    contents: dict[str, bytes] = {}
    standings = []
    for name, one in given.items():
        candidate = Candidate.of(one.files, name=name, round=one.round, hypothesis=one.hypothesis)
        contents |= {candidate.files[path]: data for path, data in one.files.items()}
        standings.append(_standing(candidate, one, len(tasks)))
    kept = traces or {}

    def trace(candidate: str, task: str) -> str | None:
        found = kept.get((candidate, task))
        return None if found is None else json.dumps(found)

    parts = {"round": 1, "seed": 7, "briefing": BRIEFING, "seconds": math.inf, **more}
    return View(
        tasks=tasks,
        standings=tuple(standings),
        best=None,
        parent=parent,
        read=contents.__getitem__,
        trace=trace,
        solvability={task: Solvability(mean=0.5, candidates=1) for task in tasks},
        **parts,
    )


def _standing(candidate: Candidate, one: Known, tasks: int) -> Standing:
    value = one.value
    estimate = None
    if value is not None:
        estimate = Estimate(
            value=value,
            se=0.05,
            low=value - 0.1,
            high=value + 0.1,
            tasks=min(2, tasks),
            drawn=min(2, tasks),
            pool_size=tasks,
            method="difference",
        )
    return Standing(
        candidate=candidate,
        status="refused" if one.refused else "evaluated",
        reason=one.refused,
        estimate=estimate,
        outcomes=one.outcomes,
        delta=one.delta,
    )
