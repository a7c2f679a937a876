"""The board of a run: its state, its spending and its candidates on one screen."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coevolve.cli.console_output import Screen
from coevolve.formatting import (
    CLIPPED,
    amount,
    clip,
    count,
    dollars,
    duration,
    estimate,
    is_clipped,
    middle,
    plural,
    score,
    tasks_seen,
)
from coevolve.views.certainty import Certainty
from coevolve.views.report import CandidateRow, Report

NARROW, WIDE = 12, 30
"""Widths of the bar of an interval."""
_SMALL = 60
"""A terminal with fewer columns shows no bars."""
_LONGEST_NAME, _SHORTEST_NAME = 32, 12
_LABEL = 8
_METER = 24
"""Width of the bar beside a cap."""
ALL_TASKS = "all: the score on every task, from an evaluation after the estimate."
_LATE = {
    "final": "final evaluations",
    "rescoring": "scoring the winner on all tasks",
    "test": "sealed test",
}


def board(
    now: Report,
    *,
    width: int,
    most: int,
    sure: Certainty | None = None,
    whole: bool = False,
) -> Group:
    """One screen, `width` columns wide, with at most `most` candidates.

    `sure` says how sure it is that the best one is the best. With `whole`, long reasons continue
    on further lines.
    """
    rows = chosen_rows(now, most)
    parts: list[RenderableType] = [*_above(now, width, sure)]
    if rows:
        parts += [Text(), *candidate_lines(now, rows, width, whole=whole)]
    if len(rows) < len(now.candidates):
        rest = len(now.candidates) - len(rows)
        parts.append(Text(f"  and {plural(rest, 'other candidate')}", "bright_black"))
    if any(is_clipped(row.estimate, "value") for row in rows):
        parts.append(Text(f"  {CLIPPED}", "bright_black"))
    if any(row.full is not None for row in rows) and _Layout.of(rows, width).notes:
        parts.append(Text(f"  {ALL_TASKS}", "bright_black"))
    return Group(*parts)


def board_for(now: Report, console: Screen, sure: Certainty | None = None) -> Group:
    """The board that fits a console."""
    other_lines = 5 + len(_above(now, console.width, sure))
    most = max(3, console.height - other_lines)
    return board(now, width=console.width, most=most, sure=sure)


def chosen_rows(now: Report, most: int) -> list[CandidateRow]:
    """The candidates to show: the best, those under way, the starts, then the best others."""

    def wanted(row: CandidateRow) -> tuple[bool, bool, bool, float]:
        value = -9.0 if row.estimate is None else row.estimate["value"]
        latest = row.round == now.round and now.phase == "searching"
        return row.name != now.best, not (latest or row.asked), not row.start, -value

    def order(row: CandidateRow) -> tuple[bool, float, int]:
        value = 0.0 if row.estimate is None else -row.estimate["value"]
        return row.estimate is None, value, row.round

    return sorted(sorted(now.candidates, key=wanted)[:most], key=order)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Widths of the columns of candidates; a column of width 0 is left out."""

    name: int
    round: int
    estimate: int
    bar: int
    tasks: int
    notes: int

    @classmethod
    def of(cls, rows: list[CandidateRow], width: int) -> "_Layout":
        """The widest columns that fit: without the bar, then the rounds, notes and tasks if not.

        Names are shortened before a column is left out, but not below a dozen characters, and not
        so far that two of them look the same.
        """
        known = [row for row in rows if row.estimate is not None]
        longest = min(max(9, *(len(row.name) for row in rows)), _LONGEST_NAME)
        least = _least_width([row.name for row in rows], longest)
        columns = {
            "round": 5,
            "estimate": max([13, *(len(estimate(row.estimate)) for row in known if row.estimate)]),
            "bar": NARROW if width >= _SMALL else 0,
            "tasks": max([5, *(len(tasks_seen(row.estimate)) for row in known if row.estimate)]),
            "notes": max([0, *(len(_noted(row)) for row in known)]),
        }

        def left() -> int:
            return width - 2 - sum(size + 2 for size in columns.values() if size)

        for column in ("bar", "round", "notes", "tasks"):
            if left() < least:
                columns[column] = 0
        name = max(9, min(longest, left()))
        if columns["bar"]:
            columns["bar"] = min(WIDE, NARROW + max(0, left() - name))
        return cls(name=name, **columns)


