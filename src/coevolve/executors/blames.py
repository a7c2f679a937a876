"""The table of error classes: who is to blame for each, and what to do about it.

Classes are known by their names, so that no LLM library is imported to know its errors.
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
            "TimeoutError",
            "Timeout",
            "TimeoutException",
            "APITimeoutError",
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
        ("MemoryError", "BrokenProcessPool", "BlockingIOError", "SandboxError"),
        Blame.INFRASTRUCTURE,
        "this machine is short of memory or processes, or could not start a sandbox",
        "Lower the number of workers if it goes on.",
    ),
    Row(
        ("AuthenticationError", "PermissionDeniedError", "NoCredentialsError"),
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
        ("ContextWindowExceededError", "RequestTooLargeError"),
        Blame.CANDIDATE,
        "the candidate's prompt is longer than the model can read",
    ),
    Row(
        ("ContentPolicyViolationError", "RejectedRequestError"),
        Blame.CANDIDATE,
        "the service will not answer the candidate's prompt",
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
        (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM),
        Blame.INFRASTRUCTURE,
        "this machine is short of memory, processes or open files",
        "Lower the number of workers if it goes on.",
    ),
    Codes(
        (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EIO),
        Blame.INFRASTRUCTURE,
        "the network or a device failed",
    ),
)

HTTP = (
    Codes(
        (408, 409, 425, 429, 500, 502, 503, 504, 529),
        Blame.INFRASTRUCTURE,
        "a service is broken or overloaded, or wants fewer requests",
    ),
    Codes(
        (401, 402, 403, 404),
        Blame.OPERATOR,
        "a service refuses the key, or knows no such model",
        "Check the API key, the address and the name of the model.",
    ),
)

QUOTA = Row(
    ("insufficient_quota",),
    Blame.OPERATOR,
    "the account has no credit left",
    "Add credit to the account, then resume the run.",
)
"""What OpenAI calls a rate limit and no waiting ends."""

BY_NAME = {name: row for row in CLASSES for name in row.names}
BY_ERRNO = {code: row for row in SYSTEM for code in row.codes}
BY_STATUS = {code: row for row in HTTP for code in row.codes}
