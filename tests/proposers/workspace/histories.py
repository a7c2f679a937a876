"""Views with a history, for tests of what agents see."""

import json
import math
from collections.abc import Mapping, Sequence

from coevolve.core.choice import Choice
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.search.candidate import Candidate, address_of
from coevolve.search.proposal import Solvability, Standing, View

Outcomes = Mapping[str, float | Missing]


def estimate(value: float, tasks: int = 2, pool: int = 4) -> Estimate:
    """An estimate from some tasks of a pool."""
    exact = tasks == pool
    return Estimate(
        value=value,
        se=None if exact else 0.05,
        low=None if exact else value - 0.1,
        high=None if exact else value + 0.1,
        tasks=tasks,
        drawn=tasks,
        pool_size=pool,
        method="test",
    )


def standing(
    name: str,
    *,
    files: Mapping[str, bytes] | None = None,
    round: int = 1,
    value: float | None = None,
    delta: float | None = None,
    outcomes: Outcomes | None = None,
    reason: str = "",
    parents: tuple[str, ...] = (),
    hypothesis: str = "",
    kind: str = "",
    components: tuple[str, ...] = (),
) -> tuple[Standing, dict[str, bytes]]:
    """A candidate with how it stands, and its files by address."""
    held = files or {"harness.py": f"NAME = {name!r}\n".encode()}
    candidate = Candidate.of(
        held,
        name=name,
        round=round,
        parents=parents,
        hypothesis=hypothesis,
        kind=kind,  # type: ignore[arg-type]
        components=components,
    )
    made = Standing(
        candidate=candidate,
        status="refused" if reason else "evaluated",
        reason=reason,
        estimate=None if value is None else estimate(value),
        outcomes=outcomes or {},
        delta=delta,
    )
    return made, {address_of(content): content for content in held.values()}


def history(
    standings: Sequence[tuple[Standing, dict[str, bytes]]],
    *,
    tasks: Sequence[str] = ("t1", "t2", "t3", "t4"),
    best: str | None = None,
    briefing: str = "",
    pools: Mapping[str, str] | None = None,
    seconds: float = math.inf,
    round: int = 3,
) -> View:
    """What a proposer sees after these candidates; every outcome has a trace."""
    contents: dict[str, bytes] = {}
    for _, files in standings:
        contents |= files
    rows = tuple(row for row, _ in standings)
    ranked = [row for row in rows if row.estimate is not None]
    top = max(ranked, key=lambda row: row.estimate.value if row.estimate else 0, default=None)
    parent = best or (top.candidate.name if top else "")
    choice = None
    if top is not None and top.estimate is not None and parent:
        choice = Choice(
            candidate=parent, estimate=top.estimate, tied_with=("twin",), why="highest of all"
        )

    def trace(candidate: str, task: str) -> str | None:
        return json.dumps({"trace": {"question": f"what of {task}?", "answer": candidate}})

    return View(
        round=round,
        seed=0,
        tasks=tuple(tasks),
        standings=rows,
        best=choice,
        parent=parent,
        read=contents.__getitem__,
        trace=trace,
        briefing=briefing,
        pools=pools or {},
        solvability=_solvability(rows, tasks),
        seconds=seconds,
    )


def small() -> View:
    """Two starting harnesses, two rounds, one candidate refused, one outcome missing."""
    down = Missing("the service was down")
    return history(
        [
            standing(
                "plain", round=0, value=0.5, outcomes={"t1": 1.0, "t2": 1.0, "t3": 0.0, "t4": 0.0}
            ),
            standing(
                "other", round=0, value=0.25, outcomes={"t1": 0.0, "t2": 1.0, "t3": 0.0, "t4": 0.0}
            ),
            standing(
                "first",
                value=0.4,
                delta=-0.1,
                outcomes={"t1": 0.0, "t3": 0.5},
                parents=("plain",),
                hypothesis="shorter prompts",
                kind="exploit",
                components=("short prompt",),
            ),
            standing("bad", reason="check failed: SyntaxError", hypothesis="cleverer"),
            standing(
                "second",
                round=2,
                value=0.7,
                delta=0.2,
                outcomes={"t1": 1.0, "t3": 0.0, "t2": down},
                parents=("plain", "first"),
                hypothesis="two | looks\nare better",
                kind="explore",
                components=("two looks", "short prompt"),
            ),
        ],
        tasks=("t1", "t2", "t3", "t4", "unseen"),
        briefing="# A harness\nIt answers.",
    )


def large(candidates: int, outcomes: int, tasks: int) -> View:
    """A long search."""
    pool = [f"task-{number:04}" for number in range(tasks)]
    rows = []
    for number in range(candidates):
        refused = number % 10 == 9
        drawn = [pool[(7 * number + step) % tasks] for step in range(0 if refused else outcomes)]
        rows.append(
            standing(
                f"candidate-{number}",
                round=1 + number // 3,
                value=None if refused else 0.3 + 0.4 * number / candidates,
                delta=None if refused else 0.001 if number % 5 else -0.2,
                outcomes={task: float((number + step) % 3 > 0) for step, task in enumerate(drawn)},
                hypothesis="because " * 60,
                components=(f"part {number % 40}",),
                reason="check failed: " + "x" * 400 if refused else "",
            )
        )
    return history(rows, tasks=pool, round=candidates // 3 + 1)


def _solvability(rows: Sequence[Standing], tasks: Sequence[str]) -> dict[str, Solvability]:
    made: dict[str, Solvability] = {}
    for task in tasks:
        told = [score for row in rows if isinstance(score := row.outcomes.get(task), float)]
        if told:
            made[task] = Solvability(mean=sum(told) / len(told), candidates=len(told))
    return made
