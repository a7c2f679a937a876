"""A run on a terminal: the board, the live view while it works, and the closing table."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coevolve.cli.console_output import Screen, facts, table
from coevolve.core.events import Event
from coevolve.formatting import (
    CLIPPED,
    amount,
    clip,
    count,
    dollars,
    duration,
    estimate,
    is_clipped,
    plural,
    score,
    tasks_seen,
)
from coevolve.search.loop import Search
from coevolve.views.event_lines import Narrator
from coevolve.views.report import CandidateRow, Report, report

NARROW, WIDE = 12, 30
_AROUND = 33
"""Columns of a candidate's line without its name, its estimate and its bar."""
_LONGEST_NAME = 32
TICK = 0.5
"""Seconds between two drawings."""
SHARE = 10
"""At most 1/SHARE of the time is spent on drawing, because the report of a long run is slow.

A single slow drawing does not count: the first one also imports modules.
"""
_LATE = {
    "final": "final evaluations",
    "rescoring": "scoring the winner on all tasks",
    "test": "sealed test",
}


def board(now: Report, *, width: int, most: int) -> Group:
    """One screen, `width` columns wide, with at most `most` candidates."""
    rows = chosen_rows(now, most)
    parts: list[RenderableType] = [_title(now), _facts(now)]
    if rows:
        parts += [Text(), *candidate_lines(now, rows, width)]
    if len(rows) < len(now.candidates):
        rest = len(now.candidates) - len(rows)
        parts.append(Text(f"  and {plural(rest, 'other candidate')}", "bright_black"))
    if any(is_clipped(row.estimate, "value") for row in rows):
        parts.append(Text(f"  {CLIPPED}", "bright_black"))
    return Group(*parts)


def board_for(now: Report, console: Screen) -> Group:
    """The board that fits a console."""
    other_lines = 7 + len(list(_fact_rows(now)))
    return board(now, width=console.width, most=max(3, console.height - other_lines))


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


def candidate_lines(now: Report, rows: list[CandidateRow], width: int) -> Iterator[Text]:
    """A heading and a line for each candidate."""
    longest = max(len(row.name) for row in rows)
    scores = max([13, *(len(estimate(row.estimate)) for row in rows if row.estimate)])
    around = _AROUND + scores
    names = max(9, min(longest, _LONGEST_NAME, width - around - NARROW))
    bar = max(NARROW, min(WIDE, width - around - names))
    scale = "0" + "1".rjust(bar - 1)
    head = f"  {'candidate':<{names}}  round  {'estimate':<{scores}}  {scale}  tasks"
    yield Text(head, "bright_black", no_wrap=True)
    for row in rows:
        line = _line(row, names, scores, bar, best=row.name == now.best)
        line.truncate(width, overflow="ellipsis")
        yield line


def _line(row: CandidateRow, names: int, scores: int, bar: int, *, best: bool) -> Text:
    line = Text(no_wrap=True, style="bold" if best else "")
    line.append("★ " if best else "  ", "yellow")
    name = Text(row.name)
    name.truncate(names, overflow="ellipsis", pad=True)
    line.append(name)
    line.append(f"  {'start' if row.start else row.round:>5}  ")
    if row.estimate is None:
        line.append(_progress(row), "red" if row.status == "refused" else "bright_black")
        return line
    line.append(f"{estimate(row.estimate):<{scores}}  ")
    line.append(interval_bar(row.estimate, bar))
    line.append(f"  {tasks_seen(row.estimate)}")
    if notes := list(_notes(row)):
        line.append(f"  {', '.join(notes)}", "bright_black")
    return line


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


def _notes(row: CandidateRow) -> Iterator[str]:
    if row.test is not None:
        yield f"test {score(row.test)}"
    if row.missing:
        yield f"{row.missing} missing"
    if row.asked:
        yield f"{row.done} of {row.asked} more"


def _title(now: Report) -> Table:
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_column(no_wrap=True, justify="right")
    known = now.left is not None and now.phase != "ended"
    left = f" · about {duration(now.left or 0)} left" if known else ""
    doing = f"  {now.doing}" if now.doing not in ("", now.phase) else ""
    text = Text.assemble((now.name, "bold cyan"), "  ", (_where(now), "bold"), doing)
    line.add_row(text, f"{duration(now.seconds)}{left}")
    return line


def _where(now: Report) -> str:
    match now.phase:
        case "searching":
            return f"round {now.round} of {now.rounds}"
        case "phase 0" | "preparing":
            return "phase 0"
        case "ended":
            return f"ended: {now.why}"
        case phase:
            return _LATE[phase]


def _facts(now: Report) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for label, done, total, text in _fact_rows(now):
        if total is None:
            grid.add_row(label, Text(text, no_wrap=True, overflow="ellipsis"))
            continue
        bar = ProgressBar(total=max(total, 1e-9), completed=min(done, total), width=24)
        line = Table.grid(padding=(0, 2))
        line.add_row(bar, Text(text, no_wrap=True))
        grid.add_row(label, line)
    return grid


def _fact_rows(now: Report) -> Iterator[tuple[str, float, float | None, str]]:
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
    if faults := _faults(now):
        yield "faults", 0, None, faults


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


