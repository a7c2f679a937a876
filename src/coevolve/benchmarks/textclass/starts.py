"""The starting harnesses of a search: built-in ones by name, or folders."""

from collections.abc import Sequence
from pathlib import Path

from coevolve.benchmarks.base import read_starts
from coevolve.benchmarks.textclass.built_in import built_in
from coevolve.errors import ConfigError, nearest
from coevolve.search.candidate import Files

DEFAULT_STARTS = ("zero-shot", "few-shot")
"""Those of the paper."""


def read_start_files(starts: Sequence[str]) -> dict[str, Files]:
    """The files of starting harnesses, by name.

    Args:
        starts: Names of built-in harnesses, or folders with a `harness.py`.
    """
    if isinstance(starts, str):
        raise ConfigError(f"starts must be a list of names or folders, got {starts!r}.")
    known = built_in()
    found: dict[str, Path] = {}
    for entry in starts:
        name = entry if entry in known else Path(entry).resolve().name
        if name in found:
            raise ConfigError(f"two starting harnesses are named {name!r}; rename a folder.")
        found[name] = folder = known.get(entry, Path(entry).expanduser())
        if not folder.is_dir():
            raise ConfigError(
                f"there is no starting harness {entry!r}: it is neither a folder nor one of "
                f"{', '.join(known)}.{nearest(entry, known)}"
            )
    return read_starts(found)
