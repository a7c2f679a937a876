"""The `coevolve` command."""

import shutil
import sys
import textwrap
from typing import Annotated

import typer

from coevolve import __version__
from coevolve.cli.analyse import analyse_command
from coevolve.cli.data import data
from coevolve.cli.demo import demo
from coevolve.cli.diff import diff
from coevolve.cli.doctor import doctor
from coevolve.cli.estimate import estimate
from coevolve.cli.export import export
from coevolve.cli.init import init
from coevolve.cli.model import model
from coevolve.cli.propose import propose
from coevolve.cli.protocols import protocols
from coevolve.cli.query import query
from coevolve.cli.replay import replay
from coevolve.cli.resume import resume
from coevolve.cli.run import run
from coevolve.cli.show import show
from coevolve.cli.status import status
from coevolve.cli.worlds import worlds
from coevolve.errors import CoevolveError

USAGE_ERROR = 2


class _Group(typer.core.TyperGroup):
    """Turns the errors of the library into one line and exit code 2."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except CoevolveError as error:
            typer.secho(_worded(f"coevolve: {error}"), fg="red", err=True)
            raise typer.Exit(USAGE_ERROR) from error


def _worded(text: str) -> str:
    """A text that a terminal does not break within words; elsewhere as it is."""
    if not sys.stderr.isatty():
        return text
    wrapper = textwrap.TextWrapper(
        shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapper.fill(line) for line in text.splitlines())


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Score LLM harnesses on a few well-chosen tasks and estimate their full-set score.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coevolve {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None: ...


for _command in (init, doctor, estimate, propose, run, resume, status, show, diff, query, export):
    app.command()(_command)
app.command()(demo)
app.command()(worlds)
app.command()(protocols)
app.command()(replay)
app.command("analyse")(analyse_command)
app.add_typer(data)
app.add_typer(model, name="model")