def _faults(now: Report) -> str:
    zeros = sum(row.zeros for row in now.candidates)
    if not (now.missing or zeros):
        return ""
    kinds = sorted(now.failures.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{kind} {number}" for kind, number in kinds[:3])
    return f"{now.missing} missing, {zeros} scored 0 ({listed})"


class PlainView:
    """Prints a line for every event that has one."""

    def __init__(self, console: Screen) -> None:
        self.console = console
        self._narrator: Narrator | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def attach(self, search: Search) -> None:
        """Show this run from now on."""
        self._narrator = Narrator(search.state)

    def listen(self, event: Event) -> None:
        """Show an event."""
        if self._narrator is not None:
            for line in self._narrator.lines(event):
                self.console.print(Text(line), soft_wrap=not self.console.is_terminal)

    def tick(self) -> None:
        """Update what changes with time."""


class LiveView(PlainView):
    """Redraws the board in place, below the lines."""

    def __init__(self, console: Screen) -> None:
        super().__init__(console)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._search: Search | None = None
        self._noticed = self._drawn = time.monotonic()
        self._costs = (0.0, 0.0)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def attach(self, search: Search) -> None:
        """Show this run from now on."""
        super().attach(search)
        self._search = search
        self.draw()

    def listen(self, event: Event) -> None:
        """Show an event, and redraw at once unless it is one of many."""
        self._noticed = time.monotonic()
        super().listen(event)
        if event["type"] not in ("outcome", "failed") or self._age() >= TICK:
            self.tick()

    def tick(self) -> None:
        """Redraw, unless that takes too much of the time."""
        if self._age() >= SHARE * min(self._costs):
            self.draw()

    def draw(self) -> None:
        """Draw the present state."""
        if self._search is None:
            return
        began = time.monotonic()
        clock = self._search.state.clock + began - self._noticed
        now = report(self._search.state, clock=clock, under_way=self._search.under_way)
        self._live.update(board_for(now, self.console), refresh=True)
        self._drawn = time.monotonic()
        self._costs = (self._costs[1], self._drawn - began)

    def _age(self) -> float:
        return time.monotonic() - self._drawn


def make_view(console: Screen, *, quiet: bool) -> PlainView:
    """The view for a console: a live board on a terminal, lines elsewhere, or nothing."""
    if quiet:
        return PlainView(Screen(quiet=True))
    redrawn = console.is_terminal and not console.is_dumb_terminal
    return LiveView(console) if redrawn else PlainView(console)


def print_closing(console: Screen, now: Report, winner: Path | None) -> None:
    """Print the winner beside the starting harnesses, the spending, and the winner's path."""
    console.print()
    print_warning(console, now)
    console.print(_closing_table(now))
    console.print(facts(dict(_closing_facts(now))))
    if winner is not None:
        # On a line of its own, so that it can be copied from a narrow terminal.
        label = (f"{'winner':<13}", "bright_black")
        console.print(Text.assemble(label, str(winner)), soft_wrap=True)


def print_warning(console: Screen, now: Report) -> None:
    """Print that a starting harness is ahead, if one is."""
    if now.warning:
        console.print(Text(f"Warning: {now.warning}", "yellow"))


def _closing_table(now: Report) -> Table:
    rows = [row for row in now.candidates if row.start or row.name == now.best]
    tested = any(row.test is not None for row in now.candidates)
    rescored = any(row.full is not None for row in now.candidates)
    last = ["all\ntasks"] if rescored else []
    last += ["sealed\ntest" if rescored else "sealed test"] if tested else []
    columns = ("", "harness", "round", "estimate", "tasks", *last)
    made = table(*columns, right=("round", "tasks", *last))
    for row in rows:
        cells = [
            "★" if row.name == now.best else "",
            row.name,
            "start" if row.start else str(row.round),
            "-" if row.estimate is None else estimate(row.estimate),
            "-" if row.estimate is None else tasks_seen(row.estimate),
        ]
        if rescored:
            cells.append(score(row.true_score))
        if tested:
            cells.append(score(row.test))
        made.add_row(*cells, style="bold" if row.name == now.best else "")
    if any(is_clipped(row.estimate, "value") for row in rows):
        made.caption, made.caption_justify = CLIPPED, "left"
    return made


def _closing_facts(now: Report) -> Iterator[tuple[str, str]]:
    spend = now.spend
    yield (
        "ended",
        f"{now.why}, after {plural(now.round, 'round')} and {duration(now.seconds)}",
    )
    if spend.savings is not None:
        yield "evaluations", str(spend.savings)
    if spend.evaluating_tokens or spend.proposing_tokens:
        full = spend.full_tokens
        beside = "" if full is None else f" (a full search needs about {count(full)})"
        evaluating, proposing = count(spend.evaluating_tokens), count(spend.proposing_tokens)
        yield "tokens", f"{evaluating} for evaluating{beside}, {proposing} for proposing"
    if spend.proposing["dollars"]:
        evaluating, proposing = (
            dollars(one["dollars"]) for one in (spend.evaluating, spend.proposing)
        )
        yield "dollars", f"{evaluating} for evaluating, {proposing} for proposing"
    elif spend.evaluating["dollars"]:
        yield "dollars", dollars(spend.evaluating["dollars"])
    if now.mixed:
        yield "warning", now.mixed
    if now.missing:
        yield "missing", f"{plural(now.missing, 'outcome')}; `coevolve status` shows the reasons"
    if now.chosen is not None:
        yield "choice", now.chosen["why"]
