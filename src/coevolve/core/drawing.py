"""Drawing the tasks of a round."""

from typing import Any

import numpy as np

from coevolve.core.assignment import Design
from coevolve.core.history import History
from coevolve.core.state import State


def draw_round(state: State, round: int, attempt: int, candidates: int) -> list[Any]:
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
    return Design.from_draw(
        made,
        round=round,
        pool=name,
        method=type(design).__name__,
        seed=seed,
        members=members,
        weights=weights,
        history=past.select(members),
    ).to_json(state.pool)
