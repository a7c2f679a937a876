"""Where an agent is installed: what a sandbox must show so that it starts."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import ConfigError
from coevolve.proposers.command.agent import Agent

_LIBRARIES = ("python3*", "node_modules")
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How a program is started, what it needs of the file system, and where its runners lie.

    `command` has real files: a copy of a link would not find what lies beside it. A script that
    asks for its runner on the PATH is given the one that it has here.
    """

    command: tuple[str, ...]
    shown: tuple[Path, ...]
    path: tuple[Path, ...]


def find_program(agent: Agent) -> Path:
    """Where the program of an agent is: on the PATH, or beside this Python.

    Raises:
        ConfigError: It is nowhere; the message says how to install it.
    """
    beside = str(Path(sys.executable).parent)
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), beside])
    found = shutil.which(os.path.expanduser(agent.program), path=places)  # noqa: PTH111
    if found is None:
        if agent.install:
            how = f'Install it ({agent.install}), or say where it is: program = "/path/to/it".'
        else:
            how = "Install it, or give its path, which for a file beside the configuration "
            how += f'begins with ./: command = ["./{Path(agent.program).name}", ...].'
        raise ConfigError(
            f"the agent {agent.name} is not here: there is no program {agent.program!r} on the "
            f"PATH. {how}"
        )
    return Path(found).absolute()


def find_installation(agent: Agent) -> Installation:
    """What a sandbox must show of this machine for an agent to run."""
    program = find_program(agent)
    files = list(_chain(program))
    shown = [path for file in files for path in _needed(file)]
    shown += [path for name in agent.installation if (path := Path.home() / name).exists()]
    words = _first_line(files[0])
    runners = [_named(words[0]), *words[1:]] if words and "/" not in words[0] else []
    return Installation(
        command=(*map(str, runners), str(files[0])),
        shown=tuple(dict.fromkeys(shown)),
        path=tuple(dict.fromkeys(file.parent for file in files[1:])),
    )


def _real(program: Path) -> Path:
    """The file behind links; a program of a virtual environment stays in it."""
    return program if _environment(program) else program.resolve()


def _chain(program: Path, depth: int = 0) -> Iterator[Path]:
    """A program, and the programs that its first line says must run it."""
    file = _real(program)
    yield file
    if file != program.resolve():
        yield program.resolve()
    runner = _runner(file)
    if runner is not None and depth < _DEEPEST:
        yield from _chain(runner, depth + 1)


def _runner(file: Path) -> Path | None:
    """The program that runs a script, by its first line."""
    words = _first_line(file)
    found = _named(words[0]) if words else None
    return found if found is not None and found.exists() else None


def _first_line(file: Path) -> list[str]:
    """What the first line of a script says must run it; a bare name is looked for on the PATH."""
    try:
        with file.open("rb") as script:
            first = script.readline(1000)
    except OSError:
        return []
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    return words


def _named(name: str) -> Path:
    """A program by its name or path; a name that is nowhere stays a name."""
    found = shutil.which(name)
    return Path(name) if found is None else _real(Path(found).absolute())


def _needed(file: Path) -> Iterator[Path]:
    """The package, the environment or the prefix that a program belongs to, else itself."""
    modules = [parent for parent in file.parents if parent.name == "node_modules"]
    environment = _environment(file)
    if modules:
        yield modules[-1]
    elif environment is not None:
        # Not as a whole: what must be hidden is looked for in folders of libraries.
        yield from (environment / name for name in ("bin", "lib", "pyvenv.cfg"))
    elif file.parent.name == "bin" and _has_libraries(file.parent.parent / "lib"):
        yield from (file.parent, file.parent.parent / "lib")
    else:
        yield file


def _environment(file: Path) -> Path | None:
    """The virtual environment that a program lies in."""
    home = file.parent.parent
    return home if file.parent.name == "bin" and (home / "pyvenv.cfg").is_file() else None


def _has_libraries(folder: Path) -> bool:
    return any(next(folder.glob(name), None) is not None for name in _LIBRARIES)
