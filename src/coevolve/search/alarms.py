"""When a run stops for help rather than go on in vain."""

from collections.abc import Iterable

from coevolve.core.outcomes import Missing
from coevolve.errors import StopRun, titled
from coevolve.search.entry import Status, Turn
from coevolve.search.state import RunState
from coevolve.search.trials import Blame, Fault, Trial
from coevolve.search.wave import Wave

EMPTY_ROUNDS = 3
"""Rounds in a row without any candidate after which a run stops and asks for help."""


def check_operator(state: RunState, trial: Trial, fault: Fault) -> None:
    """Stop for what only the operator can mend.

    An evaluator that breaks on a starting harness is broken itself; one that worked on these and
    breaks on a candidate was broken by the candidate.
    """
    start = state.entries[trial.candidate].candidate.round == 0
    evaluator = fault.blame in (Blame.BENCHMARK, Blame.DOUBTFUL)
    if fault.blame == Blame.OPERATOR or (evaluator and start):
        where = f"candidate {trial.candidate!r}, task {trial.task!r}"
        why = titled(fault.kind, fault.reason).rstrip(".")
        raise StopRun(f"{where}: {why}. {fault.advice}".rstrip())


def wanting(wave: Wave, *, last: bool) -> list[str]:
    """Starting harnesses to run once more, as too much of them is missing.

    Nothing can be estimated without a score in every pool. So the run stops for these if once
    more was not enough, which is when this is the `last` time; resumed, it tries again.
    """
    bare = wave.bare()
    if bare and last:
        why = wave.why_missing(bare[0]).rstrip(".")
        raise StopRun(
            f"starting harness {bare[0]!r} has no score at all in some pool: {why}. Find out what "
            "is broken, then resume the run."
        )
    return bare or [name for name in wave.thin() if name not in wave.again]


def check_alive(state: RunState, turn: Turn) -> None:
    """Stop when nothing of a round came back, rather than burn the next one, too."""
    if turn.trials and turn.missing == turn.trials:
        raise StopRun(
            f"no trial of round {turn.number} has a score: {_why_missing(state, turn.names)}. "
            "Find out what is broken, then resume the run."
        )


def check_proposer(state: RunState, empty: int) -> None:
    """Stop after several rounds without any candidate, unless a run with some is at its end."""
    over = len(state.turns) >= state.settings.rounds and state.selector.candidates
    if empty < EMPTY_ROUNDS or over:
        return
    turn = state.turns[-1]
    reasons = [turn.note, *(state.entries[name].reason for name in turn.names)]
    why = " ".join(filter(None, reasons)).rstrip(".") or "nothing was proposed"
    left = state.settings.rounds - len(state.turns)
    then = f"and {left} are left" if left else "all of them; begin a new run"
    raise StopRun(
        f"{empty} rounds in a row gave no candidate that could be evaluated. Of the last one: "
        f"{why}. Mend the proposer; these rounds are spent, {then}.",
        resumable=left > 0,
    )


def _why_missing(state: RunState, names: Iterable[str]) -> str:
    known = (name for name in names if state.entries[name].status == Status.EVALUATED)
    scores = (score for name in known for score in state.selector.scores(name).values())
    return next((s.reason for s in scores if isinstance(s, Missing)), "").rstrip(".")
