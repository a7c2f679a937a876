"""Root folders for task environments: what is at `/` before a task adds its own files.

A root is a folder `NAME` in `$COEVOLVE_CACHE/harbor/roots` with the files in `root` and a
description in `root.json`. Environments share it read-only.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from coevolve.benchmarks.harbor.task_namespace import PATH, Tree
from coevolve.errors import InputError
from coevolve.models.response_cache import cache_folder

HOST = "host"
"""The root made of the machine's own programs."""

_FORMAT = 1
_DESCRIPTION = "root.json"
_HOST_PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_HOST_PACKAGES = "var/lib/dpkg"
_HOST_ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf"),
    *("debian_version", "default", "deluser.conf", "adduser.conf", "dpkg", "environment"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "login.defs"),
    *("lsb-release", "mime.types", "nsswitch.conf", "os-release", "pam.conf", "pam.d"),
    *("profile", "profile.d", "protocols", "python3", "python3.11", "python3.12"),
    *("python3.13", "security", "services", "shells", "skel", "ssl", "terminfo"),
    "timezone",
)
_MODES = {"root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777, "run": 0o755}
_EMPTY = (
    *("dev", "proc", "sys", "home", "mnt", "media", "opt", "srv", "boot", "root", "tmp", "run"),
    *("var/tmp", "var/log", "var/cache/apt/archives/partial", "var/lib/apt/lists/partial"),
    *("var/lib/misc", "var/mail", "var/spool", "run/lock", "etc/apt/apt.conf.d", "etc/opt"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootFolder:
    """A prepared root.

    Args:
        name: What it is called.
        files: The folder that is `/`.
        identity: Changes whenever the root is created again.
        env: Variables of each command.
        parts: Folders of this machine that are in it, by their place.
    """

    name: str
    files: Path
    identity: str
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH, "LANG": "C.UTF-8"})
    parts: Mapping[str, str] = field(default_factory=dict)

    def trees(self) -> tuple[Tree, ...]:
        """The parts of an environment's root."""
        inner = (Tree(base=Path(base), at=at) for at, base in sorted(self.parts.items()))
        return (Tree(base=self.files), *inner)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """A root in its folder.

        Raises:
            InputError: It is not there.
        """
        path = folder / _DESCRIPTION
        try:
            facts = json.loads(path.read_text())
        except FileNotFoundError:
            raise InputError(
                f"there is no root {folder.name!r} in {folder.parent}. "
                f"Prepare it with: coevolve harbor prepare {folder.name}"
            ) from None
        return cls(
            name=folder.name,
            files=folder / "root",
            identity=facts["identity"],
            env=facts["env"],
            parts=facts["parts"],
        )


def roots_folder() -> Path:
    """Where roots are kept."""
    return cache_folder() / "harbor" / "roots"


@contextmanager
def building(folder: Path) -> Iterator[Path | None]:
    """A temporary folder to fill, which becomes `folder` at the end; None if that is there.

    Of several processes one builds, and the others wait. After an error nothing is left.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            yield None
            return
        made = folder.parent / f".{folder.name}.part"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        try:
            yield made
            made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes have left of their builds in a folder."""
    for made in folder.glob(".*.part"):
        with made.with_suffix(".lock").open("w") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(made, ignore_errors=True)


def describe(
    folder: Path, *, env: Mapping[str, str] | None = None, parts: Mapping[str, str] | None = None
) -> None:
    """Write the description of a root that is being made."""
    facts = {
        "identity": hashlib.sha256(os.urandom(16)).hexdigest()[:16],
        "format": _FORMAT,
        "env": {"PATH": PATH, "LANG": "C.UTF-8", **(env or {})},
        "parts": dict(parts or {}),
    }
    (folder / _DESCRIPTION).write_text(json.dumps(facts, indent=1))


def host_root(folder: Path | None = None) -> RootFolder:
    """The root with this machine's own programs, created if it is missing.

    It shares `/usr` and the list of installed packages, both read-only, and has a small `/etc` of
    its own. Files outside `/usr`, users and passwords of the machine are not in it. It is for
    tests and for tasks that need nothing special.
    """
    target = (folder or roots_folder()) / HOST
    with building(target) as made:
        if made is not None:
            root = made / "root"
            root.mkdir(mode=0o755)
            parts = _share_programs(root)
            _copy_settings(root)
            _make_empty_folders(root)
            (root / _HOST_PACKAGES).mkdir(parents=True, exist_ok=True)
            if (package_list := Path("/", _HOST_PACKAGES)).is_dir():
                parts[_HOST_PACKAGES] = str(package_list)
            describe(made, parts=parts)
    return RootFolder.read(target)


def _share_programs(root: Path) -> dict[str, str]:
    parts: dict[str, str] = {}
    for name in _HOST_PROGRAMS:
        source = Path("/", name)
        if source.is_symlink():
            (root / name).symlink_to(source.readlink())
        elif source.is_dir():
            (root / name).mkdir(mode=0o755)
            parts[name] = str(source)
    return parts


def _copy_settings(root: Path) -> None:
    etc = root / "etc"
    etc.mkdir(mode=0o755)
    for name in _HOST_ETC:
        source = Path("/etc", name)
        if source.is_symlink():
            (etc / name).symlink_to(source.readlink())
        elif source.is_dir():
            shutil.copytree(source, etc / name, symlinks=True, ignore=_secret)
        elif source.is_file():
            shutil.copy2(source, etc / name)
    defaults = Path("/usr/share/base-passwd")
    for name in ("passwd", "group"):
        master = defaults / f"{name}.master"
        text = master.read_text() if master.exists() else _USERS[name]
        (etc / name).write_text(text.replace(":*:", ":x:"))
    names = (line.partition(":")[0] for line in (etc / "passwd").read_text().splitlines())
    (etc / "shadow").write_text("".join(f"{name}:*:19000:0:99999:7:::\n" for name in names))
    (etc / "shadow").chmod(0o640)
    (etc / "apt" / "preferences.d").mkdir(parents=True)
    (etc / "apt" / "trusted.gpg.d").mkdir()


_USERS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/nonexistent:/bin/false\n",
    "group": "root:x:0:\nmail:x:8:\ntty:x:5:\nnogroup:x:65534:\n",
}


