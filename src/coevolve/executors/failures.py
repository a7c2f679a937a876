"""What went wrong with a trial: from any exception to a fault."""

from coevolve.errors import CoevolveError
from coevolve.executors.responses import row_of
from coevolve.search.trials import Blame, Fault

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
    """Who is to blame for an exception, by the table in `coevolve.executors.blames`.

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
