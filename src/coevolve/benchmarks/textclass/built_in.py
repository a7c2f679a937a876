"""The harnesses that come with the package, each a folder with one file to read and to change."""

from pathlib import Path

from coevolve.errors import ConfigError, nearest
from coevolve.search.candidate import Files

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
FILE = "harness.py"

_FOLDER = Path(__file__).parent / "harnesses"


def harness_files(name: str) -> Files:
    """The files of a harness that comes with the package.

    Raises:
        ConfigError: There is none of this name.

    >>> list(harness_files("zero-shot"))
    ['harness.py']
    """
    if name not in BUILT_IN:
        raise ConfigError(
            f"there is no built-in harness {name!r}; there is {', '.join(BUILT_IN)}."
            f"{nearest(name, BUILT_IN)}"
        )
    return {FILE: (_FOLDER / name / FILE).read_bytes()}