def _least_width(names: list[str], most: int) -> int:
    """The least width of a column of names, up to `most`, in which no two look the same."""
    widths = range(min(most, _SHORTEST_NAME), most + 1)
    apart = (w for w in widths if len({middle(name, w) for name in names}) == len(names))
    return next(apart, widths[0])


def candidate_lines(
    now: Report, rows: list[CandidateRow], width: int, *, whole: bool = False
) -> Iterator[Text]:
    """A heading and a line for each candidate; with `whole`, more lines for long reasons."""
    layout = _Layout.of(rows, width)
    scale = "0" + "1".rjust(layout.bar - 1)
    head = [f"  {'candidate':<{layout.name}}"]
    head += ["round"] if layout.round else []
    head += [f"{'estimate':<{layout.estimate}}"]
    head += [scale] if layout.bar else []
    head += [f"{'tasks':<{layout.tasks}}"] if layout.tasks else []
    yield Text("  ".join(head).rstrip(), "bright_black", no_wrap=True)
    for row in rows:
        line = _line(row, layout, best=row.name == now.best)
        if whole and len(line) > width:
            yield from _folded(line, width)
            continue
        line.truncate(width, overflow="ellipsis")
        yield line


def _line(row: CandidateRow, layout: _Layout, *, best: bool) -> Text:
    line = Text(no_wrap=True, style="bold" if best else "")
    line.append("★ " if best else "  ", "yellow")
    line.append(f"{middle(row.name, layout.name):<{layout.name}}")
    if layout.round:
        line.append(f"  {'start' if row.start else row.round:>5}")
    line.append("  ")
    if row.estimate is None:
        line.append(_progress(row), "red" if row.status == "refused" else "bright_black")
        return line
    line.append(f"{estimate(row.estimate):<{layout.estimate}}")
    if layout.bar:
        line.append("  ")
        line.append(interval_bar(row.estimate, layout.bar))
    if layout.tasks:
        line.append(f"  {tasks_seen(row.estimate):<{layout.tasks}}")
    if layout.notes and (noted := _noted(row)):
        line.append(f"  {noted}", "bright_black")
    line.rstrip()
    return line


def _folded(line: Text, width: int) -> Iterator[Text]:
    """A long line on several, the further ones indented."""
    style = line.spans[-1].style if line.spans else line.style
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=" " * 4, drop_whitespace=False, break_on_hyphens=False
    )
    first, *others = (one.rstrip() for one in wrapper.wrap(line.plain))
    yield line[: len(first)]
    yield from (Text(f"    {other.strip()}", style, no_wrap=True) for other in others)


def interval_bar(found: Mapping[str, Any], width: int) -> Text:
    """An estimate and its interval on a scale from 0 to 1.

    >>> interval_bar({"value": 0.5, "low": 0.3, "high": 0.7}, 11).plain
    '···──●──···'
    """
    last = width - 1
    low, high = found["low"], found["high"]
    at = round(clip(found["value"]) * last)
    ends = (at, at) if low is None else (round(clip(low) * last), round(clip(high) * last))
    text = Text(no_wrap=True)
    for place in range(width):
        if place == at:
            text.append("●", "bold cyan")
        elif ends[0] <= place <= ends[1]:
            text.append("─", "cyan")
        else:
            text.append("·", "bright_black")
    return text


def _progress(row: CandidateRow) -> str:
    """The progress of a candidate without an estimate."""
    if row.asked:
        return f"{row.done} of {plural(row.asked, 'trial')} done"
    return f"{row.status}: {row.reason}" if row.reason else row.status


def _noted(row: CandidateRow) -> str:
    notes = [] if row.full is None else [f"all {score(row.full)}"]
    notes += [] if row.test is None else [f"test {score(row.test)}"]
    notes += [f"{row.missing} missing"] if row.missing else []
    notes += [f"{row.done} of {plural(row.asked, 'trial')}"] if row.asked else []
    return ", ".join(notes)


def _above(now: Report, width: int, sure: Certainty | None) -> list[RenderableType]:
    """The lines above the candidates."""
    return [*_title(now, width), *_facts(now, width, sure)]


