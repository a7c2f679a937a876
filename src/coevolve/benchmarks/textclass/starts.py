"""The starting harnesses of a search: built-in ones by name, or folders."""

from collections.abc import Sequence
from pathlib import Path

from coevolve.benchmarks.base import read_starts
from coevolve.benchmarks.textclass.built_in import BUILT_IN, harness_files
from coevolve.errors import ConfigError, nearest
from coevolve.search.candidate import Files

DEFAULT_STARTS = ("zero-shot", "few-shot")
"""Those of the paper."""


def built_in() -> dict[str, Path]:
    """The folders of the harnesses that come with the package, by name.

    >>> list(built_in())[:2]
    ['zero-shot', 'few-shot']
    """
    return {name: Path(__file__).parent / "harnesses" / name for name in BUILT_IN}


def read_start_files(starts: Sequence[str]) -> dict[str, Files]:
    """The files of starting harnesses, by name.

    Args:
        starts: Names of built-in harnesses, or folders with a `harness.py`.
    """
    if isinstance(starts, str):
        raise ConfigError(f"starts must be a list of names or folders, got {starts!r}.")
    found: dict[str, Path | Files] = {}
    for entry in starts:
        name = entry if entry in BUILT_IN else Path(entry).resolve().name
        if name in found:
            raise ConfigError(f"two starting harnesses are named {name!r}; rename a folder.")
        found[name] = harness_files(entry) if entry in BUILT_IN else _folder(entry)
    return read_starts(found)


def _folder(entry: str) -> Path:
    folder = Path(entry).expanduser()
    if not folder.is_dir():
        raise ConfigError(
            f"there is no starting harness {entry!r}: it is neither a folder nor one of "
            f"{', '.join(BUILT_IN)}.{nearest(entry, BUILT_IN)}"
        )
    return folder
