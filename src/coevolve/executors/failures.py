"""Turns an exception into a fault: what went wrong with a trial, and the blame for it."""

from collections.abc import Mapping
from typing import Any

from coevolve.errors import CoevolveError
from coevolve.executors.failure_table import (
    API,
    AWS,
    BY_ERRNO,
    BY_NAME,
    BY_STATUS,
    THREADS,
    UNNAMED,
    WORDS,
    Row,
)
from coevolve.search.trials import Blame, Fault
from coevolve.service_words import meaning_of

_STATUS = ("status_code", "status", "code", "http_status")
_ERRORS = range(400, 600)
_REFUSED = range(400, 500)
_LONGEST = 20_000
_LONGEST_REASON = 2_000
_GRAVITY = (
    Blame.OPERATOR,
    Blame.INFRASTRUCTURE,
    Blame.DOUBTFUL,
    Blame.CANDIDATE,
    Blame.BENCHMARK,
)


class TrialError(CoevolveError):
    """A fault as an exception; benchmarks and executors raise it to state the blame.

    Args:
        reason: A sentence that explains the error.
        kind: A short name of the error; the name of the class by default.
        advice: What the operator should do about it.

    >>> OperatorError("no key", advice="Set OPENAI_API_KEY.").fault.blame
    <Blame.OPERATOR: 'operator'>
    """

    blame = Blame.BENCHMARK

    def __init__(self, reason: str, *, kind: str = "", advice: str = "") -> None:
        super().__init__(reason)
        self.fault = Fault(
            blame=self.blame, kind=kind or type(self).__name__, reason=reason, advice=advice
        )


class InfrastructureError(TrialError):
    """A failure that the candidate did not cause: retried twice, then the trial is missing."""

    blame = Blame.INFRASTRUCTURE


class DoubtfulError(TrialError):
    """A failure of unknown cause: retried, and if it persists the trial scores 0."""

    blame = Blame.DOUBTFUL


class OperatorError(TrialError):
    """A failure that the operator must fix before the run can continue; the advice says how."""

    blame = Blame.OPERATOR


class CandidateFault(TrialError):  # noqa: N818
    """A failure that the candidate caused: the trial scores 0."""

    blame = Blame.CANDIDATE


class FaultError(TrialError):
    """A fault of another process, raised again in this one."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def classify(error: BaseException) -> Fault:
    """The fault of an exception, by the table in `coevolve.executors.failure_table`.

    An exception with a `fault` attribute keeps it. Otherwise `row_of` looks it up, then its
    cause. An exception that is not in the table is the benchmark's fault.

    >>> classify(ConnectionResetError("peer went away")).blame
    <Blame.INFRASTRUCTURE: 'infrastructure'>
    >>> classify(KeyError("answer")).blame
    <Blame.BENCHMARK: 'benchmark'>
    """
    return _known(error) or _fault(error, Blame.BENCHMARK, "")


def _known(error: BaseException) -> Fault | None:
    own = getattr(error, "fault", None)
    if isinstance(own, Fault):
        return own
    if isinstance(error, BaseExceptionGroup):
        faults = [classify(part) for part in error.exceptions]
        return min(faults, key=lambda fault: _GRAVITY.index(fault.blame))
    row = row_of(error)
    if row is not None:
        return _fault(error, row.blame, row.advice)
    return None if error.__cause__ is None else _known(error.__cause__)


def _fault(error: BaseException, blame: Blame, advice: str) -> Fault:
    reason = named(error)[:_LONGEST_REASON]
    return Fault(blame=blame, kind=type(error).__name__, reason=reason, advice=advice)


def named(error: BaseException) -> str:
    """An error as text: its class and its message, if any.

    >>> named(KeyError("answer"))
    "KeyError: 'answer'"
    """
    kind, message = type(error).__name__, str(error).strip()
    return f"{kind}: {message}" if message else kind


def row_of(error: BaseException) -> Row[Any] | None:
    """The row for an error, without looking at its cause.

    In this order: the words of an API's error, the class, the code of an AWS service, the HTTP
    status, the bases of the class, the errno.

    >>> row = row_of(ConnectionResetError("peer went away"))
    >>> row and row.meaning
    'the network failed'
    """
    names = [base.__name__ for base in type(error).__mro__]
    status = _status(error)
    own = BY_NAME.get(names[0])
    return (
        (_by_words(error, status) if status or not API.isdisjoint(names) else None)
        or (None if own is UNNAMED else own)
        or _by_aws_code(error)
        or BY_STATUS.get(status)
        or _by_base(names, status)
        or _by_number(error)
    )


def _by_words(error: BaseException, status: int) -> Row[str] | None:
    meaning = meaning_of(str(error)[:_LONGEST], status)
    return None if meaning is None else WORDS[meaning]


def _by_aws_code(error: BaseException) -> Row[str] | None:
    code = _within(getattr(error, "response", None), "Error", "Code")
    if not isinstance(code, str):
        return None
    return next((row for row in AWS if code.startswith(row.names)), None)


def _by_base(names: list[str], status: int) -> Row[str] | None:
    row = next((BY_NAME[name] for name in names if name in BY_NAME), None)
    # A refused request has reached the service, so a base class that means the network is wrong.
    if row is not None and row.blame is Blame.INFRASTRUCTURE and status in _REFUSED:
        return None
    return row


def _by_number(error: BaseException) -> Row[Any] | None:
    # After the names: ssl and socket use other numbers in `errno`.
    if isinstance(error, OSError) and error.errno in BY_ERRNO:
        return BY_ERRNO[error.errno]
    exact = type(error) is RuntimeError and str(error) == THREADS.names[0]
    return THREADS if exact else None


def _status(error: BaseException) -> int:
    """The HTTP status of an error or of its response; 0 if there is none."""
    if not isinstance(error, Exception):  # SystemExit has a `code` too
        return 0
    response = getattr(error, "response", None)
    found = [getattr(holder, name, 0) for holder in (error, response) for name in _STATUS]
    found.append(_within(response, "ResponseMetadata", "HTTPStatusCode"))
    return next((int(s) for s in found if isinstance(s, int) and s in _ERRORS), 0)


def _within(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
