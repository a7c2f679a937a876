"""Working on a run until it ends or is stopped."""

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path

import typer
from rich.console import Console

from coevolve.cli.aside import prints_aside
from coevolve.cli.closing import closing_json, print_closing
from coevolve.cli.live import TICK, PlainView, make_view
from coevolve.errors import StopRun
from coevolve.runs.session import read_state, session
from coevolve.search.loop import Search
from coevolve.search.report import report
from coevolve.search.run_state import RunState

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 128
"""What is added to the number of a signal to make an exit code."""


class SteadyConsole(Console):
    """A console whose reader may go away without ending the run."""

    def on_broken_pipe(self) -> None:
        """Go on in silence, and write what is left to nowhere."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def work(folder: Path, *, quiet: bool, as_json: bool) -> None:
    """Go on with a run, show it, and end with its result."""
    console = SteadyConsole(stderr=as_json, highlight=False)
    if (state := read_state(folder)).ended is not None:
        close(console, folder, state, as_json=as_json)
        return
    try:
        with (
            prints_aside(as_json),
            make_view(console, quiet=quiet) as view,
            session(folder, listen=view.listen) as search,
        ):
            view.attach(search)
            code = asyncio.run(_until_done(search, view))
    except KeyboardInterrupt:
        _say_how_to_resume(console, folder)
        raise typer.Exit(INTERRUPTED + signal.SIGINT) from None
    except StopRun as stop:
        if not stop.resumable:
            raise
        raise StopRun(f"{stop}\nThen go on with `coevolve resume {folder}`.") from stop
    if code:
        _say_how_to_resume(console, folder)
    if as_json or not code:
        close(console, folder, search.state, as_json=as_json)
    if code:
        raise typer.Exit(code)


def close(console: Console, folder: Path, state: RunState, *, as_json: bool) -> None:
    """Print how a run stands, as its last word."""
    now = report(state)
    if as_json:
        typer.echo(json.dumps(closing_json(now, folder, state), indent=2))
    else:
        print_closing(console, now, folder, state)


async def _until_done(search: Search, view: PlainView) -> int:
    """0 at the end of the run, or the exit code of the signal that stopped it.

    The first signal stops the run cleanly; after it, signals do what they do to any program.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(search.run())
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        for known in SIGNALS:
            loop.remove_signal_handler(known)
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    ticking = asyncio.create_task(_tick(view))
    try:
        await task
    except asyncio.CancelledError:
        if not received:
            raise
        return INTERRUPTED + received[0]
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking
    return 0


async def _tick(view: PlainView) -> None:
    while True:
        await asyncio.sleep(TICK)
        view.tick()


def _say_how_to_resume(console: Console, folder: Path) -> None:
    console.print(
        f"Stopped; nothing recorded is lost. Go on with: coevolve resume {folder}",
        markup=False,
        soft_wrap=True,
    )
