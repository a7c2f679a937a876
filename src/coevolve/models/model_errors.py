"""What can go wrong between a harness and a model, as one tree.

ModelError
    ├── ModelUnavailable    no answer this time: rate limit, overload, time-out, lost connection
    ├── ModelReplyError     an answer that is none: truncated, malformed
    ├── NoChoice            an answer that is none of the choices
    ├── ContextTooLong      a prompt longer than the model reads
    ├── RequestRefused      a request that is none, or that the service will not answer
    ├── TrialCapError       a trial has asked all that a trial may ask
    ├── ModelKeyError       the service refuses the key, or there is none
    ├── ModelNotFound       no such model, or not with these parameters, or no such address
    ├── ModelCapError       the run has spent all that it may spend
    └── NotRecorded         a replayed recording lacks the answer

The first two are worth another attempt, which the gateway makes. Who is to blame for what remains
is in the table of `coevolve.executors.failure_table`, which knows these classes by their names.
"""

from collections.abc import Mapping

from coevolve.errors import CoevolveError


class ModelError(CoevolveError):
    """Base of every error between a harness and a model.

    `usage` is what the answers cost that came all the same, until somebody has counted it.
    """

    usage: Mapping[str, float] | None = None


class ModelUnavailable(ModelError):  # noqa: N818
    """The model did not answer this time; `retry_after` is how long it asked to be left alone.

    >>> ModelUnavailable("429: slow down", retry_after=2.0).retry_after
    2.0
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelReplyError(ModelError):
    """The model's answer cannot be read: truncated, malformed, without a text."""


class NoChoice(ModelError):  # noqa: N818
    """The model answered with none of the choices; a wrong answer, and asking again costs more."""


class ContextTooLong(ModelError):  # noqa: N818
    """The prompt is longer than the model reads."""


class RequestRefused(ModelError):  # noqa: N818
    """The request is none, or the service will not answer it."""


class TrialCapError(ModelError):
    """The trial has asked all that a trial may ask."""


class ModelKeyError(ModelError):
    """The service refuses the key, or there is none."""


class ModelNotFound(ModelError):  # noqa: N818
    """No such model, or not with these parameters, or nothing of the kind at this address."""


class ModelCapError(ModelError):
    """The run has spent all that it may spend on the model."""


class NotRecorded(ModelError):  # noqa: N818
    """The recording that is replayed has no answer to this request."""
