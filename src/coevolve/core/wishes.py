"""What an adaptive allocation wants to see next."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coevolve.core.allocation import Adaptive
from coevolve.core.outcomes import is_whole
from coevolve.core.posterior import Posterior
from coevolve.core.state import State
from coevolve.core.view import SearchView
from coevolve.errors import InputError


def wishes(state: State, final: bool) -> dict[str, tuple[int, ...]]:
    """Candidates to evaluate further, and on how many tasks of each pool.

    Empty where the allocation is not adaptive, wants nothing, or waits for outcomes.
    """
    allocation = state.protocol.allocation
    if not isinstance(allocation, Adaptive) or not state.rounds or state.waiting:
        return {}
    view = _view(state, final)
    wanted: dict[str, tuple[int, ...]] = {}
    for request in allocation.further(view):
        if not _sound(request, view):
            raise InputError(
                f"{allocation!r} asked for {request!r}; it must be Request(candidate, sizes) with "
                f"one of the {len(view.candidates)} candidates and whole numbers for "
                f"{len(state.pool.names)} pools."
            )
        index, sizes = request
        if view.candidates[index] in wanted:
            raise InputError(f"{allocation!r} asked twice for candidate number {index}.")
        cut = np.minimum(sizes, view.left[index])
        if cut.any():
            wanted[view.candidates[index]] = tuple(cut.tolist())
    return wanted


def _sound(request: Any, view: SearchView) -> bool:
    if not isinstance(request, tuple) or len(request) != 2 or not is_whole(request[0], least=0):
        return False
    index, sizes = request
    if not isinstance(sizes, Sequence) or len(sizes) != view.left.shape[1]:
        return False
    return index < len(view.candidates) and all(is_whole(size, least=0) for size in sizes)


def _left(state: State, candidate: str) -> list[int]:
    """Tasks of each pool still to be asked; none of a candidate that mostly breaks down."""
    batches = state.batches[candidate]
    told, scored = sum(p.told for p in batches), sum(p.scored for p in batches)
    return [0] * len(state.pool.names) if 2 * scored < told else state.asked.left[candidate]


def _view(state: State, final: bool) -> SearchView:
    candidates = state.candidates
    places = {name: place for place, name in enumerate(state.table.candidates)}
    last = set(state.rounds[-1].candidates)

    def model() -> Posterior:
        return state.posterior().of(np.array([places[name] for name in candidates]))

    return SearchView(
        pool=state.pool,
        candidates=candidates,
        newest=np.array([i for i, name in enumerate(candidates) if name in last]),
        left=np.array([_left(state, name) for name in candidates], dtype=np.int64),
        spent=state.asked.total,
        round=state.rounds[-1].number,
        final=final,
        rng=np.random.default_rng((state.seed, len(state.rounds), state.asked.total, 3)),
        model=model,
        outcomes=state.table.means,
    )
