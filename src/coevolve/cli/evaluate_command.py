"""`coevolve evaluate`: score any harness, with the configured or another model."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from coevolve.cli.command_arguments import AsJson, Quiet, Set, find_run
from coevolve.cli.console_output import SteadyScreen, echo_json, redirected_prints
from coevolve.cli.run_progress import INTERRUPTED, SIGNALS, until_signal
from coevolve.errors import InputError, StopRun
from coevolve.formatting import plural

if TYPE_CHECKING:
    from coevolve.core.events import Event
    from coevolve.core.pool import Pool
    from coevolve.views.score_table import ScoreTable

AGAIN = "The same command continues; nothing that is recorded is repeated."


class Split(StrEnum):
    """The tasks to evaluate on."""

    VALIDATION = "validation"
    TEST = "test"


Tasks = Annotated[Split, typer.Option("--split", help="The validation tasks, or the sealed test.")]
Workers = Annotated[
    int | None,
    typer.Option(help="Trials at once. Default: as configured.", show_default=False),
]


def evaluate(
    harnesses: Annotated[
        list[str],
        typer.Argument(
            metavar="HARNESS...",
            help="Folders or files with a harness, names of candidates of the run, RUN/CANDIDATE, "
            "or names of harnesses of the benchmark.",
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="The configuration with the benchmark. Default: that of the run.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A run folder, or the TOML file of the run. Default: the only run in runs/, if "
            "there is no --config.",
            show_default=False,
        ),
    ] = None,
    split: Tasks = Split.VALIDATION,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|KEY=VALUE,...",
            help="Another model than the configured one, or other keys of its table. Repeat it to "
            "compare models.",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK,...|@FILE",
            help="Only these tasks; or a file with one task per line. May be repeated.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials of each task. Default: as configured.", show_default=False),
    ] = None,
    workers: Workers = None,
    changed: Set = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate harnesses on all or chosen tasks, and compare their scores."""
    from coevolve.runs.config_overrides import parse_overrides
    from coevolve.runs.evaluate import plan_evaluation

    if changed and config is None:
        raise InputError(
            "--set changes values of a TOML file; name it with --config. A run keeps the "
            "configuration that it recorded."
        )
    console = SteadyScreen(stderr=as_json)
    folder = _run(config, run)
    with redirected_prints(as_json):
        plan = plan_evaluation(
            harnesses,
            config=config,
            run=folder,
            split=split.value,
            models=model or (),
            tasks=None if tasks is None else partial(chosen_tasks, words=tasks),
            trials=trials,
            workers=workers,
            overrides=parse_overrides(changed or ()),
        )
        found = watch(console, plan.run, plan.warnings(), quiet=quiet)
    print_table(console, found, as_json=as_json)


def _run(config: Path | None, run: Path | None) -> Path | None:
    """The run whose candidates may be named."""
    if run is not None:
        return find_run(run)
    if config is None:
        try:
            return find_run(None)
        except InputError as error:
            raise InputError(f"{error} Or name a configuration: --config FILE.toml.") from error
    return None  # that of the configuration


def chosen_tasks(pool: "Pool", words: list[str]) -> list[str]:
    """The tasks that the words of --tasks name.

    A word is a task, several tasks separated by commas, or @FILE.
    """
    found: list[str] = []
    known = set(pool.tasks)
    for word in words:
        if word in known:
            found.append(word)
        elif word.startswith("@"):
            found += _listed(Path(word[1:]))
        else:
            found += [part.strip() for part in word.split(",") if part.strip()]
    if not found:
        raise InputError(f"--tasks names no task, got {', '.join(map(repr, words))}.")
    return list(dict.fromkeys(found))


def _listed(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--tasks @{file} cannot be read: {error}") from error
    return [line.strip() for line in lines if line.strip()]


def watch(
    console: SteadyScreen,
    work: "Callable[[Callable[[Event], None]], Coroutine[Any, Any, ScoreTable]]",
    warnings: tuple[str, ...],
    *,
    quiet: bool,
) -> "ScoreTable":
    """Do the work and show its progress; signals stop it cleanly."""
    if not quiet:
        for warning in warnings:
            console.print(Text(f"warning: {warning}", "bold yellow"))
    with _Watching(console, quiet=quiet) as watching:
        try:
            found = asyncio.run(until_signal(work(watching.listen)))
        except KeyboardInterrupt:
            found = INTERRUPTED + SIGNALS[0]
        except StopRun as stop:
            raise StopRun(f"{stop}\n{AGAIN}") from stop
    if isinstance(found, int):
        console.print(f"Stopped. {AGAIN}")
        raise typer.Exit(found)
    return found


class _Watching:
    """A bar on a terminal, lines elsewhere."""

    def __init__(self, console: SteadyScreen, *, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._bar = Progress(
            TextColumn("trials"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("trials", total=0, visible=False)
        self._total = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def listen(self, event: "Event") -> None:
        """Show an event."""
        if event["type"] == "requested":
            self._total += event["open"]
            self._bar.update(self._task, total=self._total, visible=True)
            if not self._quiet and not self._console.is_terminal:
                names = ", ".join(event["candidates"])
                self._console.print(
                    f"evaluating {names}: {plural(event['open'], 'trial')}", soft_wrap=True
                )
        elif event["type"] == "scored":
            self._bar.advance(self._task)


def print_table(console: SteadyScreen, found: "ScoreTable", *, as_json: bool) -> None:
    """Print scores as a table or as JSON."""
    from coevolve.cli.score_display import print_scores

    if as_json:
        echo_json(found.to_json())
    else:
        print_scores(console, found)