def _title(now: Report, width: int) -> Iterator[Text]:
    """The name and state of the run; the time at the right, or below if it does not fit."""
    known = now.left is not None and now.phase != "ended"
    left = f" · about {duration(now.left or 0)} left" if known and not now.stopped else ""
    time = f"{duration(now.seconds)}{left}"
    doing = f"  {now.doing}" if now.doing not in ("", now.phase) and not now.stopped else ""
    text = f"{now.name}  {where(now)}{doing}"
    name, state = len(now.name), len(where(now).partition(":")[0])
    lines = textwrap.wrap(text, width, subsequent_indent="  ", drop_whitespace=False)
    first = Text(lines[0].rstrip(), no_wrap=True)
    first.stylize("bold cyan", 0, name)
    first.stylize("bold", name + 2, name + 2 + state)
    if len(lines) == 1 and len(first) + 2 + len(time) <= width:
        yield first.append(time.rjust(width - len(first)))
        return
    yield first
    yield from (Text(line.rstrip(), no_wrap=True) for line in lines[1:])
    yield Text(f"  {time}", no_wrap=True)


def where(now: Report) -> str:
    """The phase of a run, how it ended, or where and why it stopped."""
    match now.phase:
        case "ended":
            return f"ended: {now.why}"
        case "not started":
            return now.phase
        case "searching":
            place = f"round {now.round} of {now.rounds}"
        case "phase 0" | "preparing":
            place = "phase 0"
        case phase:
            place = _LATE[phase]
    return f"stopped in {place}: {now.why}" if now.stopped else place


def _facts(now: Report, width: int, sure: Certainty | None) -> Iterator[RenderableType]:
    for label, done, total, text in _fact_rows(now, sure):
        if total is None or width < _SMALL:
            indent = " " * _LABEL
            for number, line in enumerate(textwrap.wrap(text, max(20, width - _LABEL))):
                start = indent if number else f"{label:<{_LABEL}}"
                yield Text.assemble((start, "bright_black"), line, no_wrap=True)
            continue
        bar = ProgressBar(total=max(total, 1e-9), completed=min(done, total), width=_METER)
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=_LABEL - 2)
        grid.add_row(Text(label, "bright_black"), bar, Text(text, no_wrap=True))
        yield grid


def _fact_rows(
    now: Report, sure: Certainty | None
) -> Iterator[tuple[str, float, float | None, str]]:
    """Label, amount, total (None: no bar) and text of each line above the candidates."""
    if now.asked:
        under_way = f", {now.under_way} running" if now.under_way else ""
        text = f"{now.done:,} of {now.asked:,} done{under_way}"
        yield "trials", now.done, now.asked, text
    label = "budget"
    for cap in now.spend.budget:
        if cap.cap is not None:
            spent = amount(cap.name, cap.spent).removesuffix(f" {cap.name}")
            yield label, cap.spent, cap.cap, f"{spent} of {amount(cap.name, cap.cap)}"
            label = ""
    yield "spent", 0, None, _spent(now)
    if now.spend.savings is not None:
        yield "paid", 0, None, now.spend.savings.short
    if now.requested["trials"]:
        yield "spent", 0, None, f"{on_request(now)} on request"
    if faults := _faults(now):
        yield "faults", 0, None, faults
    if sure is not None and sure.short:
        yield "choice", 0, None, f"{sure.best}: {sure.short}"


def _spent(now: Report) -> str:
    totals, proposing = now.spend.totals, []
    parts = [plural(int(totals["trials"]), "trial")]
    others = {name: spent for name, spent in totals.items() if name not in ("trials", "hours")}
    parts += [amount(name, spent) for name, spent in others.items() if spent]
    if now.spend.proposing_tokens:
        proposing.append(f"{count(now.spend.proposing_tokens)} tokens")
    if now.spend.proposing["dollars"]:
        proposing.append(dollars(now.spend.proposing["dollars"]))
    if proposing:
        parts.append(f"including {' and '.join(proposing)} for proposing")
    if retried := int(now.spend.evaluating["failed_attempts"]):
        parts.append(f"{plural(retried, 'attempt')} retried")
    return ", ".join(parts)


def on_request(now: Report) -> str:
    """What evaluations on request have spent."""
    spent = now.requested
    parts = [plural(int(spent["trials"]), "trial")]
    if tokens := spent["tokens_in"] + spent["tokens_out"]:
        parts.append(f"{count(tokens)} tokens")
    if spent["dollars"]:
        parts.append(dollars(spent["dollars"]))
    return ", ".join(parts)


def _faults(now: Report) -> str:
    if not (now.missing or now.zeros):
        return ""
    kinds = sorted(now.failures.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{kind} {number}" for kind, number in kinds[:3])
    return f"{now.missing} missing, {now.zeros} scored 0 ({listed})"
