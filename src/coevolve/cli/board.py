"""A report as one screen: where a run is, what it has spent, and its candidates."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coevolve.cli.words import count, dollars, duration, interval, of_cap, plural, score, seen
from coevolve.search.report import CandidateRow, Report

NARROW, WIDE = 12, 30
_AROUND = 46
"""Columns of a candidate's line beside its name and its bar."""
_LONGEST_NAME = 32


def board(report: Report, *, width: int, most: int) -> Group:
    """The screen, `width` columns wide, with at most so many candidates."""
    rows = chosen_rows(report, most)
    parts: list[RenderableType] = [_title(report), _facts(report, width)]
    if rows:
        parts += [Text(), *candidate_lines(report, rows, width)]
    if len(rows) < len(report.candidates):
        rest = len(report.candidates) - len(rows)
        parts.append(Text(f"  and {plural(rest, 'other candidate')}", "bright_black"))
    return Group(*parts)


def facts_height(report: Report) -> int:
    """Lines of the screen that are no candidates."""
    return 6 + len(list(_fact_rows(report)))


def chosen_rows(report: Report, most: int) -> list[CandidateRow]:
    """The candidates to show: the best, those under way, the starts, then the best others."""

    def wanted(row: CandidateRow) -> tuple[bool, bool, bool, float]:
        value = -9.0 if row.estimate is None else row.estimate["value"]
        now = row.round == report.round and report.phase == "searching"
        return row.name != report.best, not (now or row.asked), not row.start, -value

    kept = sorted(report.candidates, key=wanted)[:most]
    return sorted(kept, key=_standing)


def _standing(row: CandidateRow) -> tuple[bool, float, int]:
    return row.estimate is None, 0.0 if row.estimate is None else -row.estimate["value"], row.round


def candidate_lines(report: Report, rows: list[CandidateRow], width: int) -> Iterator[Text]:
    """A heading and a line for each candidate."""
    longest = max(len(row.name) for row in rows)
    names = max(9, min(longest, _LONGEST_NAME, width - _AROUND - NARROW))
    bar = max(NARROW, min(WIDE, width - _AROUND - names))
    scale = "0" + "1".rjust(bar - 1)
    head = f"  {'candidate':<{names}}  round  {'estimate':<13}  {scale}  tasks"
    yield Text(head, "bright_black", no_wrap=True)
    for row in rows:
        line = _line(row, names, bar, best=row.name == report.best)
        line.truncate(width, overflow="ellipsis")
        yield line


def _line(row: CandidateRow, names: int, bar: int, *, best: bool) -> Text:
    line = Text(no_wrap=True, style="bold" if best else "")
    line.append("★ " if best else "  ", "yellow")
    name = Text(row.name)
    name.truncate(names, overflow="ellipsis", pad=True)
    line.append(name)
    line.append(f"  {'start' if row.start else row.round:>5}  ")
    if row.estimate is None:
        line.append(_doing(row), "red" if row.status == "refused" else "bright_black")
        return line
    line.append(f"{score(row.estimate):<13}  ")
    line.append(interval(row.estimate, bar))
    line.append(f"  {seen(row.estimate)}")
    if notes := list(_notes(row)):
        line.append(f"  {', '.join(notes)}", "bright_black")
    return line


def _doing(row: CandidateRow) -> str:
    """What happens to a candidate without an estimate."""
    if row.asked:
        return f"{row.done} of {plural(row.asked, 'trial')} done"
    return f"{row.status}: {row.reason}" if row.reason else row.status


def _notes(row: CandidateRow) -> Iterator[str]:
    if row.test is not None:
        yield f"test {row.test:.3f}"
    if row.missing:
        yield f"{row.missing} missing"
    if row.asked:
        yield f"{row.done} of {row.asked} more"


def _title(report: Report) -> Table:
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_column(no_wrap=True, justify="right")
    left = "" if report.left is None else f" · about {duration(report.left)} left"
    if report.phase == "ended":
        left = ""
    doing = f"  {report.doing}" if report.doing not in ("", report.phase) else ""
    text = Text.assemble((report.name, "bold cyan"), "  ", (_where(report), "bold"), doing)
    line.add_row(text, f"{duration(report.seconds)}{left}")
    return line


def _where(report: Report) -> str:
    match report.phase:
        case "searching":
            return f"round {report.round} of {report.rounds}"
        case "phase 0" | "preparing":
            return "phase 0"
        case "ended":
            return f"ended: {report.why}"
        case phase:
            return _LATE[phase]


_LATE = {"final": "final looks", "rescoring": "the winner in full", "test": "sealed test"}


def _facts(report: Report, width: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for label, done, total, text in _fact_rows(report):
        if total is None:
            grid.add_row(label, Text(text, no_wrap=True, overflow="ellipsis"))
            continue
        bar = ProgressBar(total=max(total, 1e-9), completed=min(done, total), width=24)
        line = Table.grid(padding=(0, 2))
        line.add_row(bar, Text(text, no_wrap=True))
        grid.add_row(label, line)
    return grid


def _fact_rows(report: Report) -> Iterator[tuple[str, float, float | None, str]]:
    """Label, amount, whole (None: no bar) and text of each line above the candidates."""
    if report.asked:
        under_way = f", {report.under_way} under way" if report.under_way else ""
        text = f"{report.done:,} of {report.asked:,} done{under_way}"
        yield "trials", report.done, report.asked, text
    label = "budget"
    for cap in report.budget:
        if cap.cap is not None:
            spent = of_cap(cap.name, cap.spent).removesuffix(f" {cap.name}")
            yield label, cap.spent, cap.cap, f"{spent} of {of_cap(cap.name, cap.cap)}"
            label = ""
    yield "spent", 0, None, _spent(report)
    if faults := _faults(report):
        yield "faults", 0, None, faults


def _spent(report: Report) -> str:
    amounts = {cap.name: cap.spent for cap in report.budget}
    parts = [plural(int(amounts["trials"]), "trial")]
    if amounts["tokens"]:
        parts.append(f"{count(amounts['tokens'])} tokens")
    if amounts["dollars"]:
        parts.append(dollars(amounts["dollars"]))
    if proposing := list(_proposing(report)):
        parts.append(f"of these for proposing {' and '.join(proposing)}")
    if again := int(report.evaluating["failed_attempts"]):
        parts.append(f"{plural(again, 'attempt')} made again")
    return ", ".join(parts)


def _proposing(report: Report) -> Iterator[str]:
    if tokens := report.proposing["tokens_in"] + report.proposing["tokens_out"]:
        yield f"{count(tokens)} tokens"
    if report.proposing["dollars"]:
        yield dollars(report.proposing["dollars"])


def _faults(report: Report) -> str:
    zeros = sum(row.zeros for row in report.candidates)
    if not (report.missing or zeros):
        return ""
    kinds = sorted(report.failures.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{kind} {number}" for kind, number in kinds[:3])
    return f"{report.missing} missing, {zeros} scored 0 ({listed})"
