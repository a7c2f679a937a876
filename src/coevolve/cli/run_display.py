"""A run on a terminal: the live view while it works, and the closing table."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from coevolve.cli.board import board_for, on_request
from coevolve.cli.console_output import Screen, facts, fitting, narrowed, table
from coevolve.core.events import Event
from coevolve.formatting import (
    CLIPPED,
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
from coevolve.views.certainty import Certainty, certainty
from coevolve.views.event_lines import Narrator
from coevolve.views.report import Report, report

TICK = 0.5
"""Seconds between two drawings."""
SHARE = 10
"""At most 1/SHARE of the time is spent on drawing, because the report of a long run is slow.

A single slow drawing does not count: the first one also imports modules.
"""


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
        sure = certainty(self._search.state) if now.round else None
        self._live.update(board_for(now, self.console, sure), refresh=True)
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


def print_closing(
    console: Screen, now: Report, winner: Path | None, sure: Certainty | None = None
) -> None:
    """Print the winner beside the starting harnesses, the spending, and the winner's path."""
    console.print()
    print_warning(console, now)
    console.print(_closing_table(now, console.width))
    console.print(facts(_closing_facts(now, sure)))
    if winner is not None:
        # On a line of its own, so that it can be copied from a narrow terminal.
        label = (f"{'winner':<13}", "bright_black")
        console.print(Text.assemble(label, str(winner)), soft_wrap=True)


def print_warning(console: Screen, now: Report) -> None:
    """Print that a starting harness is ahead, if one is."""
    if now.warning:
        console.print(Text(f"Warning: {now.warning}", "yellow"))


def _closing_table(now: Report, width: int) -> Table:
    best = now.best
    rows = [c for c in now.candidates if c.start or c.name == best or c.full is not None]
    tested = any(row.test is not None for row in now.candidates)
    rescored = any(row.full is not None for row in now.candidates)
    last = ["all\ntasks"] if rescored else []
    last += ["sealed\ntest" if rescored else "sealed test"] if tested else []
    columns = ("", "harness", "round", "estimate", "tasks", *last)
    lines = []
    for row in rows:
        cells = [
            "★" if row.name == now.best else "",
            row.name,
            "start" if row.start else str(row.round),
            "-" if row.estimate is None else estimate(row.estimate),
            "-" if row.estimate is None else tasks_seen(row.estimate),
        ]
        cells += [score(row.true_score)] if rescored else []
        cells += [score(row.test)] if tested else []
        lines.append(cells)
    kept = fitting(width, columns, lines, wrap=("harness",), drop=("round", "tasks", "all\ntasks"))
    shown = [columns[place] for place in kept]
    made = table(*shown, right=("round", "tasks", *last), wrap=("harness",))
    for row, cells in zip(rows, lines, strict=True):
        style = "bold" if row.name == now.best else ""
        made.add_row(*(cells[place] for place in kept), style=style)
    if any(is_clipped(row.estimate, "value") for row in rows):
        made.caption, made.caption_justify = CLIPPED, "left"
    return narrowed(made, width)


def _closing_facts(now: Report, sure: Certainty | None) -> Iterator[tuple[str, str]]:
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
    if sure is not None:
        yield "certainty", sure.short
    if now.requested["trials"]:
        yield "on request", on_request(now)
    if now.sealed_warning:
        yield "warning", now.sealed_warning