def _secret(folder: str, names: list[str]) -> list[str]:
    """Leave out files that only root may read, pipes and sockets."""
    return [name for name in names if not _public(Path(folder, name))]


def _public(path: Path) -> bool:
    mode = path.lstat().st_mode
    readable = bool(mode & stat.S_IROTH)
    return stat.S_ISLNK(mode) or (readable and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)))


def _make_empty_folders(root: Path) -> None:
    for name in _EMPTY:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, mode in _MODES.items():
        (root / name).chmod(mode)
    for name, target in (("var/run", "/run"), ("var/lock", "/run/lock")):
        (root / name).symlink_to(target)


def find_root(image: str, *, chosen: str | None, more: Mapping[str, str]) -> RootFolder:
    """The root for a base image.

    Args:
        image: The base image of a task, such as `debian:bookworm-slim`.
        chosen: The name or the folder of a root for every image.
        more: Names or folders of roots by image, beside the known ones.

    Raises:
        InputError: There is no root for the image.
    """
    name = chosen or more.get(image) or root_name(image)
    if name is None:
        raise InputError(
            f"cannot be built: there is no root for the image {image!r}. Prepare one from an "
            "exported container: coevolve harbor prepare NAME --from FILE, and name it in "
            f'`roots = {{"{image}" = "NAME"}}`'
        )
    if name == HOST:
        return host_root()
    if "/" in name:
        return _given_folder(Path(name).expanduser())
    return RootFolder.read(roots_folder() / name)


def _given_folder(folder: Path) -> RootFolder:
    """A folder of the user: a prepared root, or the files of one."""
    if (folder / _DESCRIPTION).exists():
        return RootFolder.read(folder)
    if not (folder / "bin").exists():
        raise InputError(f"{folder} is not a root: it has no bin. Name the folder that is `/`.")
    facts = folder.stat()
    stamp = f"{folder.resolve()}\0{facts.st_ino}\0{facts.st_ctime_ns}"
    identity = hashlib.sha256(stamp.encode()).hexdigest()[:16]
    return RootFolder(name=folder.name, files=folder, identity=identity)


def root_name(image: str) -> str | None:
    """The name of the root that stands for an image; None for an unknown image.

    >>> root_name("python:3.13-slim-bookworm"), root_name("ubuntu:24.04"), root_name("redis")
    ('python-3.13-bookworm', 'ubuntu-noble', None)
    """
    plain = image.partition("@")[0].removeprefix("docker.io/").removeprefix("library/")
    name, _, tag = plain.partition(":")
    tag = tag or "latest"
    for pattern, root in _IMAGES.get(name, ()):
        if found := re.fullmatch(pattern, tag):
            return root.format(*found.groups())
    return None


_IMAGES = {
    "debian": (
        (r"(?:bookworm|12(?:\.\d+)?)(?:-\d+)?(?:-slim)?", "debian-bookworm"),
        (r"(?:trixie|13(?:\.\d+)?|latest|stable)(?:-\d+)?(?:-slim)?", "debian-trixie"),
        (r"(?:bullseye|11(?:\.\d+)?)(?:-\d+)?(?:-slim)?", "debian-bullseye"),
    ),
    "ubuntu": (
        (r"24\.04|noble(?:-\d+)?|latest", "ubuntu-noble"),
        (r"22\.04|jammy(?:-\d+)?", "ubuntu-jammy"),
    ),
    "python": (
        (r"(3\.\d+)(?:\.\d+)?(?:-slim)?(?:-bookworm)?", "python-{}-bookworm"),
        (r"(3\.\d+)(?:\.\d+)?(?:-slim)?-trixie", "python-{}-trixie"),
    ),
}
"""Tags of images, as patterns, and the roots that stand for them."""
