"""What a report says: every number and text of it as plain JSON, and its pictures.

The visible document is made from these numbers alone, so that the check of a report needs to
compare nothing else with the journal.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coevolve.errors import DamageError
from coevolve.figures import Figure, run_figures
from coevolve.formatting import short, visible
from coevolve.search.journal import Journal
from coevolve.search.run_state import RunState
from coevolve.views.failure_log import Failures
from coevolve.views.questions import file_diff
from coevolve.views.report import Report
from coevolve.views.spend import Savings
from coevolve.views.timeline import Snapshot, Timeline

FORMAT = 1
"""Number of the form of the numbers in a report."""
MOST_ROWS = 1_000
"""Rows of a table; `coevolve export` has all."""
_LONGEST_LINE = 1_000
_MOST_LINES = 3_000
"""Lines of a file, or of the diff, in a report."""
_MOST_FILES = 30
_MOST_SOURCE = 200_000
"""Characters of all files together, and of the diff."""
_MOST_TEXT = 300
"""Characters of a text in a table."""
_LONGEST = 4_000
"""Characters of any other text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """The numbers of a report as plain JSON, and the figures by name."""

    numbers: dict[str, Any]
    figures: dict[str, Figure]


def run_document(timeline: Timeline, journal: Journal, *, version: str) -> RunDocument:
    """Everything a report says about a run.

    Args:
        timeline: The run.
        journal: Where the files of its candidates are.
        version: The version of the package.
    """
    now = timeline.snapshot()
    figures = run_figures(now, timeline.grid())
    numbers = {
        "format": FORMAT,
        "version": version,
        "summary": summary_of(now, timeline.state),
        "figures": {name: figure_table(figure) for name, figure in figures.items()},
        "incidents": incident_table(now.failures),
        "winner": _winner(now.report, timeline.state, journal),
        "provenance": timeline.provenance.to_json(),
    }
    return RunDocument(numbers=_plain(numbers), figures=figures)


def _plain(value: Any) -> Any:
    """Plain JSON: lists instead of tuples, text as keys, texts without control characters."""
    if isinstance(value, Mapping):
        return {visible(str(key), _MOST_TEXT): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return visible(value, _LONGEST) if isinstance(value, str) else value


def figure_table(figure: Figure) -> dict[str, Any]:
    """The numbers of a figure, as many as a reader can use."""
    found = figure.to_json()
    rows = found["rows"]
    kept = [
        [short(cell, _MOST_TEXT) if isinstance(cell, str) else cell for cell in row]
        for row in rows[:MOST_ROWS]
    ]
    return found | {"rows": kept, "all_rows": len(rows)}


def summary_of(now: Snapshot, state: RunState) -> dict[str, Any]:
    """What won, how sure that is, what it cost, and warnings."""
    found, sure = now.report, now.certainty
    best = None if found.best is None else found.candidate(found.best)
    starts = [row for row in found.candidates if row.start and row.estimate is not None]
    top = max(starts, key=lambda row: row.estimate["value"] if row.estimate else 0.0, default=None)
    spend = found.spend
    return {
        "name": found.name,
        "phase": found.phase,
        "why": found.why,
        "stopped": found.stopped,
        "chosen": found.chosen is not None,
        "protocol": found.protocol,
        "round": found.round,
        "rounds": found.rounds,
        "candidates": sum(not row.start for row in found.candidates),
        "refused": now.failures.refused,
        "tasks": found.tasks,
        "test_tasks": 0 if state.test is None else len(state.test.pool),
        "winner": found.best,
        "winner_round": None if best is None else best.round,
        "estimate": None if best is None else best.estimate,
        "all_tasks": None if best is None else best.full,
        "sealed_test": None if best is None else best.test,
        "baseline": None if top is None else top.name,
        "baseline_score": None if top is None or top.estimate is None else top.estimate["value"],
        "baseline_test": None if top is None else top.test,
        "probability": sure.probability,
        "regret": sure.regret,
        "open_rivals": len(sure.open),
        "compared": sure.compared,
        "level": sure.level,
        "trials": int(spend.totals["trials"]),
        "savings": _savings(spend.savings),
        "tokens": int(spend.totals["tokens"]),
        "dollars": spend.totals["dollars"],
        "hours": spend.totals["hours"],
        "missing": now.failures.missing,
        "zeros": now.failures.zeros,
        "retried": now.failures.retried,
        "warnings": list(_warnings(found)),
    }


def _savings(found: Savings | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {
        "paid": found.paid.low,
        "paid_full": found.paid_full.low,
        "searched": found.searched.low,
        "full": found.full.low,
    }


def _warnings(now: Report) -> Iterator[str]:
    """What a reader must know before the numbers, in sentences."""
    for text in (now.warning, now.mixed, now.sealed_warning):
        if text:
            yield text[0].upper() + text[1:]
    if now.phase != "ended":
        yield "The run has not ended; its estimates and its choice may still change."
    for number in now.thin_rounds:
        yield f"Under half of the outcomes of round {number} have a score."
    leaks = [row.name for row in now.candidates if row.leaks]
    if leaks:
        more = f" and {len(leaks) - 3} more" if len(leaks) > 3 else ""
        yield f"Candidates may know answers: {', '.join(leaks[:3])}{more}."


def incident_table(found: Failures) -> dict[str, Any]:
    """The incidents as a table, in order."""
    rows = [
        [one.clock, one.round, one.kind, one.candidate, short(one.text, _MOST_TEXT)]
        for one in found.incidents[:MOST_ROWS]
    ]
    return {
        "columns": ["time", "round", "what", "candidate", "text"],
        "rows": rows,
        "all_rows": len(found.incidents),
    }


def _winner(now: Report, state: RunState, journal: Journal) -> dict[str, Any] | None:
    """The files of the winner, and how they differ from those of its first parent."""
    if now.best is None:
        return None
    row = now.candidate(now.best)
    parent = next((name for name in row.parents if name in state.candidates), None)
    mine = _files(now.best, state, journal)
    diff: list[str] = []
    if parent is not None:
        diff = list(file_diff(_files(parent, state, journal), mine, (parent, now.best)))
    return {
        "name": row.name,
        "round": row.round,
        "parents": list(row.parents),
        "hypothesis": short(row.hypothesis, 4 * _MOST_TEXT),
        "files": list(_listed(mine)),
        "all_files": len(mine),
        "parent": parent,
        "diff": _lines(diff, _MOST_SOURCE),
    }


def _files(name: str, state: RunState, journal: Journal) -> dict[str, bytes]:
    found = {}
    for path, address in state.candidates[name].candidate.files.items():
        try:
            found[path] = journal.get(address)
        except DamageError as error:  # the numbers of a report do not need the file
            found[path] = f"[{error}]".encode()
    return found


def _listed(files: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    """The first files, as much of them as there is room for."""
    room = _MOST_SOURCE
    for path, data in list(files.items())[:_MOST_FILES]:
        try:
            lines = data.decode().split("\n")
        except UnicodeDecodeError:
            lines = ["[not text]"]
        found = _lines(lines, room)
        room -= sum(map(len, found["lines"]))
        yield {"path": path, "bytes": len(data), **found}


def _lines(lines: list[str], room: int) -> dict[str, Any]:
    """Lines that are not too many and not too long, and how many there are."""
    kept = []
    for line in lines[:_MOST_LINES]:
        kept.append(visible(line.rstrip("\r"), _LONGEST_LINE))
        room -= len(kept[-1]) + 1
        if room < 0:
            break
    return {"lines": kept, "all_lines": len(lines)}
