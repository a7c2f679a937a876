"""The built-in harnesses, starting harnesses, and the frame sent into the sandbox."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from coevolve.benchmarks.base import read_named_starts
from coevolve.errors import ConfigError, nearest
from coevolve.search.candidate import Files, read_folder

BUILT_IN = (
    "zero-shot",
    "few-shot",
    "few-shot-k",
    "nearest",
    "vote",
    "discovered",
    "playbook",
    "context-files",
)
"""From the simplest to the most elaborate."""


@cache
def built_in() -> Mapping[str, Path]:
    """The folders of harnesses that can be named: those of `BUILT_IN`, then installed ones.

    An installed package declares a folder of harnesses as an entry point of the group
    `coevolve.harnesses`.

    >>> list(built_in())[:2]
    ['zero-shot', 'few-shot']
    """
    here = Path(__file__).parent
    found = {name: here / "harnesses" / name for name in BUILT_IN}
    for entry in entry_points(group="coevolve.harnesses"):
        folder: Path = entry.load()
        found |= {path.parent.name: path.parent for path in sorted(folder.glob("*/harness.py"))}
    return found


def harness_files(name: str) -> Files:
    """The files of a harness by name.

    Raises:
        ConfigError: There is no harness of this name.

    >>> list(harness_files("zero-shot"))
    ['harness.py']
    """
    known = built_in()
    if name not in known:
        raise ConfigError(
            f"there is no harness {name!r}; use one of {', '.join(known)}.{nearest(name, known)}"
        )
    return read_folder(known[name])


DEFAULT_STARTS = ("zero-shot", "few-shot")
"""The starting harnesses of the paper."""


def read_start_files(starts: Sequence[str]) -> dict[str, Files]:
    """The files of starting harnesses, by name.

    Args:
        starts: Names of built-in harnesses, or folders with a `harness.py`.
    """
    return read_named_starts(starts, built_in())


_INSIDE = Path(__file__).parent / "inside"
_PARTS = ("interface", "harness_class", "frame")
_STAND_INS = "text_classification"
_HERE = "coevolve.benchmarks.textclass.inside."
_OWN_IMPORT = re.compile(
    rf"^from (?:{re.escape(_HERE)}\w+|__future__) import (?:\([^)]*\)|[^(\n]*)\n", re.MULTILINE
)


@cache
def frame_source() -> str:
    r"""The source of the module `coevolve_frame`, of the standard library alone.

    The parts in the folder `inside` become one module, without imports of each other. The
    stand-ins for Meta-Harness's package are included as texts, and run when they are imported.

    >>> namespace = {}
    >>> exec(frame_source(), namespace)
    >>> namespace["Task"]("Name the language.").prompt("maison")
    'Name the language.\n\nmaison'
    """
    parts = [_OWN_IMPORT.sub("", _text(_INSIDE / f"{part}.py")) for part in _PARTS]
    filled = f"STAND_INS.update({_stand_ins()!r})\n"
    return "\n\n".join(["from __future__ import annotations\n", *parts, filled])


def _stand_ins() -> dict[str, str]:
    """The sources of the stand-in modules by name; the packages are made by the frame."""
    return {
        ".".join(path.relative_to(_INSIDE).with_suffix("").parts): _text(path).replace(_HERE, "")
        for path in sorted((_INSIDE / _STAND_INS).rglob("*.py"))
        if path.name != "__init__.py"
    }


def _text(path: Path) -> str:
    return path.read_text("utf-8")
