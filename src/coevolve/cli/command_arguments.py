"""Arguments that several commands take: the run, lists of names and numbers, settings."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from coevolve.errors import InputError

JOURNAL = "run.db"
Run = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RUN]",
        help="A run folder, or the TOML file of the run. Default: the only run in runs/.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the final result.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the TOML file, such as search.fraction=0.2. May be repeated.",
        show_default=False,
    ),
]
SET_NEEDS_FILE = (
    "--set changes values of a TOML file; name the file. A run keeps the configuration that it "
    "recorded."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProtocolSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, such as rounding=floor, of the protocols that have it; may be "
        "repeated. `coevolve protocols` lists the settings.",
        show_default=False,
    ),
]


def find_run(given: Path | None) -> Path:
    """The folder of a run.

    Args:
        given: The folder itself, or the TOML file that describes the run; None for the only run
            in `runs/` of the current folder.
    """
    if given is None:
        return _only_run()
    if given.is_file():
        return _of_file(given)
    if (given / JOURNAL).exists():
        return given
    if not given.exists():
        raise InputError(f"{given} does not exist; RUN is a run folder or a TOML file.")
    from coevolve.store import run_folders

    raise InputError(f"{given} is not a run folder.{_listed(run_folders(given))}")


def take_run(words: list[str], count: int, usage: str) -> tuple[Path, list[str]]:
    """The run, which may be left out, and the `count` words after it."""
    if len(words) not in (count, count + 1):
        raise InputError(f"got {len(words)} arguments; usage: {usage}.")
    if len(words) == count and is_run(Path(words[0])):
        raise InputError(f"{words[0]} is a run; name what to show of it: {usage}.")
    given = Path(words[0]) if len(words) > count else None
    return find_run(given), words[-count:]


def names(option: str, text: str) -> tuple[str, ...]:
    """Names separated by commas.

    >>> names("--protocols", "naive, joint")
    ('naive', 'joint')
    """
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise InputError(f"{option} must be names separated by commas, got {text!r}.")
    return found


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers separated by commas.

    >>> numbers("--fractions", "0.07,0.2")
    (0.07, 0.2)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, got {text!r}.") from None


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas.

    >>> whole_numbers("--rounds", "0,4,10")
    (0, 4, 10)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{option} must be whole numbers separated by commas, got {text!r}."
        ) from None


def protocol_settings(given: Iterable[str] | None) -> dict[str, Any]:
    """Settings of protocols from KEY=VALUE; the value is written as in TOML, or a plain word.

    >>> protocol_settings(["rounding=floor", "floor=0.2"])
    {'rounding': 'floor', 'floor': 0.2}
    """
    found: dict[str, Any] = {}
    for text in given or ():
        key, mark, value = (part.strip() for part in text.partition("="))
        if not (key and mark and value):
            raise InputError(f"--set needs KEY=VALUE, such as rounding=floor, got {text!r}.")
        if key in found:
            raise InputError(f"--set {key} is given twice; give it once.")
        if key == "fraction":
            raise InputError("--set cannot change the fraction; the command has an option for it.")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    """A value of TOML; anything else is a text."""
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def is_run(path: Path) -> bool:
    """Whether a path is a run folder or a TOML file."""
    return (path / JOURNAL).exists() or (path.suffix == ".toml" and path.is_file())


def _of_file(path: Path) -> Path:
    if path.suffix != ".toml":
        raise InputError(f"{path} is neither a run folder nor a TOML file.")
    from coevolve.runs.session import run_folder

    folder = run_folder(path)
    if not (folder / JOURNAL).exists():
        raise InputError(f"{path} has no run yet; start it with `coevolve run {path}`.")
    return folder


def _only_run() -> Path:
    here = Path()
    if (here / JOURNAL).exists():
        return here
    from coevolve.store import run_folders

    found = run_folders(here)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError("there is no run in runs/ of the current folder; name a run.")
    raise InputError(f"there are several runs; name one.{_listed(found)}")


def _listed(found: list[Path]) -> str:
    return f" Runs found: {', '.join(map(str, found))}." if found else ""
