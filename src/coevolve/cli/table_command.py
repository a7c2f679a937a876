"""`coevolve table`: the tables of the paper from one or many runs."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from coevolve.cli.command_arguments import AsJson, whole_numbers
from coevolve.cli.console_output import Screen, echo, echo_json
from coevolve.cli.paid_scores import Yes, pay
from coevolve.cli.table_grid import table_grid
from coevolve.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from coevolve_reproductions.run_tables import RunTable


def table(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="tc, tb, cost, difficulty, accuracy, ablation, swap, ties, stronger or phase0.",
        ),
    ],
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders of runs.")
    ],
    rounds: Annotated[
        str | None,
        typer.Option(help="Rounds that the table difficulty shows, separated by commas."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Add the figures that the paper has published.")
    ] = False,
    buy: Annotated[
        bool,
        typer.Option(
            "--rescore",
            help="Score the candidates that the table lacks first. Shows the price and asks.",
        ),
    ] = False,
    yes: Yes = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="markdown|latex|csv|json",
            help="Print another format.",
            show_default="a table",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a file instead. Its suffix (.md, .tex, .csv or .json) sets the format, "
            "unless --format does.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of the paper from runs; runs that differ only in their seed are averaged."""
    try:  # on first use: no other command needs the tables
        from coevolve_reproductions.run_tables import checked_name, read_runs, run_table
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the tables of the paper are not installed ({error}); reinstall task-coevolve, "
            "which includes them as coevolve_reproductions."
        ) from error
    checked_name(name)
    if as_json and form not in (None, "json"):
        raise InputError(f"--json and --format {form} cannot be combined; use one of them.")
    form = _format("json" if as_json else form, to)
    if yes and not buy:
        raise InputError("--yes has an effect only with --rescore; leave it out.")
    wanted = None if rounds is None else whole_numbers("--rounds", rounds)
    made = run_table(name, read_runs(runs), rounds=wanted, paper=paper)
    if buy:
        _pay(made, yes=yes, quiet=form is not None)
        made = run_table(name, read_runs(runs), rounds=wanted, paper=paper)
    if form is None:
        _print(made)
    elif to is None and form == "json":
        echo_json(made.to_json(), allow_nan=False)
    elif to is None:
        echo(_text(made, form), nl=False)
    else:
        _write(to, _text(made, form))


def _format(form: str | None, to: Path | None) -> str | None:
    """The format by its name or by the suffix of a file; None for a terminal."""
    from coevolve_reproductions.tables.table_text import FORMATS

    if form is not None and form not in FORMATS:
        raise InputError(
            f"--format must be one of {', '.join(FORMATS)}, got {form!r}.{nearest(form, FORMATS)}"
        )
    if to is None:
        return form
    suffixes = {suffix: known for known, (suffix, _) in FORMATS.items()}
    if form is None and to.suffix not in suffixes:
        raise InputError(
            f"--to {str(to)!r} needs one of the suffixes {', '.join(suffixes)}; or add --format."
        )
    return form or suffixes[to.suffix]


def _pay(made: "RunTable", *, yes: bool, quiet: bool) -> None:
    from coevolve.runs.rescore_plan import plan_rescore

    plans = [plan_rescore(folder, names, split) for (folder, split), names in made.payable.items()]
    pay([plan for plan in plans if plan.names], yes=yes, quiet=quiet)


def _print(made: "RunTable") -> None:
    console = Screen()
    console.print(Text(made.table.title, "bold"))
    rest = "--format csv prints them"
    console.print(table_grid(made.table, console.width, rest))
    console.print(made.table.note)
    for purpose, lines in made.table.step_lines():
        console.print(f"{purpose}:")
        for line in lines:
            console.print(f"  {line}", soft_wrap=True)  # in one line, so that it can be copied


def _text(made: "RunTable", form: str) -> str:
    from coevolve.formatting import json_text
    from coevolve_reproductions.tables.table_text import FORMATS

    if form == "json":
        return json_text(made.to_json(), indent=2, allow_nan=False) + "\n"
    return FORMATS[form][1](made.table)


def _write(to: Path, text: str) -> None:
    part = to.with_name(f".{to.name}.part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(to)
    except OSError as error:
        raise InputError(f"cannot write {to}: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):  # it is gone after it was renamed
            part.unlink()
    echo(f"written: {to}", err=True)
