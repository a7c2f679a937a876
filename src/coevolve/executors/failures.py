"""What went wrong with a trial: from any exception to a fault."""

from collections.abc import Mapping

from coevolve.errors import CoevolveError
from coevolve.executors.failure_table import (
    API,
    AWS,
    BY_ERRNO,
    BY_NAME,
    BY_STATUS,
    SAID,
    THREADS,
    UNNAMED,
    WAIT,
    Codes,
    Row,
)
from coevolve.search.trials import Blame, Fault

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


_LONGEST_REASON = 2_000
_GRAVITY = (
    Blame.OPERATOR,
    Blame.INFRASTRUCTURE,
    Blame.DOUBTFUL,
    Blame.CANDIDATE,
    Blame.BENCHMARK,
)


class TrialError(CoevolveError):
    """A fault as an exception: what benchmarks and executors raise to say who is to blame.

    Args:
        reason: A sentence for people.
        kind: A short name of the error; the name of the class unless given.
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
    """Nobody's fault: the attempt is made again, and after two more the trial is missing."""

    blame = Blame.INFRASTRUCTURE


class DoubtfulError(TrialError):
    """Nobody can tell whose fault: tried again, and if it persists the trial scores 0."""

    blame = Blame.DOUBTFUL


class OperatorError(TrialError):
    """The run cannot go on before somebody acts; the advice says how."""

    blame = Blame.OPERATOR


class CandidateFault(TrialError):  # noqa: N818
    """The candidate did something that scores 0."""

    blame = Blame.CANDIDATE


class FaultError(TrialError):
    """A fault that came from another process, raised again on this side."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def classify(error: BaseException) -> Fault:
    """Who is to blame for an exception, by the table in `coevolve.executors.failure_table`.

    An exception with a `fault` of its own keeps it. Otherwise `row_of` looks it up, then what it
    was raised from. What the table does not know is the benchmark's fault.

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


def named(error: BaseException) -> str:
    """An error as text: its class, and what it says, if anything.

    >>> named(KeyError("answer"))
    "KeyError: 'answer'"
    """
    kind, said = type(error).__name__, str(error).strip()
    return f"{kind}: {said}" if said else kind


def _fault(error: BaseException, blame: Blame, advice: str) -> Fault:
    reason = named(error)[:_LONGEST_REASON]
    return Fault(blame=blame, kind=type(error).__name__, reason=reason, advice=advice)
