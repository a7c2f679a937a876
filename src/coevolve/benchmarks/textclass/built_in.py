"""The harnesses that come with the package, each a folder with one file to read and to change."""

from pathlib import Path

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
)
"""From the plainest to the most elaborate."""


def built_in() -> dict[str, Path]:
    """The folders of all of them by name, those of `BUILT_IN` first, then a family.

    >>> list(built_in())[:2]
    ['zero-shot', 'few-shot']
    """
    here = Path(__file__).parent
    family = sorted(path.parent for path in here.glob("family/*/harness.py"))
    known = {name: here / "harnesses" / name for name in BUILT_IN}
    return known | {folder.name: folder for folder in family}


def harness_files(name: str) -> Files:
    """The files of a harness that comes with the package.

    Raises:
        ConfigError: There is none of this name.

    >>> list(harness_files("zero-shot"))
    ['harness.py']
    """
    known = built_in()
    if name not in known:
        raise ConfigError(
            f"there is no built-in harness {name!r}; there is {', '.join(known)}."
            f"{nearest(name, known)}"
        )
    return read_folder(known[name])
