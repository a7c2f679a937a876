"""What an agent finds around it: a clean environment, a private home; and what stays secret."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coevolve.executors.isolation.system import interpreter
from coevolve.proposers.command.agent import Agent

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
