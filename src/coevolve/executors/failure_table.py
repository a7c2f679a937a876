"""The table of errors: who is to blame for each class and each answer of a service.

Classes are known by their names, so that no LLM library is imported to know its errors. What
services say in their answers is in `coevolve.executors.failure_table`.
"""

import errno
from typing import NamedTuple

from coevolve.search.trials import Blame


class Row(NamedTuple):
    """Error classes that mean the same thing."""

    names: tuple[str, ...]
    blame: Blame
    meaning: str
    advice: str = ""


class Codes(NamedTuple):
    """Numbers, of the system or of HTTP, that mean the same thing."""

    codes: tuple[int, ...]
    blame: Blame
    meaning: str
    advice: str = ""


UNNAMED = Row(
    ("APIError", "APIStatusError"),
    Blame.INFRASTRUCTURE,
    "a service failed without an HTTP status",
)
"""Bases of nearly every error of an API: what an error says otherwise comes before them."""

CLASSES = (
    Row(
        (
            "ConnectionError",
            "APIConnectionError",
            "ConnectError",
            "NetworkError",
            "TransportError",
            "ProtocolError",
            "MaxRetryError",
            "ChunkedEncodingError",
            "ClientConnectionError",
            "ServerDisconnectedError",
            "IncompleteRead",
            "URLError",
            "gaierror",
            "SSLError",
            "EndpointConnectionError",
        ),
        Blame.INFRASTRUCTURE,
        "the network failed",
    ),
    Row(
        (
            "Timeout",
            "TimeoutException",
            "APITimeoutError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "DeadlineExceeded",
            "DeadlineExceededError",
        ),
        Blame.INFRASTRUCTURE,
        "a service did not answer in time",
    ),
    Row(
        ("RateLimitError", "TooManyRequests", "ThrottlingException", "ResourceExhausted"),
        Blame.INFRASTRUCTURE,
        "a service wants fewer requests",
        "Lower the number of workers if it goes on.",
    ),
    Row(
        (
            "InternalServerError",
            "ServiceUnavailableError",
            "ServiceUnavailable",
            "OverloadedError",
            "BadGatewayError",
            "BadGateway",
            "GatewayTimeout",
            "APIResponseValidationError",
            "MidStreamFallbackError",
        ),
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded",
    ),
    Row(
        ("BlockingIOError", "SandboxError"),
        Blame.INFRASTRUCTURE,
        "this machine is short of processes, or could not start a sandbox",
        "Lower the number of workers if it goes on.",
    ),
    UNNAMED,
    Row(
        ("MemoryError", "RecursionError", "TimeoutError", "BrokenProcessPool", "BrokenPipeError"),
        Blame.DOUBTFUL,
        "the machine may be short of something, or an answer may have broken the evaluator",
        "Lower the number of workers if memory is short; have the evaluator bound what it reads.",
    ),
    Row(
        (
            "AuthenticationError",
            "PermissionDeniedError",
            "NoCredentialsError",
            "PermissionDenied",
            "Unauthenticated",
        ),
        Blame.OPERATOR,
        "a service refuses the key",
        "Check the API key in the environment and what it is allowed to do.",
    ),
    Row(
        ("NotFoundError", "UnsupportedParamsError"),
        Blame.OPERATOR,
        "no such model, or not with these parameters",
        "Check the name of the model and its parameters in the configuration.",
    ),
    Row(
        ("BudgetExceededError",),
        Blame.OPERATOR,
        "a service's own budget is used up",
        "Raise the budget there, then resume the run.",
    ),
    Row(
        ("SSLCertVerificationError",),
        Blame.OPERATOR,
        "a service's certificate is not trusted here",
        "Install the certificate, or check the address of the service.",
    ),
    Row(
        ("ImportError",),
        Blame.OPERATOR,
        "the benchmark needs a module that cannot be imported",
        "Install the module in the environment of coevolve, or check the benchmark's folder.",
    ),
    Row(
        ("StopRun", "StoreError", "DamageError", "ConfigError"),
        Blame.OPERATOR,
        "something must be put right before the run can go on",
    ),
    Row(
        ("ContextWindowExceededError", "RequestTooLargeError", "ContextTooLong"),
        Blame.CANDIDATE,
        "the candidate's prompt is longer than the model can read",
    ),
    Row(
        ("ContentPolicyViolationError", "RejectedRequestError"),
        Blame.CANDIDATE,
        "the service will not answer the candidate's prompt",
    ),
    Row(
        ("RequestRefused",),
        Blame.CANDIDATE,
        "what the candidate asks of the model is no request, or one that is not answered",
    ),
    Row(
        ("NoChoice",),
        Blame.CANDIDATE,
        "the model answered with none of the candidate's choices",
    ),
    Row(
        ("TrialCapError",),
        Blame.CANDIDATE,
        "the candidate asks more of the model than a trial may",
    ),
    Row(
        ("ModelUnavailable", "ModelReplyError"),
        Blame.INFRASTRUCTURE,
        "the model gave no answer, or one that cannot be read, however often it was asked",
        "Lower concurrency, or requests_per_minute, in [model] if it goes on.",
    ),
    Row(
        ("ModelKeyError",),
        Blame.OPERATOR,
        "the model's service refuses the key, or there is none",
        "Set the environment variable that `key` in [model] names; the key must allow the model.",
    ),
    Row(
        ("ModelNotFound",),
        Blame.OPERATOR,
        "no such model, or not with these parameters, or nothing of the kind at its address",
        "Check name, base_url and the parameters in [model].",
    ),
    Row(
        ("ModelCapError",),
        Blame.INFRASTRUCTURE,
        "the run has spent all that it may spend on the model",
    ),
    Row(
        ("NotRecorded",),
        Blame.OPERATOR,
        "the recording that is replayed has no answer to a request",
    ),
)

