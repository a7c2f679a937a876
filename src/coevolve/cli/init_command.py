"""`coevolve init`: a working project in a folder."""

import shlex
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.console_output import echo
from coevolve.errors import ConfigError

_LEFT_OUT = "__pycache__"


def init(
    folder: Annotated[
        Path, typer.Argument(help="The folder of the project; created if needed.")
    ] = Path(),
) -> None:
    """Write a working project: a benchmark, two starting harnesses and a proposer."""
    written = write_project(folder)
    echo(f"Wrote {len(written)} files to {folder.resolve()}:")
    for name in written:
        echo(f"  {name}")
    echo("\nNext steps (README.md explains the files):")
    if folder.resolve() != Path.cwd():
        echo(f"  cd {shlex.quote(str(folder))}")
    for step in ("doctor", "run"):
        echo(f"  coevolve {step} coevolve.toml")


def write_project(folder: Path) -> list[str]:
    """Write the project and return its files; nothing is written if one of them exists."""
    project = dict(_files(files("coevolve.runs").joinpath("template"), ""))
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; name another one.")
    for name in project:
        if (folder / name).exists():
            raise ConfigError(
                f"{folder / name} already exists and would be overwritten; name another folder."
            )
    try:
        for name, content in project.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error}") from error
    return list(project)


def _files(folder: Traversable, within: str) -> Iterator[tuple[str, bytes]]:
    """Relative paths and contents of the files to copy, in the order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name == _LEFT_OUT:
            continue
        if entry.is_dir():
            yield from _files(entry, f"{within}{entry.name}/")
        else:
            yield f"{within}{entry.name}", entry.read_bytes()
