"""What an error says of itself, and the row of the table that follows from it."""

from collections.abc import Mapping

from coevolve.executors.blames import BY_ERRNO, BY_NAME, THREADS, UNNAMED, Codes, Row
from coevolve.executors.refusals import API, AWS, BY_STATUS, SAID, WAIT
from coevolve.search.trials import Blame

_STATUS = ("status_code", "status", "code", "http_status")
_ERRORS = range(400, 600)
_REFUSED = range(400, 500)
_LONGEST = 20_000


def row_of(error: BaseException) -> Row | Codes | None:
    """The row for an error, not looking at what it was raised from.

    In this order: what an API says of credit and keys, the class, the code of an AWS service, the
    HTTP status, the bases of the class, the number of the system.

    >>> row = row_of(ConnectionResetError("peer went away"))
    >>> row and row.meaning
    'the network failed'
    """
    names = [base.__name__ for base in type(error).__mro__]
    status = _status(error)
    own = BY_NAME.get(names[0])
    return (
        (_said(error) if status or not API.isdisjoint(names) else None)
        or (None if own is UNNAMED else own)
        or _aws(error)
        or BY_STATUS.get(status)
        or _base(names, status)
        or _of_system(error)
    )


def _said(error: BaseException) -> Row | None:
    text = str(error)[:_LONGEST].lower()
    if any(word in text for word in WAIT):
        return None
    return next((row for row in SAID if any(word in text for word in row.names)), None)


def _aws(error: BaseException) -> Row | None:
    code = _within(getattr(error, "response", None), "Error", "Code")
    if not isinstance(code, str):
        return None
    return next((row for row in AWS if code.startswith(row.names)), None)


def _status(error: BaseException) -> int:
    """The HTTP status an error carries itself or in its response; 0 for none."""
    if not isinstance(error, Exception):  # the code of a SystemExit is another thing
        return 0
    response = getattr(error, "response", None)
    found = [getattr(holder, name, 0) for holder in (error, response) for name in _STATUS]
    found.append(_within(response, "ResponseMetadata", "HTTPStatusCode"))
    return next((int(s) for s in found if isinstance(s, int) and s in _ERRORS), 0)


def _base(names: list[str], status: int) -> Row | None:
    row = next((BY_NAME[name] for name in names if name in BY_NAME), None)
    # A request that was refused reached the service: a base that stands for the network errs.
    if row is not None and row.blame is Blame.INFRASTRUCTURE and status in _REFUSED:
        return None
    return row


def _of_system(error: BaseException) -> Row | Codes | None:
    # After the names: ssl and socket put numbers of their own into `errno`.
    if isinstance(error, OSError) and error.errno in BY_ERRNO:
        return BY_ERRNO[error.errno]
    exact = type(error) is RuntimeError and str(error) == THREADS.names[0]
    return THREADS if exact else None


def _within(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
