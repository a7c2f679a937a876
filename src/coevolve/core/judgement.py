"""Computes estimates and the choice from outcomes."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from coevolve.core.assignment import whole_samples
from coevolve.core.choice import Choice, ChoiceRule, Contender, HighestEstimate
from coevolve.core.estimators import (
    FULL_SET,
    Difference,
    Estimate,
    Estimator,
    Hajek,
    hajek,
    modelled,
)
from coevolve.core.evidence import Evidence, failures_note, growth_note
from coevolve.core.identifiers import Id, is_id
from coevolve.core.missingness import Cell
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.core.posterior import Confidence, Deferred, JointModel
from coevolve.core.selector_state import State
from coevolve.errors import NoOutcomeError, UnknownCandidateError, nearest
from coevolve.formatting import plural, score


def estimated(state: State, candidate: Id) -> Estimate:
    """The full-set score of a candidate."""
    check_known(state, candidate)
    found = state.estimates.get(candidate)
    if found is None:
        try:
            found = _estimated(state, candidate).scaled(state.pool.scale)
        except NoOutcomeError as error:
            raise NoOutcomeError(f"candidate {candidate!r}: {error}.") from None
        state.estimates[candidate] = found
    return found


def _estimated(state: State, candidate: Id) -> Estimate:
    """The estimate on the scale from 0 to 1."""
    estimator, then = state.estimator, state.whole.get(candidate)
    joint = isinstance(estimator, JointModel)
    if then is not None and (not joint or len(then) == len(state.pool)):
        return _whole(state, candidate, then)
    evidence = state.evidence(candidate) if candidate in state.batches else None
    if isinstance(estimator, JointModel):
        estimate = _modelled(state, candidate, evidence)
    elif evidence is not None and estimator is not None:
        estimate = _designed(state, evidence, estimator)
    else:
        raise NoOutcomeError(
            f"its outcomes on {state.table.observed(candidate)} tasks were observed and not "
            "drawn, and a design-based estimate ignores them; ask for it first"
        )
    note = "" if evidence is None else evidence.note
    return replace(estimate, note=_joined(estimate.note, note)) if note else estimate


def _whole(state: State, candidate: Id, pool: Pool) -> Estimate:
    """The score of a candidate that was told in full, when the pool had these tasks."""
    failed = state.failed(candidate)
    samples = whole_samples(pool, *state.table.means(candidate, None, failed))
    estimate = _uncertain(Hajek().estimate(samples, pool.weights, state.confidence), failed)
    note = _joined(estimate.note, failures_note(failed), growth_note(pool, state.pool))
    return replace(estimate, note=note, ignored=state.table.observed(candidate))


def _uncertain(estimate: Estimate, failed: Sequence[Cell]) -> Estimate:
    """The estimate, without an error if it has every task only because trials count as failed.

    Nothing was drawn, so the error of a draw is 0; but the scores of these trials are not known.
    """
    if not failed or estimate.method != FULL_SET:
        return estimate
    return replace(estimate, se=None, low=None, high=None)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def scores_of(state: State, candidate: Id) -> dict[Id, float | Missing]:
    """Per task the mean of a candidate's trials, or why it is missing."""
    check_known(state, candidate)
    tasks, means = state.table.means(candidate)
    found: dict[int, float | Missing] = {
        position: Missing(reason)
        for (name, position, _), reason in state.reasons.items()
        if name == candidate
    }
    found.update(zip(tasks.tolist(), state.pool.from_unit(means).tolist(), strict=True))
    return {state.pool.tasks[position]: found[position] for position in sorted(found)}


def pool_scores_of(state: State, candidate: Id) -> dict[str, float]:
    """The score of a candidate that was told in full, in each pool with an outcome of it."""
    check_known(state, candidate)
    pool = state.whole.get(candidate)
    if pool is None:
        raise NoOutcomeError(f"candidate {candidate!r} was not told in full.")
    means = state.table.means(candidate, None, state.failed(candidate))
    found = [sample for sample in whole_samples(pool, *means) if len(sample.scores)]
    values = pool.from_unit(np.array([hajek(sample).value for sample in found])).tolist()
    return {sample.pool: value for sample, value in zip(found, values, strict=True)}


def chosen(state: State, include_start: bool | None = None, *, unfinished: bool = False) -> Choice:
    """The winner among the candidates whose outcomes are all told, or all if there are none.

    A candidate with a score on under half of the trials that it was asked for is considered only
    if all others have less too: its estimate rests on what it did not run.

    Args:
        state: The outcomes.
        include_start: Whether a starting harness may win; None leaves this to the protocol.
        unfinished: Whether outcomes of the winner may be open.
    """
    scored = {name: c for name in state.candidates if (c := _contender(state, name))}
    finished = {n: c for n, c in scored.items() if unfinished or _finished(state, n)}
    field = finished or scored
    field = {name: c for name, c in field.items() if _supported(state, name)} or field
    start = [c for name in state.starts if (c := _contender(state, name))]
    choice = _choose(state.protocol.choice, list(field.values()), start, include_start)
    among = list(field)
    if choice.candidate in state.starts:
        among = [*(contender.candidate for contender in start), *field]
    left_out = tuple(n for n in state.candidates if n not in field)
    return replace(
        choice,
        why=choice.why + _ahead(choice, [c for n in left_out if (c := scored.get(n))]),
        left_out=left_out,
        deferred_confidence=_confidence(state, choice.candidate, among),
    )


