"""The `coevolve` command."""

from collections.abc import Callable
from typing import Annotated, cast

import typer

from coevolve import __version__
from coevolve.cli.analyse_command import analyse
from coevolve.cli.console_output import echo, echo_error
from coevolve.cli.data_command import data
from coevolve.cli.demo_command import demo
from coevolve.cli.diff_command import diff
from coevolve.cli.doctor_command import doctor
from coevolve.cli.estimate_command import estimate
from coevolve.cli.evaluate_command import evaluate
from coevolve.cli.export_command import export
from coevolve.cli.fill_command import fill
from coevolve.cli.harbor_command import harbor
from coevolve.cli.import_command import import_results
from coevolve.cli.init_command import init
from coevolve.cli.model_command import model
from coevolve.cli.propose_command import propose
from coevolve.cli.protocols_command import protocols
from coevolve.cli.query_command import query
from coevolve.cli.replay_command import replay
from coevolve.cli.report_command import report
from coevolve.cli.rescore_command import rescore
from coevolve.cli.resume_command import resume
from coevolve.cli.run_command import run
from coevolve.cli.runs_command import runs
from coevolve.cli.searches_command import searches
from coevolve.cli.show_command import show
from coevolve.cli.status_command import status
from coevolve.cli.table_command import table
from coevolve.cli.ui_command import ui
from coevolve.cli.worlds_command import worlds
from coevolve.errors import CoevolveError

USAGE_ERROR = 2


class _Group(typer.core.TyperGroup):
    """Prints an error of the library as one line, with exit code 2."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except CoevolveError as error:
            echo_error(f"coevolve: {error}")
            raise typer.Exit(USAGE_ERROR) from error


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Score LLM harnesses on a few well-chosen tasks and estimate their full-set score.",
)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"coevolve {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None: ...


_RUNS = (
    init,
    doctor,
    estimate,
    propose,
    import_results,
    run,
    resume,
    runs,
    status,
    show,
    diff,
    query,
    export,
    report,
    ui,
)
_SCORES = (evaluate, rescore)
_TOOLS = (demo, worlds, protocols, replay, fill, searches, analyse, table)
for _command in cast(tuple[Callable[..., None], ...], (*_RUNS, *_SCORES, *_TOOLS)):
    app.command("import" if _command is import_results else None)(_command)
app.add_typer(data)
app.add_typer(harbor)
app.add_typer(model, name="model")
