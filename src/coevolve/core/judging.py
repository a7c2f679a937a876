"""What the outcomes told so far say about candidates."""

from dataclasses import replace

import numpy as np

from coevolve.core.choice import Choice, Standing
from coevolve.core.estimate import Estimate
from coevolve.core.estimators import Difference, Estimator, Hajek, modelled
from coevolve.core.outcomes import Missing
from coevolve.core.posterior import Confidence, JointModel
from coevolve.core.progress import Evidence
from coevolve.core.sample import whole_samples
from coevolve.core.state import State
from coevolve.errors import NoOutcomeError, UnknownCandidateError, nearest


def estimated(state: State, candidate: str) -> Estimate:
    """The full-set score of a candidate."""
    _check_known(state, candidate)
    try:
        if candidate in state.whole:
            samples = whole_samples(state.pool, *state.table.means(candidate))
            return Hajek().estimate(samples, state.pool.weights, state.confidence)
        evidence, estimator = state.evidence(candidate), state.decided()
        if isinstance(estimator, JointModel):
            estimate = _modelled(state, candidate, evidence)
        else:
            estimate = _designed(state, evidence, estimator)
    except NoOutcomeError as error:
        raise NoOutcomeError(f"candidate {candidate!r}: {error}.") from None
    return replace(estimate, note="; ".join(filter(None, (estimate.note, evidence.note))))


def scores_of(state: State, candidate: str) -> dict[str, float | Missing]:
    """Per task the mean of a candidate's trials, or the reason why there is none."""
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
    """The winner among the candidates told in full, or in part if none is."""
    standing = {name: s for name in state.candidates if (s := _standing(state, name))}
    finished = {name: s for name, s in standing.items() if _finished(state, name)}
    field = finished or standing
    start = [s for name in state.starts if (s := _standing(state, name))]
    choice = state.protocol.choice.choose(list(field.values()), start)
    return replace(
        choice,
        left_out=tuple(n for n in state.candidates if n not in field),
        confidence=_confidence(state, choice.candidate, list(field)),
    )


def _check_known(state: State, candidate: str) -> None:
    if not isinstance(candidate, str) or candidate not in state.table:
        hint = nearest(candidate, state.table.candidates)
        raise UnknownCandidateError(f"candidate {candidate!r} is not known.{hint}")


def _designed(state: State, evidence: Evidence, estimator: Estimator) -> Estimate:
    samples = evidence.samples(state.table)
    return estimator.estimate(samples, state.pool.weights, state.confidence)


def _modelled(state: State, candidate: str, evidence: Evidence) -> Estimate:
    """The joint model's estimate, with the design-based one beside it."""
    if not len(state.table.means(candidate)[0]):
        raise NoOutcomeError("no scored outcome yet")
    try:
        check = _designed(state, evidence, Difference())
    except NoOutcomeError:
        check = None
    at, posterior = state.table.candidates.index(candidate), state.posterior()
    return modelled(
        float(posterior.scores[at]),
        float(posterior.sd[at]),
        tasks=len(state.table.means(candidate)[0]),
        drawn=state.asked.count(candidate),
        pool_size=len(state.pool),
        confidence=state.confidence,
        check=check,
    )


def _confidence(state: State, winner: str, field: list[str]) -> Confidence | None:
    """How sure a joint model is of the winner among the field, if there is such a model."""
    if not isinstance(state.estimator, JointModel) or winner not in field:
        return None
    number = {name: index for index, name in enumerate(state.table.candidates)}
    posterior = state.posterior().of(np.array([number[name] for name in field]))
    return posterior.confidence(field.index(winner), np.random.default_rng(state.seed))


def _standing(state: State, candidate: str) -> Standing | None:
    """A candidate with its estimate, or nothing where there is no outcome to estimate from."""
    try:
        return Standing(candidate, state.table.round_of(candidate), estimated(state, candidate))
    except NoOutcomeError:
        return None


def _finished(state: State, candidate: str) -> bool:
    return candidate in state.whole or state.evidence(candidate).complete
