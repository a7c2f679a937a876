"""What the sandbox of an agent shows of this machine, and what it hides, as mounts of bwrap."""

import sys
from collections.abc import Sequence
from pathlib import Path

from coevolve.executors.isolation.hiding import masked
from coevolve.executors.isolation.system import links, system_paths
from coevolve.proposers.command.installation import Installation

EMPTY = ("--perms", "0755", "--size", "4096", "--tmpfs")
_PRIVATE = tuple(map(Path, ("/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private")))
"""Keys of this machine, beside the certificates that an agent needs."""


def shown_paths(installation: Installation | None, readable: Sequence[Path]) -> list[Path]:
    """Everything that is visible, outer folders first, since inner ones are put into them.

    Candidates run under this Python, with its packages, and an agent may want to try them.
    """
    own = () if installation is None else installation.shown
    python = (Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg")
    paths = {*system_paths(network=True), *own, *python, *(p.absolute() for p in readable)}
    return sorted(path for path in paths if path.exists())


def system_mounts(shown: Sequence[Path]) -> list[str]:
    """Shows some paths, each where it is, to be read alone."""
    options: list[str] = []
    for target, link in links():
        options += ["--symlink", target, link]
    tops = {link for _, link in links()}
    for path in shown:
        if f"/{path.parts[1]}" not in tops:
            options += mount_at("--ro-bind", path.resolve(), path)
    return options


def hiding_mounts(shown: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """Hides some paths wherever they lie in what is shown, and private keys of this machine."""
    options: list[str] = []
    for folder in masked([path.resolve() for path in shown], (*_PRIVATE, *hidden)):
        for place in map(str, _visible(folder, shown)):
            options += [*EMPTY, place, "--remount-ro", place]
    for file in (path.resolve() for path in hidden if path.is_file()):
        for place in map(str, _visible(file, shown)):
            options += ["--ro-bind", "/dev/null", place]
    return options


def in_memory(place: str, size: int) -> tuple[str, ...]:
    """A folder in memory for everybody, of a limited size."""
    return "--perms", "1777", "--size", str(size), "--tmpfs", place


def mount_at(option: str, source: Path, target: Path) -> list[str]:
    """A mount at a path whose parents everybody may pass; bwrap alone makes them private."""
    options: list[str] = []
    for parent in reversed(target.parents[:-1]):
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, option, str(source), str(target)]


def _visible(path: Path, shown: Sequence[Path]) -> list[Path]:
    """Where a file or folder of this machine can be seen inside."""
    real = [(place, place.resolve()) for place in shown]
    return [p / path.relative_to(source) for p, source in real if path.is_relative_to(source)]
