"""Drawing the tasks of a round."""

from typing import Any

import numpy as np

from coevolve.core.assignment import Design
from coevolve.core.designs import DesignMethod, Draw
from coevolve.core.history import History
from coevolve.core.protocols import part_to_json
from coevolve.core.rule import EstimatorRule
from coevolve.core.state import Round, State
from coevolve.errors import InputError


def drawn_event(state: State, number: int, attempt: int, candidates: list[str]) -> dict[str, Any]:
    """The event that draws a round for its candidates."""
    return {
        "round": number,
        "attempt": attempt,
        "candidates": candidates,
        "decision": _decision(state),
        "draws": _draws(state, number, attempt, len(candidates)),
    }


def failed_rounds(state: State) -> list[Round]:
    """Finished rounds, drawn once, with under half of their scores or none of a pool."""
    failed = []
    for round in state.rounds:
        parts = [state.progress[name, 0] for name in round.candidates]
        asked, scored = sum(len(p.assignment) for p in parts), sum(p.scored for p in parts)
        failing = 2 * scored < asked or any(p.empty_pool for p in parts)
        if round.attempts == 0 and all(p.complete for p in parts) and failing:
            failed.append(round)
    return failed


def _decision(state: State) -> dict[str, Any] | None:
    """What Phase 0 says about the estimator, when it is to be decided."""
    rule = state.protocol.estimator
    if state.estimator is not None or not isinstance(rule, EstimatorRule):
        return None
    past = state.table.history()
    pools = {name: past.select(state.pool.members(name)) for name in state.pool.names}
    means = {name: float(history.anchors.mean()) for name, history in pools.items()}
    return {"means": means, "estimator": part_to_json(rule.decide(means))}


def _draws(state: State, round: int, attempt: int, candidates: int) -> list[Any]:
    """The draws of a round as JSON: one for all candidates, or one for each.

    A draw is a list of designs, one per pool. Nothing but the history, the seed and the numbers
    of round, attempt, draw and pool enters it.
    """
    draws = candidates if state.draw_per == "candidate" else 1
    weighting = state.protocol.weighting
    past = state.table.history()
    recent = past
    if weighting.window is not None:
        recent = state.table.history(round - weighting.window)
    sizes = state.protocol.allocation.sizes(state.pool)
    return [
        [
            _draw_pool(state, round, (attempt, draw), number, size, past, recent)
            for number, size in enumerate(sizes)
        ]
        for draw in range(draws)
    ]


def _draw_pool(
    state: State,
    round: int,
    which: tuple[int, int],
    number: int,
    size: int,
    past: History,
    recent: History,
) -> dict[str, Any]:
    design, name = state.protocol.design, state.pool.names[number]
    members = state.pool.members(name)
    weights = state.protocol.weighting(recent.select(members))
    attempt, draw = which if design.redraws else (0, 0)
    seed = (state.seed, round if design.redraws else 0, number, attempt, draw)
    made = design.draw(weights, size, np.random.default_rng(seed))
    _check(design, made, size, len(members))
    return Design.from_draw(
        made,
        tasks=state.pool,
        pool=name,
        round=round,
        method="full" if size == len(members) else design.name,
        seed=seed,
        weights=weights,
        history=past.select(members),
    ).to_json()


def _check(design: DesignMethod, draw: Draw, size: int, tasks: int) -> None:
    """Refuse a draw that no estimate could be made from."""
    chosen, pi = np.asarray(draw.chosen), np.asarray(draw.probabilities)
    inside = ((chosen >= 0) & (chosen < tasks)).all()
    if not inside or len(chosen) != size or len(np.unique(chosen)) != size:
        raise InputError(f"{design!r} drew {chosen.tolist()}, not {size} different tasks.")
    if pi.shape != (tasks,) or not ((pi > 0) & (pi <= 1 + 1e-9)).all():
        raise InputError(
            f"{design!r} must give each of the {tasks} tasks a probability in (0, 1]."
        )
