"""What the outcomes told so far say about candidates."""

from dataclasses import replace

from coevolve.core.choice import Choice, Standing
from coevolve.core.estimate import Estimate
from coevolve.core.estimators import Estimator, Hajek
from coevolve.core.sample import drawn_samples, whole_samples
from coevolve.core.state import State
from coevolve.errors import NoOutcomeError, UnknownCandidateError, nearest


def estimated(state: State, candidate: str) -> Estimate:
    """The full-set score of a candidate."""
    if not isinstance(candidate, str) or candidate not in state.table:
        hint = nearest(candidate, state.table.candidates)
        raise UnknownCandidateError(f"candidate {candidate!r} is not known.{hint}")
    note = ""
    if candidate in state.whole:
        samples = whole_samples(state.pool, *state.table.means(candidate))
        estimator: Estimator = Hajek()
    else:
        standing = state.standing(candidate)
        assignment = standing.assignment
        found = state.table.means(candidate, assignment.trials)
        samples = drawn_samples(assignment.designs, *found)
        estimator, note = state.decided(), standing.note
    try:
        estimate = estimator.estimate(samples, state.pool.weights, state.confidence)
    except NoOutcomeError as error:
        raise NoOutcomeError(f"candidate {candidate!r}: {error}.") from None
    return replace(estimate, note="; ".join(filter(None, (estimate.note, note))))


def chosen(state: State) -> Choice:
    """The winner among the candidates told in full, or in part if none is."""
    standing = {name: s for name in state.candidates if (s := _standing(state, name))}
    finished = {name: s for name, s in standing.items() if _finished(state, name)}
    field = finished or standing
    start = [s for name in state.starts if (s := _standing(state, name))]
    choice = state.protocol.choice.choose(list(field.values()), start)
    return replace(choice, left_out=tuple(n for n in state.candidates if n not in field))


def _standing(state: State, candidate: str) -> Standing | None:
    """A candidate with its estimate, or nothing where there is no outcome to estimate from."""
    try:
        return Standing(candidate, state.table.round_of(candidate), estimated(state, candidate))
    except NoOutcomeError:
        return None


def _finished(state: State, candidate: str) -> bool:
    return candidate in state.whole or state.standing(candidate).complete
