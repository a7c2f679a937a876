"""`coevolve resume`: go on with a run that was stopped."""

from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.places import find_run
from coevolve.cli.run import AsJson, Quiet

RUN_HELP = "A run folder, or the TOML file of the run; the only one in runs/ if left out."
Run = Annotated[Path | None, typer.Argument(metavar="[RUN]", help=RUN_HELP, show_default=False)]


def resume(run: Run = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Go on with a run where it stopped; it ends as it would have without the stop."""
    from coevolve.cli.working import work

    work(find_run(run), quiet=quiet, as_json=as_json)
