"""`coevolve demo`: a real search, with the model and the data that come along."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from coevolve.cli.run import AsJson, Quiet

FILE = "service_desk.toml"


def demo(
    to: Annotated[Path, typer.Option(help="The folder of the demo; made if there is none.")] = (
        Path("coevolve-demo")
    ),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search for a better harness around the embedded model, on a fifth of the evaluations."""
    from coevolve.cli.working import work
    from coevolve.runs.session import create_run, read_state, run_folder

    console = Console(stderr=as_json, highlight=False)
    file = _project(to)
    folder = run_folder(file)
    _get_model(console)
    if not (folder / "run.db").exists():
        create_run(file)
    elif read_state(folder).ended is not None:
        console.print(f"This demo has ended; remove {to} to see it again.", markup=False)
    work(folder, quiet=quiet, as_json=as_json)


def _project(folder: Path) -> Path:
    """The configuration of the demo in its folder, written unless it is there."""
    file = folder / FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(files("coevolve.benchmarks.textclass").joinpath(FILE).read_bytes())
    return file


def _get_model(console: Console) -> None:
    """Fetch the embedded model if it is not there yet."""
    from coevolve.errors import ConfigError
    from coevolve.models.embedded.model_weights import fetch, find_weights

    try:
        find_weights()
    except ConfigError:
        fetch(say=lambda text: console.print(text, soft_wrap=True, markup=False))
