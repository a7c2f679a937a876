"""What an adaptive allocation wants to see next."""

import numpy as np

from coevolve.core.allocation import Adaptive
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
    for index, sizes in allocation.further(view):
        if not 0 <= index < len(view.candidates) or len(sizes) != len(state.pool.names):
            raise InputError(
                f"{allocation!r} asked for candidate number {index} and {sizes} tasks; there are "
                f"{len(view.candidates)} candidates and {len(state.pool.names)} pools."
            )
        cut = np.minimum(np.maximum(sizes, 0), view.left[index])
        if cut.any():
            wanted[view.candidates[index]] = tuple(cut.tolist())
    return wanted


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
        left=np.array([state.left[name] for name in candidates], dtype=np.int64),
        spent=state.drawn,
        round=state.rounds[-1].number,
        final=final,
        rng=np.random.default_rng((state.seed, len(state.rounds), state.drawn, 3)),
        model=model,
        outcomes=state.table.means,
    )
