"""A run on the screen while it works: a live board on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from coevolve.cli.board import board, facts_height
from coevolve.cli.lines import Narrator
from coevolve.core.events import Event
from coevolve.search.loop import Search
from coevolve.search.report import Report, report

TICK = 0.5
"""Seconds between two drawings."""
SHARE = 10
"""Drawing may take one part in so many of the time: reports of long runs take a while.

A single slow drawing does not count: the first one that needs it imports what it computes with.
"""


class PlainView:
    """A line for every event worth one."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._narrator: Narrator | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def attach(self, search: Search) -> None:
        """Show this run from now on."""
        self._narrator = Narrator(search.state)

    def listen(self, event: Event) -> None:
        """Take notice of an event."""
        if self._narrator is not None:
            for line in self._narrator.told(event):
                self.console.print(Text(line), soft_wrap=not self.console.is_terminal)

    def tick(self) -> None:
        """Time has passed."""


class QuietView(PlainView):
    """Nothing at all."""

    def attach(self, search: Search) -> None:
        """Nothing is shown of it."""


class LiveView(PlainView):
    """The board below, redrawn in place, and the lines above it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._search: Search | None = None
        self._noticed = self._drawn = time.monotonic()
        self._costs = (0.0, 0.0)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def attach(self, search: Search) -> None:
        """Show this run from now on."""
        super().attach(search)
        self._search = search
        self.draw()

    def listen(self, event: Event) -> None:
        """Take notice of an event, and draw at once if it is not one of many."""
        self._noticed = time.monotonic()
        super().listen(event)
        if event["type"] not in ("outcome", "failed") or self._age() >= TICK:
            self.tick()

    def tick(self) -> None:
        """Draw, unless that would take too much of the time."""
        if self._age() >= SHARE * min(self._costs):
            self.draw()

    def draw(self) -> None:
        """Draw the run as it is now."""
        if self._search is None:
            return
        began = time.monotonic()
        clock = self._search.state.clock + began - self._noticed
        now = report(self._search.state, clock=clock, under_way=self._search.under_way)
        self._live.update(screen(now, self.console), refresh=True)
        self._drawn = time.monotonic()
        self._costs = (self._costs[1], self._drawn - began)

    def _age(self) -> float:
        return time.monotonic() - self._drawn


def screen(now: Report, console: Console) -> Group:
    """The board that fits a console."""
    room = max(3, console.height - facts_height(now))
    return board(now, width=console.width, most=room)


def make_view(console: Console, *, quiet: bool) -> PlainView:
    """The view for a console."""
    if quiet:
        return QuietView(console)
    redrawn = console.is_terminal and not console.is_dumb_terminal
    return LiveView(console) if redrawn else PlainView(console)
