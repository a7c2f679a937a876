"""Errors between a harness and a model, as one tree.

ModelError
    ├── ModelUnavailable    no answer: rate limit, overload, time-out, lost connection
    │   └── RequestUnanswered   no answer to this request, while the model answers others
    ├── ModelReplyError     an answer that cannot be read: truncated, malformed
    ├── NoChoice            an answer that is none of the choices
    ├── ContextTooLong      the prompt is too long for the model
    ├── RequestRefused      the request is not valid, or the service refuses to answer it
    ├── TrialCapError       a cap of the trial is reached
    ├── ModelKeyError       the service refuses the key, or there is none
    ├── ModelNotFound       unknown model or address, or refused parameters
    ├── ModelCapError       a cap of the run is reached
    └── NotRecorded         a replayed recording does not have the answer

The gateway retries the first two. The table in `coevolve.executors.failure_table`, which knows
these classes by name, has the blame for each.
"""

from collections.abc import Mapping

from coevolve.errors import CoevolveError


class ModelError(CoevolveError):
    """Base of every error between a harness and a model.

    `usage` is the cost of answers before the error; the engine counts it and then clears it.
    """

    usage: Mapping[str, float] | None = None


class ModelUnavailable(ModelError):  # noqa: N818
    """The model did not answer; `retry_after` is the wait that the service requests.

    >>> ModelUnavailable("429: slow down", retry_after=2.0).retry_after
    2.0
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RequestUnanswered(ModelUnavailable):
    """The model did not answer this request, but answered another one at the same time."""


class ModelReplyError(ModelError):
    """The answer of the model cannot be read: truncated, malformed, without text."""


class NoChoice(ModelError):  # noqa: N818
    """The answer is none of the choices; it counts as a wrong answer and is not retried."""


class ContextTooLong(ModelError):  # noqa: N818
    """The prompt is too long for the model."""


class RequestRefused(ModelError):  # noqa: N818
    """The request is not valid, or the service refuses to answer it."""


class TrialCapError(ModelError):
    """A cap of the trial is reached."""


class ModelKeyError(ModelError):
    """The service refuses the key, or there is none."""


class ModelNotFound(ModelError):  # noqa: N818
    """The model or address is unknown, or the parameters are refused."""


class ModelCapError(ModelError):
    """A cap of the run on the model is reached."""


class NotRecorded(ModelError):  # noqa: N818
    """The replayed recording does not have the answer."""
