"""`coevolve run`: a search from its TOML file to its end."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.changed_config import (
    AcceptChange,
    Decision,
    Extend,
    IgnoreChanges,
    check_extends,
    wanted_limits,
)
from coevolve.cli.command_arguments import AsJson, Quiet
from coevolve.cli.console_output import SteadyScreen, at_terminal, echo_json, redirected_prints
from coevolve.errors import ConfigError, InputError, StopRun

if TYPE_CHECKING:
    from coevolve.cli.run_display import PlainView
    from coevolve.search.loop import Search
    from coevolve.search.run_state import RunState

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 128
"""Added to the number of a signal to make an exit code."""


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.toml", help="The configuration of the search.")
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the run, in place of the file's."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The seed of the run, in place of the file's."),
    ] = None,
    extend: Extend = False,
    ignore_changes: IgnoreChanges = False,
    accept_change: AcceptChange = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a search: propose, check, evaluate and choose, until the last round or a budget cap.

    If the file has a run already, --extend or --ignore-changes continues it.
    """
    from coevolve.runs.config import read_config
    from coevolve.runs.run import Run
    from coevolve.runs.session import run_folder

    limits: dict[str, Any] = {}
    with redirected_prints(as_json):
        config = read_config(file, name=name, seed=seed)
        existing = Run(run_folder(file, config))
        folder, known = existing.folder, existing.started
        if known:
            state = existing.state
            decision = Decision(
                extend=extend,
                ignore=ignore_changes,
                ask=at_terminal() and not as_json,
                limits={},
                pinned=accept_change,
            )
            course = decision.course(state, folder, file, config)
            if course is None:
                raise ConfigError(_already(folder, file, state))
            name, limits = course.new_run or name, wanted_limits(state, course.limits)
            known = course.new_run is None
            if extend:
                check_extends(state, file, limits)
        elif extend or ignore_changes or accept_change:
            raise InputError(
                f"there is no run in {folder} yet; leave out --extend, --ignore-changes "
                "and --accept-change."
            )
    if known:
        work(folder, quiet=quiet, as_json=as_json, limits=limits, accept_change=accept_change)
    else:
        start(file, name=name, seed=seed, quiet=quiet, as_json=as_json)


def start(
    file: Path,
    *,
    name: str | None,
    seed: int | None = None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Create the run of a TOML file, run it to its end, and print its result.

    `name` and `seed` replace those of the file.
    """
    from coevolve.runs.session import create_run, discarded_if_refused

    with redirected_prints(as_json):
        folder = create_run(file, name=name, seed=seed)
    with discarded_if_refused(folder):
        work(folder, quiet=quiet, as_json=as_json)


def _already(folder: Path, file: Path, state: "RunState") -> str:
    """How to continue a run that the file already has."""
    if not state.sessions:
        how = f", which has not started; start it with `coevolve resume {folder}`"
    elif state.ended is None:
        how = f"; resume it with `coevolve resume {folder}`"
    else:
        how = (
            f"; it has ended: {state.ended['why']}. Extend it, for example with `coevolve resume "
            f"{folder} --rounds {2 * state.settings.rounds}`"
        )
    return (
        f"{folder} already has a run{how}, or start a new one with `coevolve run {file} "
        "--name NAME`."
    )


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
    from coevolve.cli.run_display import make_view
    from coevolve.runs.run import Run

    console, run = SteadyScreen(stderr=as_json), Run(folder)
    if (state := run.state).ended is not None and not limits:
        _close(console, folder, state, as_json=as_json)
        if not as_json:
            _print_how_to_extend(console, folder, state)
        return
    try:
        with (
            redirected_prints(as_json),
            make_view(console, quiet=quiet) as view,
            run.session(view.listen, accept_change=accept_change, limits=limits) as search,
        ):
            view.attach(search)
            code = asyncio.run(_until_done(search, view))
    except KeyboardInterrupt:
        _print_how_to_resume(console, folder)
        raise typer.Exit(INTERRUPTED + signal.SIGINT) from None
    except StopRun as stop:
        if not stop.resumable or not run.state.sessions:
            raise
        raise StopRun(f"{stop}\nThen resume the run: coevolve resume {folder}") from stop
    if code:
        _print_how_to_resume(console, folder)
    if as_json or not code:
        _close(console, folder, search.state, as_json=as_json)
    if code:
        raise typer.Exit(code)


def _close(console: SteadyScreen, folder: Path, state: "RunState", *, as_json: bool) -> None:
    """Print the result of a run."""
    from coevolve.cli.run_display import print_closing
    from coevolve.runs.result import RunFolder
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
    print_closing(console, now, place)


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
