"""The table of errors: the blame for each class, number, HTTP status and word.

Classes are known by their names, so no LLM library is imported. `docs/failures.md`
shows this table.
"""

import errno
from typing import NamedTuple

from coevolve.search.trials import Blame
from coevolve.service_words import CONTEXT, CREDIT, KEY, POLICY, Meaning

_FEWER = "Lower the number of workers if this continues."


class Row[Key](NamedTuple):
    """Errors with the same meaning: names of classes, errno or HTTP numbers, or words."""

    names: tuple[Key, ...]
    blame: Blame
    meaning: str
    advice: str = ""


def _row(names: str, blame: Blame, meaning: str, advice: str = "") -> Row[str]:
    return Row(tuple(names.split()), blame, meaning, advice)


UNNAMED = _row(
    "APIError APIStatusError", Blame.INFRASTRUCTURE, "a service failed without an HTTP status"
)
"""Base classes of most API errors, used if nothing else about an error is known."""

CLASSES = (
    _row(
        "ConnectionError APIConnectionError ConnectError NetworkError TransportError "
        "ProtocolError MaxRetryError ChunkedEncodingError ClientConnectionError "
        "ServerDisconnectedError IncompleteRead URLError gaierror SSLError "
        "EndpointConnectionError",
        Blame.INFRASTRUCTURE,
        "the network failed",
    ),
    _row(
        "Timeout TimeoutException APITimeoutError ConnectTimeoutError ReadTimeoutError "
        "DeadlineExceeded DeadlineExceededError",
        Blame.INFRASTRUCTURE,
        "a service did not answer in time",
    ),
    _row(
        "RateLimitError TooManyRequests ThrottlingException ResourceExhausted",
        Blame.INFRASTRUCTURE,
        "the rate limit of a service is reached",
        _FEWER,
    ),
    _row(
        "InternalServerError ServiceUnavailableError ServiceUnavailable OverloadedError "
        "BadGatewayError BadGateway GatewayTimeout APIResponseValidationError "
        "MidStreamFallbackError",
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded",
    ),
    _row(
        "BlockingIOError SandboxError",
        Blame.INFRASTRUCTURE,
        "this machine is short of processes, or could not start a sandbox",
        _FEWER,
    ),
    UNNAMED,
    _row(
        "MemoryError RecursionError TimeoutError BrokenProcessPool BrokenPipeError",
        Blame.DOUBTFUL,
        "this machine may lack a resource, or an answer may have broken the evaluator",
        "If memory is short, lower the number of workers; limit what the evaluator reads.",
    ),
    _row(
        "AuthenticationError PermissionDeniedError NoCredentialsError PermissionDenied "
        "Unauthenticated",
        Blame.OPERATOR,
        "a service refuses the key",
        "Check the API key in the environment and its permissions.",
    ),
    _row(
        "NotFoundError UnsupportedParamsError",
        Blame.OPERATOR,
        "the model does not exist, or does not accept the parameters",
        "Check the name of the model and its parameters in the configuration.",
    ),
    _row(
        "BudgetExceededError",
        Blame.OPERATOR,
        "the budget set at a service is used up",
        "Raise that budget, then resume the run.",
    ),
    _row(
        "SSLCertVerificationError",
        Blame.OPERATOR,
        "this machine does not trust the certificate of a service",
        "Install the certificate, or check the address of the service.",
    ),
    _row(
        "ImportError",
        Blame.OPERATOR,
        "the benchmark needs a module that cannot be imported",
        "Install the module in the environment of coevolve, or check the benchmark's folder.",
    ),
    _row(
        "StopRun StoreError DamageError ConfigError",
        Blame.OPERATOR,
        "something must be fixed before the run can continue",
    ),
    _row(
        "ContextWindowExceededError RequestTooLargeError ContextTooLong",
        Blame.CANDIDATE,
        "the candidate's prompt is longer than the model can read",
    ),
    _row(
        "ContentPolicyViolationError RejectedRequestError",
        Blame.CANDIDATE,
        "the service does not answer the candidate's prompt",
    ),
    _row(
        "RequestRefused",
        Blame.CANDIDATE,
        "the candidate's request to the model is invalid, or the service does not answer it",
    ),
    _row(
        "NoChoice",
        Blame.CANDIDATE,
        "the model answered with none of the candidate's choices",
    ),
    _row(
        "TrialCapError",
        Blame.CANDIDATE,
        "the candidate exceeds the calls or tokens of the model that a trial may use",
    ),
    _row(
        "ModelUnavailable ModelReplyError",
        Blame.INFRASTRUCTURE,
        "the model gave no answer, or an unreadable one, after several attempts",
        "Lower concurrency or requests_per_minute in [model] if this continues.",
    ),
    _row(
        "ModelKeyError",
        Blame.OPERATOR,
        "the model's service refuses the key, or there is no key",
        "Set the environment variable that `key` in [model] names; the key must allow the model.",
    ),
    _row(
        "ModelNotFound",
        Blame.OPERATOR,
        "the model or its address does not exist, or it does not accept the parameters",
        "Check name, base_url and the parameters in [model].",
    ),
    _row(
        "ModelCapError",
        Blame.INFRASTRUCTURE,
        "the run has spent its budget for the model",
    ),
    _row(
        "NotRecorded",
        Blame.OPERATOR,
        "the replayed recording has no answer to a request",
    ),
)

