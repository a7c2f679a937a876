"""One proposal: what the proposer is shown, and what is recorded of its answer."""

import asyncio
import math
from typing import Any

from coevolve.errors import StopRun, titled
from coevolve.search.accepting import accept, as_proposed
from coevolve.search.budget import usage_row
from coevolve.search.folding import fold
from coevolve.search.proposing import Proposed, Proposer, View
from coevolve.search.recorder import Recorder
from coevolve.search.retrying import RETRIES
from coevolve.search.view import view_of


async def propose(recorder: Recorder, proposer: Proposer, round: int, seconds: float) -> None:
    """Have candidates proposed for a round, and record them.

    A proposer that takes longer than `seconds`, or than the budget has hours, costs a round. One
    that raises, or hands over rubbish, is asked again at most twice; then the run stops, and
    resumed it has the same round proposed.
    """
    view = _view(recorder, round)
    for attempt in range(RETRIES + 1):
        try:
            body = await _proposed(recorder, proposer, view, _limit(recorder, seconds))
        except StopRun:
            raise
        except (Exception, SystemExit) as error:
            if attempt == RETRIES:
                raise StopRun(_broken(round, error)) from error
        else:
            recorder.record("proposed", body)
            return


async def _proposed(
    recorder: Recorder, proposer: Proposer, view: View, seconds: float
) -> dict[str, Any]:
    deadline = asyncio.timeout(seconds if math.isfinite(seconds) else None)
    try:
        async with deadline:
            handed = await proposer.propose(view, recorder.state.settings.candidates)
    except TimeoutError:
        if not deadline.expired():
            raise
        return _body(recorder, view.round, Proposed(proposals=()), _late(seconds))
    return _body(recorder, view.round, as_proposed(handed), "")


def _body(recorder: Recorder, round: int, proposed: Proposed, note: str) -> dict[str, Any]:
    """The event "proposed", its files and its transcript kept before."""
    journal, most = recorder.journal, recorder.state.settings.candidates
    text = proposed.transcript
    transcript = None if text is None else journal.put(text.encode(errors="replace"))
    rows, notes = accept(recorder.state, journal, round, proposed.proposals[:most])
    if len(proposed.proposals) > most:
        notes.append(f"{len(proposed.proposals)} were proposed, {most} were asked for.")
    return {
        "round": round,
        "candidates": rows,
        "usage": usage_row(proposed.usage),
        "transcript": transcript,
        "note": " ".join(filter(None, [note, *proposed.notes, *notes])),
    }


def _view(recorder: Recorder, round: int) -> View:
    """What is known when a proposal begins, the same after an interruption."""
    journal, since = recorder.journal, recorder.state.proposing_since
    if since is None:
        recorder.record("proposing", {"round": round})
        return view_of(recorder.state, journal, round)
    return view_of(fold(journal.skim(since + 1)), journal, round)


def _limit(recorder: Recorder, seconds: float) -> float:
    """The seconds a proposal may take."""
    hours = recorder.state.settings.budget.hours
    left = math.inf if hours is None else 3600 * hours - recorder.journal.clock()
    return max(0.0, min(seconds, left))


def _broken(round: int, error: BaseException) -> str:
    why = titled(type(error).__name__, str(error)).rstrip(".")
    return (
        f"the proposer failed {RETRIES + 1} times in round {round}: {why}. Mend it; nothing is "
        "lost, and the round is proposed again."
    )


def _late(seconds: float) -> str:
    return f"the proposer took longer than {seconds:,.0f} s."
