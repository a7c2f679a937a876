"""`coevolve demo`: a real search with the embedded model and the included data."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.command_arguments import JOURNAL, AsJson, Quiet
from coevolve.cli.console_output import Screen
from coevolve.cli.run_progress import work

FILE = "service_desk.toml"
_AS_ROOT = b"""
# bubblewrap does not work here, and other users cannot read this Python. The candidates of the
# demo are built from blocks of this package, so they may run as root.
[isolation]
kind = "process-as-root"
"""


def demo(
    to: Annotated[Path, typer.Option(help="The folder of the demo; created if needed.")] = (
        Path("coevolve-demo")
    ),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a real search with the embedded model, in a few minutes on two cores."""
    from coevolve.runs.session import create_run, read_state, run_folder

    console = Screen(stderr=as_json)
    file = _project(to)
    folder = run_folder(file)
    _get_model(console)
    if not (folder / JOURNAL).exists():
        create_run(file)
    elif read_state(folder).ended is not None:
        console.print(f"This demo has ended; remove {to} to run it again.")
    work(folder, quiet=quiet, as_json=as_json)


def _project(folder: Path) -> Path:
    """The configuration of the demo in its folder, written if it is missing."""
    from coevolve.errors import StopRun
    from coevolve.executors.isolation import find_isolation

    file = folder / FILE
    if not file.exists():
        text = files("coevolve.benchmarks.textclass").joinpath(FILE).read_bytes()
        try:
            find_isolation("auto")
        except StopRun:
            text += _AS_ROOT
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    return file


def _get_model(console: Screen) -> None:
    """Fetch the embedded model if it is missing."""
    from coevolve.errors import ConfigError
    from coevolve.models.embedded.model_weights import fetch, find_weights

    try:
        find_weights()
    except ConfigError:
        fetch(say=lambda text: console.print(text, soft_wrap=True))
