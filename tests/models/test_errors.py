"""Who is to blame for what goes wrong between a harness and a model."""

import pytest

from coevolve.executors.failures import classify
from coevolve.models import model_errors as errors
from coevolve.models.call_recording import RecordError
from coevolve.models.response_cache import CacheError
from coevolve.search.trials import Blame

BLAMES = {
    errors.ModelUnavailable: Blame.INFRASTRUCTURE,
    errors.ModelReplyError: Blame.INFRASTRUCTURE,
    errors.NoChoice: Blame.CANDIDATE,
    errors.ContextTooLong: Blame.CANDIDATE,
    errors.RequestRefused: Blame.CANDIDATE,
    errors.TrialCapError: Blame.CANDIDATE,
    errors.ModelKeyError: Blame.OPERATOR,
    errors.ModelNotFound: Blame.OPERATOR,
    errors.RequestUnanswered: Blame.DOUBTFUL,
    errors.ModelCapError: Blame.INFRASTRUCTURE,
    errors.NotRecorded: Blame.OPERATOR,
    CacheError: Blame.OPERATOR,
    RecordError: Blame.OPERATOR,
}


@pytest.mark.parametrize("kind", BLAMES, ids=lambda kind: kind.__name__)
def test_every_error_has_its_blame(kind: type[Exception]) -> None:
    fault = classify(kind("what was wrong"))
    assert fault.blame is BLAMES[kind]
    assert "what was wrong" in fault.reason


def test_no_error_is_forgotten() -> None:
    made = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    kinds = {kind for kind in made if issubclass(kind, errors.ModelError)}
    assert kinds - {errors.ModelError} <= BLAMES.keys()


def test_the_cause_in_a_library_does_not_change_the_blame() -> None:
    cause = type("AuthenticationError", (Exception,), {"status_code": 401})("invalid api key")
    error = errors.ModelUnavailable("down")
    error.__cause__ = cause
    assert classify(error).blame is Blame.INFRASTRUCTURE
