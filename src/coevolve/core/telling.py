"""Finds which of the outcomes that a user tells are new, and refuses those that do not fit."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from coevolve.core.assignment import Assignment
from coevolve.core.evidence import Progress
from coevolve.core.identifiers import Id
from coevolve.core.outcome_table import OBSERVED
from coevolve.core.outcomes import Results, Told, read_results
from coevolve.core.selector_state import State
from coevolve.errors import ChangedOutcomeError, InputError, NotAskedError, PhaseError
from coevolve.formatting import plural


def told_in_full(state: State, candidate: Id, scores: Results) -> Told:
    """The new outcomes of a candidate on every task of the pool."""
    known = candidate in state.starts or candidate in state.batches
    if not known and state.rounds:
        raise PhaseError(
            f"candidate {candidate!r} is new; tell_full adds candidates only before the first "
            f"ask. Use ask([{candidate!r}])."
        )
    told = read_results(candidate, scores, range(state.trials), state.pool.scale)
    positions = state.pool.positions(told.tasks)
    if len(told.tasks) < len(state.pool) * state.trials:
        short = np.flatnonzero(np.bincount(positions, minlength=len(state.pool)) < state.trials)
        raise InputError(
            f"tell_full needs {plural(state.trials, 'trial')} of every task, but {len(short)} of "
            f"{len(state.pool)} tasks have fewer, such as {state.pool.tasks[short[0]]!r}; use "
            "Missing(reason) for a trial without a score."
        )
    return _new(state, candidate, _renumbered(state, candidate, told))


def told_of_assignment(state: State, assignment: Assignment, results: Results) -> Told:
    """The new outcomes of an assignment."""
    progress = open_assignment(state, assignment)
    told = read_results(assignment.candidate, results, assignment.trials, state.pool.scale)
    if not progress.asked.issuperset(told.tasks):
        task = next(task for task in told.tasks if task not in progress.asked)
        state.pool.position(task)
        raise NotAskedError(
            f"task {task!r} was not asked for candidate {assignment.candidate!r} in round "
            f"{assignment.round}."
        )
    return _new(state, assignment.candidate, told)


def open_assignment(state: State, assignment: Assignment) -> Progress:
    """What was told of an assignment of this selector."""
    if not isinstance(assignment, Assignment):
        raise InputError(f"assignment must be one that ask returned, got {assignment!r}.")
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


def _new(state: State, candidate: Id, told: Told, *, observed: bool = False) -> Told:
    """What is new in `told`; outcomes that differ from the record are refused."""
    positions, trials = state.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
    if set(map(type, told.tasks)) - {str}:  # 1 and True are the same task
        told = replace(told, tasks=[state.pool.tasks[at] for at in positions.tolist()])
    if candidate not in state.table:
        return told
    known, scores = state.table.find(candidate, positions, trials, observed=observed)
    for at in np.flatnonzero(known).tolist():
        key = candidate, int(positions[at]), told.trials[at] + OBSERVED * observed
        score = told.scores[at]
        told_as = told.missing.get(str(at), score)
        before: object = state.reasons.get(key, float(scores[at]))
        now = told_as if score is None else float(state.pool.to_unit(np.array(score)))
        if before != now:
            if key not in state.reasons:
                before = float(state.pool.from_unit(scores[at]))
            remedy = " For several trials of a task, pass a list of scores." if observed else ""
            raise ChangedOutcomeError(
                f"task {told.tasks[at]!r}, trial {told.trials[at]}, of candidate "
                f"{candidate!r} is recorded as {before!r} and was told as {told_as!r}; outcomes "
                f"are never rewritten.{remedy}"
            )
    return told.without(known)


def newly_observed(state: State, candidate: Id, results: Results) -> Told:
    """The new outcomes among those that were observed; missing ones say nothing."""
    if isinstance(results, Mapping):
        results = {t: v if isinstance(v, list | tuple) else [v] for t, v in results.items()}
    told = read_results(candidate, results, range(OBSERVED), state.pool.scale)
    scored = np.array([score is not None for score in told.scores], dtype=np.bool_)
    return _new(state, candidate, told.without(~scored), observed=True)


def _renumbered(state: State, candidate: Id, told: Told) -> Told:
    """`told`, where scores of trials that are recorded as missing get new trial numbers.

    The numbers below 2r belong to a round and to the same round drawn again.
    """
    for at, (task, score) in enumerate(zip(told.tasks, told.scores, strict=True)):
        position = state.pool.position(task)
        if score is None or (candidate, position, told.trials[at]) not in state.reasons:
            continue
        told.trials[at] += 2 * state.trials
        unit = float(state.pool.to_unit(np.array(score)))
        while state.recorded(candidate, position, told.trials[at]) not in (None, unit):
            told.trials[at] += state.trials
    return told
