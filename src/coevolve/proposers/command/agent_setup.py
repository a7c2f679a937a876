"""The installation and the environment of an agent."""

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
"""Variables that some networks require."""
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
_SECRET = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
_ASSIGNED = re.compile(r"(?<![\w.-])([\w.-]{1,99})[\"']?\s*[:=]\s*[\"']?([^\s\"',}]+)")
_SHORTEST = 8
_SHORTEST_WRITTEN = 16
_LARGEST = 1 << 20
_LIBRARIES = ("python3*", "node_modules")
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnvironment:
    """The environment of an agent, and the secrets in it and in the files it gets."""

    variables: dict[str, str]
    secrets: tuple[str, ...]


def agent_environment(
    agent: Agent, *, home: str, path: Sequence[Path], keys: Sequence[str] = ()
) -> AgentEnvironment:
    """The whole environment of an agent.

    Args:
        agent: The agent; it names the variables it gets.
        home: The path of its home.
        path: Folders with programs, searched before those of the system.
        keys: Further variables that it gets if they are set.
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
    secrets = [_secret_part(name, value) for name, value in taken.items()]
    files = [text for name in agent.home for text in _written(Path.home() / name)]
    hidden = sorted({s for s in (*secrets, *files) if len(s) >= _SHORTEST}, key=len, reverse=True)
    return AgentEnvironment(variables={**own, **agent.variables, **taken}, secrets=tuple(hidden))


def set_keys(agent: Agent, keys: Sequence[str] = ()) -> tuple[str, ...]:
    """The variables of an agent that hold a secret and are set."""
    return tuple(name for name in secret_names(agent, keys) if os.environ.get(name))


def secret_names(agent: Agent, keys: Sequence[str] = ()) -> tuple[str, ...]:
    """The variables of an agent that would hold a secret."""
    return tuple(n for n in _names(agent, keys) if n not in NETWORK and _SECRET.search(n))


def copy_home(agent: Agent, target: Path) -> None:
    """Copy an agent's credentials and settings into its private home."""
    for name in agent.home:
        source, copy = Path.home() / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore_dangling_symlinks=True, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copy(source, copy)


def _names(agent: Agent, keys: Sequence[str]) -> dict[str, None]:
    return dict.fromkeys([*agent.keys, *keys, *NETWORK])


def _secret_part(name: str, value: str) -> str:
    """The secret in a variable, if any; of the address of a proxy, the user and the password."""
    if "proxy" in name.lower():
        user, mark, _ = value.rpartition("@")
        return user[max(user.find("//"), 0) :] + mark
    return value if _SECRET.search(name) else ""


def _written(file: Path) -> Iterator[str]:
    """The secrets in a settings file: values assigned to names such as `api_key`."""
    if not file.is_file() or file.stat().st_size > _LARGEST:
        return
    for name, value in _ASSIGNED.findall(file.read_text(errors="replace")):
        plain = value.startswith(("{", "[", "/", "http")) or len(value) < _SHORTEST_WRITTEN
        if _SECRET.search(name) and not plain:
            yield value


def certificates(environment: AgentEnvironment) -> list[Path]:
    """Certificate files that the environment names."""
    found = (
        environment.variables.get(name, "") for name in NETWORK if "CERT" in name or "CA" in name
    )
    return [path for name in found if name and (path := Path(name)).is_absolute()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How to start a program, the paths it needs, and the folders of its interpreters.

    `command` contains real files, because a program started through a copied link would not find
    the files next to it. A script that looks for its interpreter on the PATH gets the one that it
    has on this machine.
    """

    command: tuple[str, ...]
    shown: tuple[Path, ...]
    path: tuple[Path, ...]


def find_program(agent: Agent) -> Path:
    """The path of an agent's program: on the PATH, or next to this Python.

    Raises:
        ConfigError: It is not installed; the message says how to install it.
    """
    beside = str(Path(sys.executable).parent)
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), beside])
    found = shutil.which(os.path.expanduser(agent.program), path=places)  # noqa: PTH111
    if found is None:
        if agent.install:
            how = f'Install it ({agent.install}), or set its path: program = "/path/to/it".'
        else:
            how = "Install it, or set its path; for a file next to the configuration: "
            how += f'command = ["./{Path(agent.program).name}", ...].'
        raise ConfigError(
            f"the agent {agent.name} is not installed: there is no program {agent.program!r} on "
            f"the PATH. {how}"
        )
    return Path(found).absolute()


def find_installation(agent: Agent) -> Installation:
    """The parts of this machine that an agent needs to run."""
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
    """A program, and the interpreters that its first line names."""
    file = _real(program)
    yield file
    if file != program.resolve():
        yield program.resolve()
    runner = _runner(file)
    if runner is not None and depth < _DEEPEST:
        yield from _chain(runner, depth + 1)


def _runner(file: Path) -> Path | None:
    """The interpreter of a script, from its first line."""
    words = _first_line(file)
    found = _named(words[0]) if words else None
    return found if found is not None and found.exists() else None


def _first_line(file: Path) -> list[str]:
    """The interpreter and arguments in the first line of a script."""
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
    """A program by its name or path; a name that is not found is returned unchanged."""
    found = shutil.which(name)
    return Path(name) if found is None else _real(Path(found).absolute())


def _needed(file: Path) -> Iterator[Path]:
    """The package, the environment or the prefix that a program belongs to, else itself."""
    modules = [parent for parent in file.parents if parent.name == "node_modules"]
    environment = _environment(file)
    if modules:
        yield modules[-1]
    elif environment is not None:
        # Not as a whole, because folders to hide are looked for in library folders.
        yield from (environment / name for name in ("bin", "lib", "pyvenv.cfg"))
    elif file.parent.name == "bin" and _has_libraries(file.parent.parent / "lib"):
        yield from (file.parent, file.parent.parent / "lib")
    else:
        yield file


def _environment(file: Path) -> Path | None:
    """The virtual environment that contains a program."""
    home = file.parent.parent
    return home if file.parent.name == "bin" and (home / "pyvenv.cfg").is_file() else None


def _has_libraries(folder: Path) -> bool:
    return any(next(folder.glob(name), None) is not None for name in _LIBRARIES)
