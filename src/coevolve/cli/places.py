"""Which run a command means."""

from pathlib import Path

from coevolve.errors import InputError

JOURNAL = "run.db"


def find_run(given: Path | None) -> Path:
    """The folder of a run.

    Args:
        given: The folder itself, or the TOML file that describes the run; None for the only run
            below `runs/` in the current folder.
    """
    if given is None:
        return _only_run()
    if given.is_file():
        return _of_file(given)
    if (given / JOURNAL).exists():
        return given
    if not given.exists():
        raise InputError(f"there is no {given}; RUN is a run folder or a TOML file.")
    raise InputError(f"{given} is no run folder.{_listed(_runs(given))}")


def take_run(words: list[str], count: int, usage: str) -> tuple[Path, list[str]]:
    """The run and the `count` words after it, where the run may be left out."""
    if len(words) not in (count, count + 1):
        raise InputError(f"got {len(words)} arguments; the usage is {usage}.")
    given = Path(words[0]) if len(words) > count else None
    return find_run(given), words[-count:]


def _of_file(path: Path) -> Path:
    if path.suffix != ".toml":
        raise InputError(f"{path} is neither a run folder nor a TOML file.")
    from coevolve.runs.session import run_folder

    folder = run_folder(path)
    if not (folder / JOURNAL).exists():
        raise InputError(f"{path} has not been run yet; `coevolve run {path}` starts it.")
    return folder


def _only_run() -> Path:
    here = Path()
    if (here / JOURNAL).exists():
        return here
    found = _runs(here)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError("name a run: the current folder has none in runs/.")
    raise InputError(f"name a run: there are several.{_listed(found)}")


def _runs(folder: Path) -> list[Path]:
    return sorted(
        path.parent
        for pattern in (f"runs/*/{JOURNAL}", f"*/{JOURNAL}")
        for path in folder.glob(pattern)
    )


def _listed(found: list[Path]) -> str:
    return f" Runs there: {', '.join(map(str, found))}." if found else ""
