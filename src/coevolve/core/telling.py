"""What of the results a user tells is new, and whether it may be recorded."""

import numpy as np

from coevolve.core.assignment import Assignment
from coevolve.core.progress import Progress
from coevolve.core.results import Results, Told, read_results
from coevolve.core.state import State
from coevolve.errors import ChangedOutcomeError, InputError, NotAskedError, PhaseError


def told_in_full(state: State, candidate: str, scores: Results) -> Told:
    """The new outcomes of a candidate on every task of the pool."""
    if candidate not in state.table and state.rounds:
        raise PhaseError(
            f"candidate {candidate!r} is new, and starting harnesses must be told before the "
            f"first ask; use ask([{candidate!r}]) for it."
        )
    told = read_results(candidate, scores, range(state.trials))
    positions = state.pool.positions(told.tasks)
    if len(told.tasks) < len(state.pool) * state.trials:
        short = np.flatnonzero(np.bincount(positions, minlength=len(state.pool)) < state.trials)
        raise InputError(
            f"tell_full needs every task of the pool ({state.trials} trials each), but "
            f"{len(short)} of {len(state.pool)} are short, {state.pool.tasks[short[0]]!r} "
            "first; use Missing(reason) for a trial without a score."
        )
    return _new(state, candidate, _renumbered(state, candidate, told))


def told_of_assignment(state: State, assignment: Assignment, results: Results) -> Told:
    """The new outcomes of an assignment."""
    progress = _progress(state, assignment)
    told = read_results(assignment.candidate, results, assignment.trials)
    if not progress.asked.issuperset(told.tasks):
        task = next(task for task in told.tasks if task not in progress.asked)
        state.pool.position(task)
        raise NotAskedError(
            f"task {task!r} was not asked of candidate {assignment.candidate!r} in round "
            f"{assignment.round}."
        )
    return _new(state, assignment.candidate, told)


def _progress(state: State, assignment: Assignment) -> Progress:
    if not isinstance(assignment, Assignment):
        raise InputError(f"tell needs an assignment from ask, got {assignment!r}.")
    batches = state.batches.get(assignment.candidate, [])
    known = batches[assignment.batch] if assignment.batch < len(batches) else None
    same = known is not None and (
        known.assignment is assignment or known.assignment.tasks == assignment.tasks
    )
    if known is None or not same:
        raise NotAskedError(
            f"the assignment of candidate {assignment.candidate!r} (round {assignment.round}, "
            f"batch {assignment.batch}) is not from this selector."
        )
    return known


def _new(state: State, candidate: str, told: Told) -> Told:
    """What is new in `told`; refuses what contradicts the record."""
    if candidate not in state.table:
        return told
    positions, trials = state.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
    known, scores = state.table.find(candidate, positions, trials)
    for at in np.flatnonzero(known).tolist():
        key = candidate, int(positions[at]), told.trials[at]
        before: object = state.reasons.get(key, float(scores[at]))
        now = told.missing.get(str(at), told.scores[at])
        if before != now:
            raise ChangedOutcomeError(
                f"task {told.tasks[at]!r}, trial {told.trials[at]}, of candidate "
                f"{candidate!r} is recorded as {before!r} and was told as {now!r}; outcomes "
                "are never rewritten."
            )
    return told.without(known)


def _renumbered(state: State, candidate: str, told: Told) -> Told:
    """With scores for trials recorded as missing moved to trial numbers of their own.

    The first two times r numbers belong to a round and to the same round drawn again.
    """
    for at, (task, score) in enumerate(zip(told.tasks, told.scores, strict=True)):
        position = state.pool.position(task)
        if score is None or (candidate, position, told.trials[at]) not in state.reasons:
            continue
        told.trials[at] += 2 * state.trials
        while state.recorded(candidate, position, told.trials[at]) not in (None, score):
            told.trials[at] += state.trials
    return told
