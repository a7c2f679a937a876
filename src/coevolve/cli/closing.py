"""How a run ended: the winner beside the starting harnesses, and what it took."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from coevolve.cli.words import count, dollars, duration, plural, score, seen
from coevolve.search.report import CandidateRow, Report
from coevolve.search.run_state import RunState


def closing_json(report: Report, folder: Path, state: RunState) -> dict[str, Any]:
    """The report as plain JSON, with where it is, and what full search would have spent."""
    checkout = winner_folder(report, folder, state)
    return {
        **report.to_json(),
        "folder": str(folder),
        "winner_folder": None if checkout is None else str(checkout),
        "full_tokens": full_tokens(report),
    }


def print_closing(console: Console, report: Report, folder: Path, state: RunState) -> None:
    """Print the closing table and what belongs to it."""
    console.print()
    console.print(_table(report))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bright_black", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, text in _facts(report):
        facts.add_row(label, escape(text))
    console.print(facts)
    if (file := winner_file(report, folder, state)) is not None:
        # On a line of its own, which a terminal may wrap and a person can copy.
        console.print(f"[bright_black]{'winner':<13}[/]{escape(str(file))}", soft_wrap=True)


def full_tokens(report: Report) -> int | None:
    """Tokens evaluating everything in full would have taken, at the mean of a trial here."""
    trials = report.evaluating["trials"]
    spent = report.evaluating["tokens_in"] + report.evaluating["tokens_out"]
    if not (trials and spent and report.full):
        return None
    return round(spent + spent / trials * max(0, report.full - report.searched))


def winner_folder(report: Report, folder: Path, state: RunState) -> Path | None:
    """A folder with the winner's files, made if it is not there."""
    from coevolve.errors import CoevolveError
    from coevolve.store import RunStore

    winner = (report.chosen or {}).get("candidate")
    if winner is None:
        return None
    candidate = state.candidates[winner].candidate
    with RunStore.read(folder) as store:
        try:
            return store.checkout(candidate)
        except CoevolveError:
            pass  # a reader cannot make it; a writer can
    with RunStore.open(folder) as store:
        return store.checkout(candidate)


def winner_file(report: Report, folder: Path, state: RunState) -> Path | None:
    """The winner's file, or its folder if it has several."""
    checkout = winner_folder(report, folder, state)
    if checkout is None or report.best is None:
        return checkout
    files = list(state.candidates[report.best].candidate.files)
    return checkout / files[0] if len(files) == 1 else checkout


def _table(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    tested = any(row.test is not None for row in report.candidates)
    rescored = any(row.full is not None for row in report.candidates)
    columns = {"": "left", "harness": "left", "round": "right", "estimate": "left"}
    columns |= {"tasks": "right"} | ({"every\ntask": "right"} if rescored else {})
    columns |= {"sealed\ntest" if rescored else "sealed test": "right"} if tested else {}
    for heading, side in columns.items():
        table.add_column(heading, justify=cast(JustifyMethod, side), no_wrap=True)
    for row in _rows(report):
        cells = [
            "★" if row.name == report.best else "",
            escape(row.name),
            "start" if row.start else str(row.round),
            "-" if row.estimate is None else score(row.estimate),
            "-" if row.estimate is None else seen(row.estimate),
        ]
        if rescored:
            cells.append(_number(_true_score(row)))
        if tested:
            cells.append(_number(row.test))
        table.add_row(*cells, style="bold" if row.name == report.best else "")
    return table


def _true_score(row: CandidateRow) -> float | None:
    """The score on every validation task, which a starting harness has from Phase 0."""
    if row.full is None and row.start and row.estimate is not None:
        estimate = row.estimate
        return float(estimate["value"]) if estimate["tasks"] == estimate["pool_size"] else None
    return row.full


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rows(report: Report) -> list[CandidateRow]:
    return [row for row in report.candidates if row.start or row.name == report.best]


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield (
        "ended",
        f"{report.why}, after {plural(report.round, 'round')}, {duration(report.seconds)}",
    )
    if report.full:
        share = f"{report.searched / report.full:.0%}"
        text = f"{report.searched:,} of candidates, where full search takes {report.full:,}"
        yield "evaluations", f"{text} ({share}); {report.evaluating['trials']:,} trials in all"
    spent = report.evaluating["tokens_in"] + report.evaluating["tokens_out"]
    proposing = report.proposing["tokens_in"] + report.proposing["tokens_out"]
    if spent or proposing:
        full = full_tokens(report)
        beside = "" if full is None else f", where full search takes about {count(full)}"
        yield "tokens", f"{count(spent)} for evaluating{beside}; {count(proposing)} for proposing"
    if written := report.proposing["dollars"]:
        evaluated = dollars(report.evaluating["dollars"])
        yield "dollars", f"{evaluated} for evaluating; {dollars(written)} for proposing"
    elif money := report.evaluating["dollars"]:
        yield "dollars", dollars(money)
    if report.missing:
        yield "missing", f"{plural(report.missing, 'outcome')}; `coevolve status` says why"
    if report.chosen is not None:
        yield "why", report.chosen["why"]
