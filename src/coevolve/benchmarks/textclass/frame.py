"""The frame around a harness as source text, to be sent into the sandbox."""

import re
from functools import cache
from pathlib import Path

_INSIDE = Path(__file__).parent / "inside"
_PARTS = ("interface", "finding", "adapter", "frame")
_STAND_INS = "text_classification"
_HERE = "coevolve.benchmarks.textclass.inside."
_OWN_IMPORT = re.compile(
    rf"^from (?:{re.escape(_HERE)}\w+|__future__) import (?:\([^)]*\)|[^(\n]*)\n", re.MULTILINE
)


@cache
def frame_source() -> str:
    r"""The source of the module `coevolve_frame`, of the standard library alone.

    The parts in the folder `inside` become one module, so that their imports of each other go.
    The stand-ins for Meta-Harness's package travel as texts, and are run if they are imported.

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
