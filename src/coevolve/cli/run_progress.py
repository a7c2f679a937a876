"""Progress of a run at the terminal, from its start or its last stop to its end or a signal."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from coevolve.cli.console_output import SteadyScreen, echo_json, redirected_prints
from coevolve.errors import StopRun

if TYPE_CHECKING:
    from coevolve.cli.run_display import PlainView
    from coevolve.search.loop import Search
    from coevolve.search.run_state import RunState

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 128
"""Added to the number of a signal to make an exit code."""


def work(
    folder: Path,
    *,
    quiet: bool,
    as_json: bool,
    limits: Mapping[str, float | None] | None = None,
    accept_change: bool = False,
) -> None:
    """Continue a run to its end, show its progress, and print its result.

    `limits` are those of an extension; `accept_change` continues with a changed benchmark.
    """
    from coevolve.runs.run import Run

    console, state = SteadyScreen(stderr=as_json), Run(folder).state
    if state.ended is not None and not limits:
        close(console, folder, state, as_json=as_json)
        if not as_json:
            _print_how_to_extend(console, folder, state)
        return
    try:
        code, state = advance(
            console,
            folder,
            quiet=quiet,
            as_json=as_json,
            limits=limits,
            accept_change=accept_change,
            again=f"When that is fixed, resume with: coevolve resume {folder}",
        )
    except KeyboardInterrupt:
        _print_how_to_resume(console, folder)
        raise typer.Exit(INTERRUPTED + signal.SIGINT) from None
    if code:
        _print_how_to_resume(console, folder)
    if as_json or not code:
        close(console, folder, state, as_json=as_json)
    if code:
        raise typer.Exit(code)


def advance(
    console: SteadyScreen,
    folder: Path,
    *,
    quiet: bool,
    as_json: bool,
    limits: Mapping[str, float | None] | None,
    accept_change: bool,
    again: str,
) -> "tuple[int, RunState]":
    """Continue a run until it ends or a signal stops it, and show its progress.

    `again` says how to continue; it follows the message of an error that stops the run.

    Returns:
        0, or the exit code of the signal; and the state of the run.
    """
    from coevolve.cli.run_display import make_view
    from coevolve.runs.run import Run

    run = Run(folder)
    try:
        with (
            redirected_prints(as_json),
            make_view(console, quiet=quiet) as view,
            run.session(view.listen, accept_change=accept_change, limits=limits) as search,
        ):
            view.attach(search)
            return asyncio.run(_until_done(search, view)), search.state
    except StopRun as stop:
        if not stop.resumable or not run.state.sessions:
            raise
        raise StopRun(f"{stop}\n{again}") from stop


def close(console: SteadyScreen, folder: Path, state: "RunState", *, as_json: bool) -> None:
    """Print the result of a run."""
    from coevolve.cli.run_display import print_closing
    from coevolve.runs.result import RunFolder
    from coevolve.views.certainty import certainty
    from coevolve.views.report import report

    now, winner = report(state), (state.chosen or {}).get("candidate")
    candidate = None if winner is None else state.candidates[winner].candidate
    place = None if candidate is None else RunFolder(folder).checkout(candidate)
    if as_json:
        found: dict[str, Any] = {
            **now.to_json(),
            "folder": str(folder),
            "winner_folder": None if place is None else str(place),
            "full_tokens": now.spend.full_tokens,
        }
        echo_json(found)
        return
    if place is not None and candidate is not None and len(candidate.files) == 1:
        place /= next(iter(candidate.files))
    print_closing(console, now, place, certainty(state))


async def _until_done(search: "Search", view: "PlainView") -> int:
    """0 at the end of the run, or the exit code of the signal that stopped it."""
    ticking = asyncio.create_task(_tick(view))
    try:
        found = await until_signal(search.run())
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking
    return found if isinstance(found, int) else 0


async def until_signal[T](work: Coroutine[Any, Any, T]) -> T | int:
    """The result of some work, or the exit code of the signal that stopped it.

    The first signal stops the work cleanly; after it, signals have their usual effect.
    """
    loop, task = asyncio.get_running_loop(), asyncio.create_task(work)
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        for known in SIGNALS:
            loop.remove_signal_handler(known)
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise
        return INTERRUPTED + received[0]


async def _tick(view: "PlainView") -> None:
    from coevolve.cli.run_display import TICK

    while True:
        await asyncio.sleep(TICK)
        view.tick()


def _print_how_to_extend(console: SteadyScreen, folder: Path, state: "RunState") -> None:
    from coevolve.runs.extension import limit_reached

    limit = limit_reached(state)
    console.print(
        f"The run has ended. Extend it with: coevolve resume {folder} --{limit} TOTAL",
        soft_wrap=True,
    )


def _print_how_to_resume(console: SteadyScreen, folder: Path) -> None:
    console.print(
        f"Stopped; nothing recorded is lost. Resume with: coevolve resume {folder}",
        soft_wrap=True,
    )