def _choose(
    rule: ChoiceRule, field: list[Contender], start: list[Contender], include: bool | None
) -> Choice:
    """The choice of a rule, with or without the starting harnesses if the caller says so."""
    if include is not None and isinstance(rule, HighestEstimate):
        rule = replace(rule, include_start=include)
    elif include and start:  # another rule chooses the candidate that competes with them
        names = [rule.choose(field, start).candidate] if field else []
        best = [contender for contender in field if contender.candidate in names]
        return HighestEstimate(include_start=True).choose(best, start)
    return rule.choose(field, start)


def _ahead(choice: Choice, others: list[Contender]) -> str:
    """Why candidates with a higher estimate were not considered, for the reason of a choice."""
    ahead = [c for c in others if c.estimate.value > choice.estimate.value]
    if not ahead:
        return ""
    top = max(ahead, key=lambda c: c.estimate.value)
    found = f"{top.candidate} has {score(top.estimate.value, top.estimate.scale)}"
    if len(ahead) == 1:
        return f"; {found}, but some of its trials have no score"
    rest = plural(len(ahead) - 1, "other")
    return f"; {found} and {rest} more than this, but some of their trials have no score"


def check_known(state: State, candidate: Id) -> None:
    """Refuse a candidate that is not in the table."""
    if not is_id(candidate) or candidate not in state.table:
        hint = nearest(candidate, state.table.candidates)
        raise UnknownCandidateError(f"candidate {candidate!r} is unknown.{hint}")


def _designed(state: State, evidence: Evidence, estimator: Estimator) -> Estimate:
    """The estimate from the draws of a candidate alone, for the tasks at that time."""
    samples, pool = evidence.samples(state.table), evidence.pool
    estimate = estimator.estimate(samples, pool.weights, state.confidence)
    estimate = _uncertain(estimate, evidence.failed)
    ignored = state.table.observed(evidence.batches[0].assignment.candidate)
    note = _joined(estimate.note, growth_note(pool, state.pool))
    return replace(estimate, note=note, ignored=ignored)


def _modelled(state: State, candidate: Id, evidence: Evidence | None) -> Estimate:
    """The joint model's estimate, with the design-based one as a check."""
    failed = () if evidence is None else evidence.failed
    tasks, _ = state.table.means(candidate, None, failed)
    observed = state.table.observed(candidate)
    if not len(tasks) and not observed:
        raise NoOutcomeError("no score yet")
    check = None if evidence is None else _check(state, candidate, evidence)
    at, posterior = state.table.candidates.index(candidate), state.posterior()
    return modelled(
        float(posterior.scores[at]),
        float(posterior.sd[at]),
        tasks=len(tasks),
        drawn=state.asked.count(candidate),
        pool_size=len(state.pool),
        confidence=state.confidence,
        check=check,
        comparable=evidence is not None and len(evidence.pool) == len(state.pool),
        scale=state.pool.scale,
        observed=observed,
    )


def _check(state: State, candidate: Id, evidence: Evidence) -> Estimate | None:
    """The design-based estimate beside that of a joint model, if there is one.

    It does not depend on the model, which is fitted anew after every event.
    """
    if candidate not in state.checks:
        state.checks[candidate] = None
        with suppress(NoOutcomeError):
            state.checks[candidate] = _designed(state, evidence, Difference())
    return state.checks[candidate]


def _confidence(state: State, winner: Id, field: list[Id]) -> Deferred[Confidence] | None:
    """How sure the joint model is of the winner, if there is such a model."""
    if not isinstance(state.estimator, JointModel) or winner not in field:
        return None
    number = {name: index for index, name in enumerate(state.table.candidates)}
    posterior = replace(state.posterior(), wide=None)
    posterior = posterior.of(np.array([number[name] for name in field]))
    span, seed = state.pool.scale[1] - state.pool.scale[0], state.seed

    def confidence() -> Confidence:
        found = posterior.confidence(field.index(winner), np.random.default_rng(seed))
        return replace(found, regret=span * found.regret, span=span)

    return Deferred(confidence)


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
        return 2 * answered >= len(state.whole[candidate])
    evidence = state.evidence(candidate)
    return 2 * evidence.answered >= sum(len(progress.assignment) for progress in evidence.batches)
