"""Computes estimates and the choice from outcomes, and finds which told outcomes are new."""

from dataclasses import replace

import numpy as np

from coevolve.core.assignment import Assignment, whole_samples
from coevolve.core.choice import Choice, Contender
from coevolve.core.estimators import Difference, Estimate, Estimator, Hajek, modelled
from coevolve.core.evidence import Evidence, Progress, failures_note
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


def estimated(state: State, candidate: str) -> Estimate:
    """The full-set score of a candidate."""
    _check_known(state, candidate)
    try:
        if candidate in state.whole:
            failed = state.failed(candidate)
            samples = whole_samples(state.pool, *state.table.means(candidate, None, failed))
            estimate = Hajek().estimate(samples, state.pool.weights, state.confidence)
            return replace(estimate, note=_joined(estimate.note, failures_note(failed)))
        evidence, estimator = state.evidence(candidate), state.decided()
        if isinstance(estimator, JointModel):
            estimate = _modelled(state, candidate, evidence)
        else:
            estimate = _designed(state, evidence, estimator)
    except NoOutcomeError as error:
        raise NoOutcomeError(f"candidate {candidate!r}: {error}.") from None
    return replace(estimate, note=_joined(estimate.note, evidence.note))


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def scores_of(state: State, candidate: str) -> dict[str, float | Missing]:
    """Per task the mean of a candidate's trials, or why it is missing."""
    _check_known(state, candidate)
    tasks, means = state.table.means(candidate)
    found: dict[int, float | Missing] = {
        position: Missing(reason)
        for (name, position, _), reason in state.reasons.items()
        if name == candidate
    }
    found.update(zip(tasks.tolist(), means.tolist(), strict=True))
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


def _check_known(state: State, candidate: str) -> None:
    if not isinstance(candidate, str) or candidate not in state.table:
        hint = nearest(candidate, state.table.candidates)
        raise UnknownCandidateError(f"candidate {candidate!r} is unknown.{hint}")


def _designed(state: State, evidence: Evidence, estimator: Estimator) -> Estimate:
    samples = evidence.samples(state.table)
    return estimator.estimate(samples, state.pool.weights, state.confidence)


def _modelled(state: State, candidate: str, evidence: Evidence) -> Estimate:
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
    )


def _confidence(state: State, winner: str, field: list[str]) -> Confidence | None:
    """How sure the joint model is of the winner, if there is such a model."""
    if not isinstance(state.estimator, JointModel) or winner not in field:
        return None
    number = {name: index for index, name in enumerate(state.table.candidates)}
    posterior = state.posterior().of(np.array([number[name] for name in field]))
    return posterior.confidence(field.index(winner), np.random.default_rng(state.seed))


def _contender(state: State, candidate: str) -> Contender | None:
    """A candidate with its estimate, or None without any outcome."""
    try:
        return Contender(candidate, state.table.round_of(candidate), estimated(state, candidate))
    except NoOutcomeError:
        return None


def _finished(state: State, candidate: str) -> bool:
    return candidate in state.whole or state.evidence(candidate).complete


def _supported(state: State, candidate: str) -> bool:
    """Whether at least half of the trials that a candidate was asked for have a score."""
    if candidate in state.whole:
        answered = len(state.table.means(candidate, None, state.failed(candidate))[0])
        return 2 * answered >= len(state.pool)
    evidence = state.evidence(candidate)
    return 2 * evidence.answered >= sum(len(progress.assignment) for progress in evidence.batches)


def told_in_full(state: State, candidate: str, scores: Results) -> Told:
    """The new outcomes of a candidate on every task of the pool."""
    if candidate not in state.table and state.rounds:
        raise PhaseError(
            f"candidate {candidate!r} is new; tell_full adds candidates only before the first "
            f"ask. Use ask([{candidate!r}])."
        )
    told = read_results(candidate, scores, range(state.trials))
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
    told = read_results(assignment.candidate, results, assignment.trials)
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


def _new(state: State, candidate: str, told: Told) -> Told:
    """What is new in `told`; outcomes that differ from the record are refused."""
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
    """`told`, where scores of trials that are recorded as missing get new trial numbers.

    The numbers below 2r belong to a round and to the same round drawn again.
    """
    for at, (task, score) in enumerate(zip(told.tasks, told.scores, strict=True)):
        position = state.pool.position(task)
        if score is None or (candidate, position, told.trials[at]) not in state.reasons:
            continue
        told.trials[at] += 2 * state.trials
        while state.recorded(candidate, position, told.trials[at]) not in (None, score):
            told.trials[at] += state.trials
    return told
