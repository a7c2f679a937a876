"""`coevolve run`: a search from its TOML file to its end."""

from collections.abc import Mapping, Sequence
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
from coevolve.cli.command_arguments import AsJson, Quiet, Set, names, whole_numbers
from coevolve.cli.console_output import at_terminal, redirected_prints
from coevolve.cli.matrix_runs import MatrixPart, run_all
from coevolve.cli.plan_display import print_matrix_plan, print_plan
from coevolve.cli.run_progress import work
from coevolve.errors import ConfigError, InputError

if TYPE_CHECKING:
    from coevolve.runs.config_overrides import Override
    from coevolve.search.run_state import RunState


def run(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE.toml", help="The configuration of the search.", show_default=False
        ),
    ] = None,
    matrix: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Run or resume all rows and seeds of a matrix, instead of one search.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="ROW,...", help="Run only these rows of the matrix.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Run all rows with these seeds instead of those in the matrix.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the run, in place of the file's."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The seed of the run, in place of the file's."),
    ] = None,
    changed: Set = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would run and what it costs; create nothing."),
    ] = False,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="With --dry-run: take the cost of a trial from this earlier run.",
            show_default=False,
        ),
    ] = None,
    extend: Extend = False,
    ignore_changes: IgnoreChanges = False,
    accept_change: AcceptChange = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a search: propose, check, evaluate and choose, until the last round or a budget cap.

    If the file has a run already, --extend or --ignore-changes continues it. With --matrix, the
    command starts new runs, resumes stopped ones, and skips those that have ended; repeat it
    after an interruption.
    """
    from coevolve.runs.config import read_config
    from coevolve.runs.config_overrides import parse_overrides
    from coevolve.runs.run import Run
    from coevolve.runs.session import run_folder

    _check_options(
        file,
        matrix,
        of_matrix={"--only": only, "--seeds": seeds},
        of_run={"--name": name, "--seed": seed},
    )
    if dry_run and (extend or ignore_changes or accept_change):
        raise InputError(
            "--dry-run only prints; leave out --extend, --ignore-changes and --accept-change."
        )
    if like is not None and not dry_run:
        raise InputError("--like has no effect without --dry-run.")
    overrides = parse_overrides(changed or ())
    decision = Decision(
        extend=extend,
        ignore=ignore_changes,
        ask=at_terminal() and not as_json,
        limits={},
        pinned=accept_change,
        matrix=matrix,
    )
    if matrix is not None:
        part = MatrixPart(
            file=matrix,
            only=() if only is None else names("--only", only),
            seeds=() if seeds is None else whole_numbers("--seeds", seeds),
            overrides=overrides,
        )
        if dry_run:
            print_matrix_plan(part, like=like, as_json=as_json)
        else:
            run_all(part, decision, accept_change=accept_change, quiet=quiet, as_json=as_json)
        return
    assert file is not None
    if dry_run:
        print_plan(file, name=name, seed=seed, overrides=overrides, like=like, as_json=as_json)
        return
    limits: dict[str, Any] = {}
    with redirected_prints(as_json):
        config = read_config(file, name=name, seed=seed, overrides=overrides)
        existing = Run(run_folder(file, config))
        folder, known = existing.folder, existing.started
        if known:
            state = existing.state
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
        start(file, name=name, seed=seed, overrides=overrides, quiet=quiet, as_json=as_json)


def start(
    file: Path,
    *,
    name: str | None,
    seed: int | None = None,
    overrides: "Sequence[Override]" = (),
    quiet: bool,
    as_json: bool,
) -> None:
    """Create the run of a TOML file, run it to its end, and print its result.

    `name`, `seed` and `overrides` replace values of the file.
    """
    from coevolve.runs.session import create_run, discarded_if_refused

    with redirected_prints(as_json):
        folder = create_run(file, name=name, seed=seed, overrides=overrides)
    with discarded_if_refused(folder):
        work(folder, quiet=quiet, as_json=as_json)


def _check_options(
    file: Path | None,
    matrix: Path | None,
    *,
    of_matrix: Mapping[str, object],
    of_run: Mapping[str, object],
) -> None:
    """Refuse options that have no effect on one search, or on a matrix."""
    if (file is None) == (matrix is None):
        raise InputError(
            "run needs FILE.toml, the configuration of a search, or --matrix FILE.toml"
            + ("." if file is None else "; use one of them.")
        )
    for option, value in (of_run if file is None else of_matrix).items():
        if value is not None:
            instead = "; its rows and seeds name its runs" if file is None else ""
            what = "with" if file is None else "without"
            raise InputError(f"{option} has no effect {what} --matrix{instead}.")


def _already(folder: Path, file: Path, state: "RunState") -> str:
    """How to continue a run that the file already has."""
    if not state.sessions:
        how = f", which has not started; start it with `coevolve resume {folder}`"
    elif state.ended is None:
        how = f"; resume it with `coevolve resume {folder}`"
    else:
        from coevolve.runs.extension import limit_reached

        how = (
            f"; it has ended: {state.ended['why']}. Extend it with `coevolve resume {folder} "
            f"--{limit_reached(state)} TOTAL`"
        )
    return (
        f"{folder} already has a run{how}, or start a new one with `coevolve run {file} "
        "--name NAME`."
    )
