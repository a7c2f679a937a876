"""Computes estimates and the choice from outcomes, and finds which told outcomes are new."""

from dataclasses import replace

import numpy as np

from coevolve.core.assignment import Assignment, whole_samples
from coevolve.core.choice import Choice, Contender
from coevolve.core.estimators import Difference, Estimate, Estimator, Hajek, modelled
from coevolve.core.evidence import Evidence, Progress, failures_note
from coevolve.core.identifiers import Id, is_id
from coevolve.core.outcomes import Missing, Results, Told, read_results
from coevolve.core.posterior import Confidence, JointModel
from coevolve.core.selector_state import State
from coevolve.errors import (
    ChangedOutcomeError,
    InputError,
    NoOutcomeError,
    NotAskedError,
    PhaseError,
    UnknownCandidateError,
    nearest,
)


def estimated(state: State, candidate: Id) -> Estimate:
    """The full-set score of a candidate."""
    _check_known(state, candidate)
    try:
        if candidate in state.whole:
            failed = state.failed(candidate)
            samples = whole_samples(state.pool, *state.table.means(candidate, None, failed))
            estimate = Hajek().estimate(samples, state.pool.weights, state.confidence)
            note = _joined(estimate.note, failures_note(failed))
            return replace(estimate, note=note).scaled(state.pool.scale)
        evidence, estimator = state.evidence(candidate), state.decided()
        if isinstance(estimator, JointModel):
            estimate = _modelled(state, candidate, evidence)
        else:
            estimate = _designed(state, evidence, estimator)
    except NoOutcomeError as error:
        raise NoOutcomeError(f"candidate {candidate!r}: {error}.") from None
    note = _joined(estimate.note, evidence.note)
    return replace(estimate, note=note).scaled(state.pool.scale)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def scores_of(state: State, candidate: Id) -> dict[Id, float | Missing]:
    """Per task the mean of a candidate's trials, or why it is missing."""
    _check_known(state, candidate)
    tasks, means = state.table.means(candidate)
    found: dict[int, float | Missing] = {
        position: Missing(reason)
        for (name, position, _), reason in state.reasons.items()
        if name == candidate
    }
    found.update(zip(tasks.tolist(), state.pool.from_unit(means).tolist(), strict=True))
    return {state.pool.tasks[position]: found[position] for position in sorted(found)}


def chosen(state: State) -> Choice:
    """The winner among the candidates told in full, or among all if there are none.

    A candidate with a score on under half of the trials that it was asked for is considered only
    if all others have less too: its estimate rests on what it did not run.
    """
    scored = {name: c for name in state.candidates if (c := _contender(state, name))}
    finished = {name: c for name, c in scored.items() if _finished(state, name)}
    field = finished or scored
    field = {name: c for name, c in field.items() if _supported(state, name)} or field
    start = [c for name in state.starts if (c := _contender(state, name))]
    choice = state.protocol.choice.choose(list(field.values()), start)
    return replace(
        choice,
        left_out=tuple(n for n in state.candidates if n not in field),
        confidence=_confidence(state, choice.candidate, list(field)),
    )


def _check_known(state: State, candidate: Id) -> None:
    if not is_id(candidate) or candidate not in state.table:
        hint = nearest(candidate, state.table.candidates)
        raise UnknownCandidateError(f"candidate {candidate!r} is unknown.{hint}")


def _designed(state: State, evidence: Evidence, estimator: Estimator) -> Estimate:
    samples = evidence.samples(state.table)
    return estimator.estimate(samples, state.pool.weights, state.confidence)


def _modelled(state: State, candidate: Id, evidence: Evidence) -> Estimate:
    """The joint model's estimate, with the design-based one as a check."""
    tasks, _ = state.table.means(candidate, None, evidence.failed)
    if not len(tasks):
        raise NoOutcomeError("no score yet")
    try:
        check = _designed(state, evidence, Difference())
    except NoOutcomeError:
        check = None
    at, posterior = state.table.candidates.index(candidate), state.posterior()
    return modelled(
        float(posterior.scores[at]),
        float(posterior.sd[at]),
        tasks=len(tasks),
        drawn=state.asked.count(candidate),
        pool_size=len(state.pool),
        confidence=state.confidence,
        check=check,
        scale=state.pool.scale,
    )


def _confidence(state: State, winner: Id, field: list[Id]) -> Confidence | None:
    """How sure the joint model is of the winner, if there is such a model."""
    if not isinstance(state.estimator, JointModel) or winner not in field:
        return None
    number = {name: index for index, name in enumerate(state.table.candidates)}
    posterior = state.posterior().of(np.array([number[name] for name in field]))
    found = posterior.confidence(field.index(winner), np.random.default_rng(state.seed))
    span = state.pool.scale[1] - state.pool.scale[0]
    return replace(found, regret=span * found.regret, span=span)


def _contender(state: State, candidate: Id) -> Contender | None:
    """A candidate with its estimate, or None without any outcome."""
    try:
        return Contender(candidate, state.table.round_of(candidate), estimated(state, candidate))
    except NoOutcomeError:
        return None


def _finished(state: State, candidate: Id) -> bool:
    return candidate in state.whole or state.evidence(candidate).complete


def _supported(state: State, candidate: Id) -> bool:
    """Whether at least half of the trials that a candidate was asked for have a score."""
    if candidate in state.whole:
        answered = len(state.table.means(candidate, None, state.failed(candidate))[0])
        return 2 * answered >= len(state.pool)
    evidence = state.evidence(candidate)
    return 2 * evidence.answered >= sum(len(progress.assignment) for progress in evidence.batches)


def told_in_full(state: State, candidate: Id, scores: Results) -> Told:
    """The new outcomes of a candidate on every task of the pool."""
    if candidate not in state.table and state.rounds:
        raise PhaseError(
            f"candidate {candidate!r} is new; tell_full adds candidates only before the first "
            f"ask. Use ask([{candidate!r}])."
        )
    told = read_results(candidate, scores, range(state.trials), state.pool.scale)
    positions = state.pool.positions(told.tasks)
    if len(told.tasks) < len(state.pool) * state.trials:
        short = np.flatnonzero(np.bincount(positions, minlength=len(state.pool)) < state.trials)
        raise InputError(
            f"tell_full needs {state.trials} trials of every task, but {len(short)} of "
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


def _new(state: State, candidate: Id, told: Told) -> Told:
    """What is new in `told`; outcomes that differ from the record are refused."""
    positions, trials = state.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
    if set(map(type, told.tasks)) - {str}:  # 1 and True are the same task
        told = replace(told, tasks=[state.pool.tasks[at] for at in positions.tolist()])
    if candidate not in state.table:
        return told
    known, scores = state.table.find(candidate, positions, trials)
    for at in np.flatnonzero(known).tolist():
        key = candidate, int(positions[at]), told.trials[at]
        score = told.scores[at]
        told_as = told.missing.get(str(at), score)
        before: object = state.reasons.get(key, float(scores[at]))
        now = told_as if score is None else float(state.pool.to_unit(np.array(score)))
        if before != now:
            if key not in state.reasons:
                before = float(state.pool.from_unit(scores[at]))
            raise ChangedOutcomeError(
                f"task {told.tasks[at]!r}, trial {told.trials[at]}, of candidate "
                f"{candidate!r} is recorded as {before!r} and was told as {told_as!r}; outcomes "
                "are never rewritten."
            )
    return told.without(known)


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
