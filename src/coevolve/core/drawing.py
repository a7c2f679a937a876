"""Drawing tasks for candidates: rounds, and the further tasks of adaptive protocols."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from coevolve.core.allocation import Adaptive, SearchView
from coevolve.core.arrays import Floats, Indices
from coevolve.core.assignment import Design
from coevolve.core.designs import DesignMethod, Draw
from coevolve.core.estimators import EstimatorRule
from coevolve.core.events import Event
from coevolve.core.identifiers import Id, all_plain
from coevolve.core.outcome_table import History
from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.core.posterior import Posterior
from coevolve.core.protocols import part_to_json
from coevolve.core.selector_state import State
from coevolve.core.variance import Past
from coevolve.core.weights import TaskView
from coevolve.errors import InputError


def round_event(state: State, number: int, candidates: list[Id], *, again: bool) -> dict[str, Any]:
    """The event that draws a round for its candidates, for the first time or again.

    All candidates share one draw, or each has its own. A draw depends on the past outcomes, the
    seed, and the numbers of round, draw and pool alone.
    """
    draws = len(candidates) if state.draw_per == "candidate" else 1
    pools = [state.pool.members(name) for name in state.pool.names]
    chances = state.posterior().newcomer if state.protocol.weighting.needs_model else None
    view = _task_view(state, _recent(state, number), chances)
    weights = np.empty(len(state.pool))
    for members in pools:
        weights[members] = _weights(state, view.select(members))
    sizes, past = _sizes(state, weights), state.now()
    made = [
        [
            _design(
                state,
                number,
                pool=state.pool,
                place=(place, int(again), draw),
                size=size,
                members=pools[place],
                weights=weights[pools[place]],
                past=past[place],
            )
            for place, size in enumerate(sizes)
        ]
        for draw in range(draws)
    ]
    return {
        "round": number,
        "kind": "again" if again else "first",
        "candidates": all_plain(candidates),
        "decision": _decision(state),
        "draws": made,
    }


def further_event(state: State, wanted: dict[Id, tuple[int, ...]]) -> Event:
    """The event that adds tasks to the draws of candidates."""
    number = len(state.rounds)
    recent = _recent(state, number + 1)
    return {
        "round": number,
        "kind": "further",
        "candidates": all_plain(list(wanted)),
        "decision": None,
        "draws": [
            _further(state, number, candidate, sizes, recent)
            for candidate, sizes in wanted.items()
        ],
    }


def _further(
    state: State, number: int, candidate: Id, sizes: tuple[int, ...], recent: History
) -> list[dict[str, Any]]:
    """Designs that draw from the tasks that a candidate was not asked about yet."""
    asked = state.asked.masks[candidate]
    chances = None
    if state.protocol.weighting.needs_model:
        chances = state.posterior().chances[state.table.candidates.index(candidate)]
    index, batch = state.candidates.index(candidate), len(state.batches[candidate])
    past, pool = state.past[candidate], state.batches[candidate][-1].pool
    view = _task_view(state, recent, chances)
    made = []
    for place, (name, size) in enumerate(zip(pool.names, sizes, strict=False)):
        members = pool.members(name)
        left = members[~asked[members]]
        if size := min(size, len(left)):
            made.append(
                _design(
                    state,
                    number,
                    pool=pool,
                    place=(place, 2, index, batch),
                    size=size,
                    members=left,
                    weights=_weights(state, view.select(left)),
                    past=past[place],
                )
            )
    return made


def _design(
    state: State,
    round: int,
    *,
    pool: Pool,
    place: tuple[int, ...],
    size: int,
    members: Indices,
    weights: Floats,
    past: Past,
) -> dict[str, Any]:
    """One design as JSON: `size` of the tasks `members`, all of one pool."""
    method, name = state.protocol.design, pool.names[place[0]]
    whole = pool.members(name)
    seed = (state.seed, round, *place) if method.redraws else (state.seed, 0, place[0], 0, 0)
    rng = np.random.default_rng(seed)
    if method.redraws or len(members) == len(whole):
        draw = method.draw(weights, size, rng)
    else:
        draw = _continued(method, whole, members, size, rng)
    _check(method, draw, size, len(members))
    return Design.from_draw(
        draw,
        tasks=pool,
        pool=name,
        members=members,
        round=round,
        method="full" if size == len(whole) else method.name,
        seed=seed,
        weights=weights,
        past=past,
    ).to_json()


def _continued(
    method: DesignMethod, whole: Indices, left: Indices, size: int, rng: np.random.Generator
) -> Draw:
    """The next tasks of a design that is drawn once: those that a larger subset adds."""
    larger = method.draw(np.ones(len(whole)), len(whole) - len(left) + size, rng)
    new = np.flatnonzero(np.isin(left, whole[larger.chosen], assume_unique=True))
    return Draw(new[:size], np.full(len(left), size / len(left)))


def _weights(state: State, view: TaskView) -> Floats:
    """Checked weights of the tasks in view."""
    weighting, tasks = state.protocol.weighting, len(view.history.count)
    weights = np.asarray(weighting(view))
    if weights.shape != (tasks,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise InputError(
            f"{weighting!r} must give each of the {tasks} tasks a positive weight, got {weights}."
        )
    return weights


def _sizes(state: State, weights: Floats) -> list[int]:
    """Checked numbers of tasks to draw from each pool."""
    allocation, names = state.protocol.allocation, state.pool.names
    sizes = list(allocation.sizes(state.pool, weights))
    most = [len(state.pool.members(name)) for name in names]
    if len(sizes) != len(most) or not all(map(_fits, sizes, most)):
        raise InputError(
            f"{allocation!r} must draw from 1 to {most} tasks of the pools {list(names)}, "
            f"got {sizes}."
        )
    return [int(size) for size in sizes]


def _fits(size: object, most: int) -> bool:
    return is_whole(size, least=1) and int(size) <= most  # type: ignore[call-overload]


def _task_view(state: State, recent: History, chances: Floats | None) -> TaskView:
    costs = np.ones(len(state.pool)) if state.pool.costs is None else state.pool.costs
    return TaskView(history=recent, costs=costs, chances=chances)


def _recent(state: State, round: int) -> History:
    """The history that a weighting uses."""
    window = state.protocol.weighting.window
    return state.table.history(0 if window is None else round - window)


def _decision(state: State) -> dict[str, Any] | None:
    """The estimator that the rule picks after Phase 0, before the first round."""
    rule = state.protocol.estimator
    if state.estimator is not None or not isinstance(rule, EstimatorRule):
        return None
    past = state.table.history()
    pools = {name: past.select(state.pool.members(name)) for name in state.pool.names}
    means = {name: float(history.anchors.mean()) for name, history in pools.items()}
    return {"means": means, "estimator": part_to_json(rule.decide(means))}


def _check(design: DesignMethod, draw: Draw, size: int, tasks: int) -> None:
    """Refuse a draw that does not allow an estimate."""
    chosen, pi = np.asarray(draw.chosen), np.asarray(draw.probabilities)
    inside = ((chosen >= 0) & (chosen < tasks)).all()
    if not inside or len(chosen) != size or len(np.unique(chosen)) != size:
        raise InputError(f"{design!r} drew {chosen.tolist()}, not {size} different tasks.")
    if pi.shape != (tasks,) or not ((pi > 0) & (pi <= 1 + 1e-9)).all():
        raise InputError(
            f"{design!r} must give each of the {tasks} tasks a probability in (0, 1]."
        )


def requests(
    state: State, final: bool, among: Collection[Id] | None = None
) -> dict[Id, tuple[int, ...]]:
    """Candidates to evaluate further, and on how many tasks of each pool.

    Empty if the allocation is not adaptive or requests nothing. Without `among`, all outcomes must
    have been told. With it, only these candidates are considered, and of them those whose
    outcomes have been told.
    """
    allocation = state.protocol.allocation
    if not isinstance(allocation, Adaptive) or not state.rounds:
        return {}
    if state.waiting and among is None:
        return {}
    view = _search_view(state, final)
    asked = set(view.candidates) if among is None else set(among)
    asked -= {name for name, _ in state.waiting}
    wanted: dict[Id, tuple[int, ...]] = {}
    for request in allocation.further(view):
        if not _is_request(request, view):
            raise InputError(
                f"{allocation!r} requested {request!r}; it must be Request(candidate, sizes) with "
                f"the index of one of the {len(view.candidates)} candidates and whole numbers for "
                f"{len(state.pool.names)} pools."
            )
        index, sizes = request
        if view.candidates[index] in wanted:
            raise InputError(f"{allocation!r} requested candidate number {index} twice.")
        cut = np.minimum(sizes, view.left[index])
        if cut.any():
            wanted[view.candidates[index]] = tuple(cut.tolist())
    return {name: sizes for name, sizes in wanted.items() if name in asked}


def _is_request(request: Any, view: SearchView) -> bool:
    if not isinstance(request, tuple) or len(request) != 2 or not is_whole(request[0], least=0):
        return False
    index, sizes = request
    if not isinstance(sizes, Sequence) or len(sizes) != view.left.shape[1]:
        return False
    return index < len(view.candidates) and all(is_whole(size, least=0) for size in sizes)


def _left(state: State, candidate: Id) -> list[int]:
    """Tasks of each pool still to ask about.

    None if most trials of the candidate are missing, or if it was withdrawn.
    """
    batches, names = state.batches[candidate], state.pool.names
    lost = sum(progress.told - 2 * progress.scored for progress in batches) > 0
    if lost or candidate in state.withdrawn:
        return [0] * len(names)
    left = state.asked.left[candidate]
    return left + [0] * (len(names) - len(left))  # a pool that is newer than its draw


def _search_view(state: State, final: bool) -> SearchView:
    candidates = state.candidates
    places = {name: place for place, name in enumerate(state.table.candidates)}
    last = set(state.rounds[-1].candidates)
    out = {name for name, _ in state.waiting}

    def model() -> Posterior:
        return state.posterior().of(np.array([places[name] for name in candidates]))

    left = np.array([_left(state, name) for name in candidates], dtype=np.int64)
    return SearchView(
        pool=state.pool,
        candidates=candidates,
        newest=np.array([i for i, name in enumerate(candidates) if name in last]),
        left=left,
        asked=np.array([len(state.batches[n][-1].pool) for n in candidates]) - left.sum(axis=1),
        waiting=np.array([name in out for name in candidates], dtype=np.bool_),
        spent=state.asked.total,
        round=state.rounds[-1].number,
        final=final,
        rng=np.random.default_rng((state.seed, len(state.rounds), state.asked.total, 3)),
        model=model,
        outcomes=state.table.means,
    )
