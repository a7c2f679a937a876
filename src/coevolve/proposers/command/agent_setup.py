"""Where an agent is installed, and the environment it starts with."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import ConfigError
from coevolve.executors.isolation.system_paths import interpreter
from coevolve.proposers.command.agents import Agent

NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
"""Variables without which some networks cannot be reached."""
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
_SECRET = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
_ASSIGNED = re.compile(r"(?<![\w.-])([\w.-]{1,99})[\"']?\s*[:=]\s*[\"']?([^\s\"',}]+)")
_SHORTEST = 8
_SHORTEST_WRITTEN = 16
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The environment of an agent, and the texts in it and in its files that nobody may see."""

    variables: dict[str, str]
    secrets: tuple[str, ...]


def surroundings(
    agent: Agent, *, home: str, path: Sequence[Path], keys: Sequence[str] = ()
) -> Surroundings:
    """The whole environment for an agent.

    Args:
        agent: Names the variables that it gets.
        home: Its home, at the path where it sees it.
        path: Where it looks for programs before those of the system.
        keys: Further variables of ours that it gets, where they are set.
    """
    taken = {name: os.environ[name] for name in _names(agent, keys) if os.environ.get(name)}
    folders = dict.fromkeys([*map(str, path), str(interpreter().parent), *_SYSTEM])
    own = {
        "PATH": os.pathsep.join(folders),
        "HOME": home,
        "USER": "agent",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
    }
    secrets = [value for name, value in taken.items() if _is_secret(name, value)]
    files = [text for name in agent.home for text in _written(Path.home() / name)]
    hidden = sorted({s for s in (*secrets, *files) if len(s) >= _SHORTEST}, key=len, reverse=True)
    return Surroundings(variables={**own, **agent.variables, **taken}, secrets=tuple(hidden))


def set_keys(agent: Agent, keys: Sequence[str] = ()) -> tuple[str, ...]:
    """The variables of an agent that hold a secret and are set."""
    return tuple(name for name in secret_names(agent, keys) if os.environ.get(name))


def secret_names(agent: Agent, keys: Sequence[str] = ()) -> tuple[str, ...]:
    """The variables of an agent that would hold a secret."""
    return tuple(n for n in _names(agent, keys) if n not in NETWORK and _SECRET.search(n))


def copy_home(agent: Agent, target: Path) -> None:
    """Put copies of an agent's credentials and settings into a folder of its own."""
    for name in agent.home:
        source, copy = Path.home() / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore_dangling_symlinks=True, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copy(source, copy)


def _names(agent: Agent, keys: Sequence[str]) -> dict[str, None]:
    return dict.fromkeys([*agent.keys, *keys, *NETWORK])


def _is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a key; the address of a proxy is none unless it has a password."""
    return "@" in value if "proxy" in name.lower() else _SECRET.search(name) is not None


def _written(file: Path) -> Iterator[str]:
    """The secrets in a file of settings: what is assigned to a name that says so."""
    if not file.is_file() or file.stat().st_size > _LARGEST:
        return
    for name, value in _ASSIGNED.findall(file.read_text(errors="replace")):
        plain = value.startswith(("{", "[", "/", "http")) or len(value) < _SHORTEST_WRITTEN
        if _SECRET.search(name) and not plain:
            yield value


def certificates(around: Surroundings) -> list[Path]:
    """Files of certificates that the environment names."""
    found = (around.variables.get(name, "") for name in NETWORK if "CERT" in name or "CA" in name)
    return [path for name in found if name and (path := Path(name)).is_absolute()]


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
