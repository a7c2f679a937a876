"""Folders that no sandbox may show, though they lie among those that every sandbox shows.

The system's programs and installed packages are visible inside, and among them may be this
package, which carries data sets with their answers, or whatever else somebody keeps there.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from coevolve.errors import StopRun
from coevolve.executors.isolation.system import RUNNER, interpreter, site_packages

_PACKAGE = RUNNER.resolve().parents[2]
_INSTALLED = "python*/*-packages"


def masked(shown: Sequence[Path], hidden: Sequence[Path] = ()) -> list[Path]:
    """The folders to cover up, of this package, its cache and some further ones.

    Args:
        shown: Files and folders that are visible inside, with all that is in them.
        hidden: Folders that must not be.

    Raises:
        StopRun: One cannot be covered up, since this Python needs what is in it.
    """
    found: list[Path] = []
    for folder in (*_ours(shown), *(path.resolve() for path in hidden)):
        visible = any(folder.is_relative_to(path) for path in shown)
        if not (visible and folder.is_dir()) or any(map(folder.is_relative_to, found)):
            continue
        if any(part.is_relative_to(folder) for part in _needed()):
            raise StopRun(
                f"{folder} cannot be hidden from candidates, since the Python that runs them lies "
                "in it; move the project to a folder of its own."
            )
        found = [*(path for path in found if not path.is_relative_to(folder)), folder]
    return found


def caches() -> list[Path]:
    """Where data sets and answers of models may be kept, whichever is in use."""
    base = os.environ.get("XDG_CACHE_HOME")
    own = os.environ.get("COEVOLVE_CACHE")
    places = [
        own,
        base and os.path.join(base, "coevolve"),  # noqa: PTH118
        "~/.cache/coevolve",
    ]
    return [Path(os.path.expanduser(place)).resolve() for place in places if place]  # noqa: PTH111


def _ours(shown: Sequence[Path]) -> Iterator[Path]:
    """This package wherever it is installed, its sources, and what it keeps."""
    yield _PACKAGE
    if (_PACKAGE.parents[1] / "pyproject.toml").is_file():
        yield _PACKAGE.parents[1]
    for site in (*map(Path, site_packages()), *(s for p in shown for s in p.glob(_INSTALLED))):
        yield (site / _PACKAGE.name).resolve()
    yield from caches()


def _needed() -> Iterator[Path]:
    yield from (interpreter(), Path(os.__file__).resolve(), *map(Path, site_packages()))