SYSTEM = (
    Codes(
        (errno.ENOSPC, errno.EDQUOT),
        Blame.OPERATOR,
        "no space left on disk",
        "Free some space, then resume the run.",
    ),
    Codes(
        (errno.EROFS, errno.EACCES, errno.EPERM),
        Blame.OPERATOR,
        "a file may not be read or written",
        "Check the owner and the permissions of the file or folder named above.",
    ),
    Codes(
        (errno.EMFILE, errno.ENFILE, errno.EAGAIN),
        Blame.INFRASTRUCTURE,
        "this machine is short of processes or open files",
        "Lower the number of workers if it goes on.",
    ),
    Codes(
        (errno.ENOMEM,),
        Blame.DOUBTFUL,
        "there was no memory left",
        "Lower the number of workers if memory is short.",
    ),
    Codes(
        (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EIO),
        Blame.INFRASTRUCTURE,
        "the network or a device failed",
    ),
)

THREADS = Row(
    ("can't start new thread",),
    Blame.INFRASTRUCTURE,
    "this machine is short of threads",
    "Lower the number of workers if it goes on.",
)
"""What a RuntimeError says, to the letter."""

BY_NAME = {name: row for row in CLASSES for name in row.names}
BY_ERRNO = {code: row for row in SYSTEM for code in row.codes}


HTTP = (
    Codes(
        (429,),
        Blame.INFRASTRUCTURE,
        "a service wants fewer requests",
        "Lower the number of workers if it goes on.",
    ),
    Codes(
        (408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529),
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded",
    ),
    Codes(
        (401, 402, 403, 404),
        Blame.OPERATOR,
        "a service refuses the key, or knows no such model",
        "Check the API key, the address and the name of the model.",
    ),
    Codes((413,), Blame.CANDIDATE, "the candidate's prompt is longer than the service reads"),
)

AWS = (
    Row(
        (
            "Throttling",
            "TooManyRequests",
            "ServiceUnavailable",
            "InternalServer",
            "ModelTimeout",
            "ModelNotReady",
            "RequestTimeout",
        ),
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded, or wants fewer requests",
        "Lower the number of workers if it goes on.",
    ),
    Row(
        (
            "AccessDenied",
            "UnrecognizedClient",
            "ExpiredToken",
            "InvalidClientTokenId",
            "InvalidSignature",
        ),
        Blame.OPERATOR,
        "a service refuses the key",
        "Renew the credentials, or check what they are allowed to do.",
    ),
)
"""How codes in `response["Error"]["Code"]` begin."""

SAID = (
    Row(
        (
            "insufficient_quota",
            "exceeded your current quota",
            "credit balance",
            "billing_hard_limit",
            "billing hard limit",
            "billing_not_active",
            "enable billing",
        ),
        Blame.OPERATOR,
        "the account has no credit left",
        "Add credit to the account, then resume the run.",
    ),
    Row(
        ("api key not valid", "api_key_invalid", "invalid api key", "invalid_api_key"),
        Blame.OPERATOR,
        "a service refuses the key",
        "Check the API key in the environment.",
    ),
)
"""What errors of an API say that no waiting ends; looked for in nothing else."""

WAIT = ("retry in", "retry after", "retrydelay", "try again in")
"""What an error says that waiting does end, whatever it says of a quota."""

API = frozenset(
    (
        *UNNAMED.names,
        "OpenAIError",
        "AnthropicError",
        "GoogleAPIError",
        "ClientError",
        "HTTPStatusError",
        "HTTPError",
        "RateLimitError",
        "TooManyRequests",
        "ResourceExhausted",
        "BadRequestError",
        "InvalidArgument",
        "AuthenticationError",
        "PermissionDeniedError",
    )
)
"""Classes that only clients of an API raise."""

BY_STATUS = {code: row for row in HTTP for code in row.codes}