THREADS = Row(
    ("can't start new thread",),
    Blame.INFRASTRUCTURE,
    "this machine is short of threads",
    _FEWER,
)
"""The whole message of a RuntimeError."""

SYSTEM = (
    Row(
        (errno.ENOSPC, errno.EDQUOT),
        Blame.OPERATOR,
        "no space left on disk",
        "Free some space, then resume the run.",
    ),
    Row(
        (errno.EROFS, errno.EACCES, errno.EPERM),
        Blame.OPERATOR,
        "permission to read or write a file is denied",
        "Check the owner and the permissions of the file or folder named above.",
    ),
    Row(
        (errno.EMFILE, errno.ENFILE, errno.EAGAIN),
        Blame.INFRASTRUCTURE,
        "this machine is short of processes or open files",
        _FEWER,
    ),
    Row(
        (errno.ENOMEM,),
        Blame.DOUBTFUL,
        "there is no memory left",
        "If memory is short, lower the number of workers.",
    ),
    Row(
        (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EIO),
        Blame.INFRASTRUCTURE,
        "the network or a device failed",
    ),
)

HTTP = (
    Row((429,), Blame.INFRASTRUCTURE, "the rate limit of a service is reached", _FEWER),
    Row(
        (408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529),
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded",
    ),
    Row(
        (401, 402, 403, 404),
        Blame.OPERATOR,
        "a service refuses the key, or does not know the model",
        "Check the API key, the address and the name of the model.",
    ),
    Row((413,), Blame.CANDIDATE, "the candidate's prompt is longer than the service reads"),
)

AWS = (
    _row(
        "Throttling TooManyRequests ServiceUnavailable InternalServer ModelTimeout ModelNotReady "
        "RequestTimeout",
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded, or its rate limit is reached",
        _FEWER,
    ),
    _row(
        "AccessDenied UnrecognizedClient ExpiredToken InvalidClientTokenId InvalidSignature",
        Blame.OPERATOR,
        "a service refuses the key",
        "Renew the credentials, or check their permissions.",
    ),
)
"""How codes in `response["Error"]["Code"]` begin."""

WORDS = {
    Meaning.NO_CREDIT: Row(
        CREDIT,
        Blame.OPERATOR,
        "the account has no credit left",
        "Add credit to the account, then resume the run.",
    ),
    Meaning.KEY_REFUSED: Row(
        KEY,
        Blame.OPERATOR,
        "a service refuses the key",
        "Check the API key in the environment.",
    ),
    Meaning.TOO_LONG: Row(
        CONTEXT,
        Blame.CANDIDATE,
        "the candidate's prompt is longer than the model can read",
    ),
    Meaning.NOT_ANSWERED: Row(
        POLICY,
        Blame.CANDIDATE,
        "the service does not answer the candidate's prompt",
    ),
}
"""Words in errors of an API; no other errors are searched for them."""

API = {
    *UNNAMED.names,
    *("OpenAIError", "AnthropicError", "GoogleAPIError", "ClientError"),
    *("HTTPStatusError", "HTTPError", "RateLimitError", "TooManyRequests", "ResourceExhausted"),
    *("BadRequestError", "InvalidArgument", "AuthenticationError", "PermissionDeniedError"),
}
"""Classes that only clients of an API raise."""

BY_NAME = {name: row for row in CLASSES for name in row.names}
BY_ERRNO = {code: row for row in SYSTEM for code in row.names}
BY_STATUS = {code: row for row in HTTP for code in row.names}
