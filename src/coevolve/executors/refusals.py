"""The table of what services answer: who is to blame, and what to do about it."""

from coevolve.executors.blames import UNNAMED, Codes, Row
from coevolve.search.trials import Blame

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
