"""A run in a list of runs: its state, rounds, best candidate and spending."""

from pathlib import Path
from typing import Any

from coevolve.errors import CoevolveError
from coevolve.runs.session import read_state
from coevolve.store import owner
from coevolve.views.report import Report, report


def run_row(folder: Path) -> dict[str, Any]:
    """A run as JSON: its state, rounds, best candidate and spending."""
    try:
        now, held = report(read_state(folder)), owner(folder) is not None
    except CoevolveError as error:
        return unreadable(folder, str(error))
    return row_of(folder, now, held=held)


def row_of(folder: Path, now: Report, *, held: bool) -> dict[str, Any]:
    """The row of a run that was read; `held` says whether a process works on it."""
    best = None if now.best is None else now.candidate(now.best)
    return {
        "run": str(folder),
        "state": run_state(now, held=held),
        "why": now.why,
        "round": now.round,
        "rounds": now.rounds,
        "best": now.best,
        "score": None if best is None or best.estimate is None else best.estimate["value"],
        "test": None if best is None else best.test,
        "trials": int(now.spend.totals["trials"]),
        "dollars": now.spend.totals["dollars"],
    }


def unreadable(folder: Path, why: str) -> dict[str, Any]:
    """The row of a run that cannot be read."""
    return {"run": str(folder), "state": "unreadable", "why": why}


def run_state(now: Report, *, held: bool) -> str:
    """The state of a run in one or two words."""
    if held:
        return "running"
    if now.phase in ("ended", "evaluation", "not started"):
        return now.phase
    return "stopped" if now.stopped else "not finished"
