"""Files and users inside the namespaces of a task environment.

This runs in `namespace_keeper` with the files of the task at `/` and the powers of its root. It
uses the standard library only, and nothing that asks the C library for users.
"""

import contextlib
import os
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from coevolve.benchmarks.harbor.kernel_calls import KeeperError

_PIECE = 1 << 20
_LONGEST_TABLE = 1 << 22
_LAST_ID = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user of the task's root folder."""

    uid: int
    gid: int
    home: str = "/"
    groups: list[int] = field(default_factory=list)


def find_user(wanted: str | int | None) -> User:
    """The user with a name, a number or `user:group`; root for None."""
    name, _, group = str("0" if wanted is None else wanted).partition(":")
    rows = _table("/etc/passwd", 7)
    row = next((row for row in rows if name in (row[0], row[2])), None)
    if row is None and not name.isdigit():
        raise KeeperError(f"unable to find user {name}: no matching entries in passwd file")
    uid = _id(row[2] if row else name)
    home = (row[5] if row else "") or "/"
    gid = _id(row[3]) if row else 0
    groups = []
    if group:
        gid = find_group(group)
    elif row:
        listed = (line for line in _table("/etc/group", 4) if row[0] in line[3].split(","))
        groups = sorted({gid, *(_id(line[2]) for line in listed)})
    return User(uid=uid, gid=gid, home=home, groups=groups)


def find_group(name: str) -> int:
    """The number of a group."""
    row = next((row for row in _table("/etc/group", 4) if name in (row[0], row[2])), None)
    if row is None and not name.isdigit():
        raise KeeperError(f"unable to find group {name}: no matching entries in group file")
    return _id(row[2] if row else name)


def _id(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= _LAST_ID:
        return int(text)
    raise KeeperError(f"the id {text[:20]!r} is not a number up to {_LAST_ID}")


def _table(path: str, columns: int) -> list[list[str]]:
    with contextlib.suppress(OSError), _opened(path) as file:
        text = file.read(_LONGEST_TABLE).decode(errors="replace")
        rows = (line.split(":") for line in text.splitlines())
        return [row for row in rows if len(row) == columns]
    return []


def _opened(path: str) -> BinaryIO:
    """A regular file, open for reading; no pipe that blocks, no device."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise KeeperError(f"{path} is not a regular file")
    return os.fdopen(fd, "rb")


def pack(request: dict[str, Any], out: int) -> None:
    """Write a file, or the regular files and folders in a folder, to an archive.

    Links, pipes and devices in a folder are left out: what they mean is different outside.
    """
    path, limit = request["path"], request["limit"]
    with os.fdopen(os.dup(out), "wb") as stream:
        archive = tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT)  # noqa: SIM115
        if not request["folder"]:
            try:
                source = _opened(path)
            except OSError as error:
                raise KeeperError(f"{path} cannot be read: {error.strerror}") from error
            with source:
                _add_file(archive, "file", source, limit)
            archive.close()
            return
        if not Path(path).is_dir():
            raise KeeperError(f"{path} is not a folder in the environment")
        left = _add_folder(archive, path, limit)
        if left < 0:
            os.write(2, f"some files in {path} were left out: {_too_large(limit)}".encode())
        archive.close()


def _add_folder(archive: tarfile.TarFile, path: str, limit: int) -> int:
    """Add what fits; how many bytes are left of the limit, below 0 if something did not fit."""
    left, complete = limit, True
    for folder, _, names in os.walk(path):
        inner = os.path.relpath(folder, path)
        if inner != ".":
            info = tarfile.TarInfo(inner)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        for name in ("", *names):
            left -= tarfile.BLOCKSIZE
            if left < 0:
                return left
            full = os.path.join(folder, name)  # noqa: PTH118
            # A task may remove files meanwhile; names that are too long for a path stay away.
            with contextlib.suppress(OSError):
                facts = os.lstat(full)
                if stat.S_ISREG(facts.st_mode) and facts.st_size > left:
                    complete = False
                elif stat.S_ISREG(facts.st_mode):
                    with _opened(full) as file:
                        left -= _add_file(archive, os.path.normpath(f"{inner}/{name}"), file, left)
    return left if complete else -1


def _too_large(limit: int) -> str:
    return f"the limit is {limit >> 20} MB"


def _add_file(archive: tarfile.TarFile, name: str, file: BinaryIO, limit: int) -> int:
    facts = os.fstat(file.fileno())
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = stat.S_IMODE(facts.st_mode) & 0o777, int(facts.st_mtime)
    info.size = facts.st_size
    if info.size > limit:
        raise KeeperError(f"the file {name} is too large: {_too_large(limit)}")
    archive.addfile(info, _Padded(file))  # type: ignore[arg-type]
    return info.size


class _Padded:
    """A file that never ends early, because a task may shorten it meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return self._file.read(size).ljust(size, b"\0")


def unpack(request: dict[str, Any], source: int) -> None:
    """Write the files of an archive, as root, below a folder or as one file."""
    target = request["path"]
    owner = find_user(request["owner"])
    with os.fdopen(os.dup(source), "rb") as stream:
        stream.seek(0)
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            if not request["folder"] and (target.endswith("/") or Path(target).is_dir()):
                target = str(PurePosixPath(target, request["name"]))
            top = Path(target if request["folder"] else PurePosixPath(target).parent)
            _make_folders(top, owner)
            for member in archive:
                place = top / member.name if request["folder"] else Path(target)
                mode = request["mode"] if request["mode"] is not None else member.mode
                _place(archive, member, place, top, owner, mode)


def _make_folders(path: Path, owner: User) -> None:
    if not path.is_dir():
        _make_folders(path.parent, owner)
        path.mkdir()
        os.chown(path, owner.uid, owner.gid)


def _place(
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    place: Path,
    top: Path,
    owner: User,
    mode: int,
) -> None:
    if member.isdir():
        _make_folders(place, owner)
        if member.name != ".":
            place.chmod(member.mode)
        return
    _make_folders(place.parent, owner)
    with contextlib.suppress(FileNotFoundError):
        place.unlink()
    if member.islnk():
        place.hardlink_to(top / member.linkname)
        return
    if member.issym():
        place.symlink_to(member.linkname)
        os.lchown(place, owner.uid, owner.gid)
        return
    content = archive.extractfile(member)
    if content is None:
        raise KeeperError(f"{member.name} is neither a file, a folder nor a link")
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        while piece := content.read(_PIECE):
            file.write(piece)
        os.fchown(fd, owner.uid, owner.gid)
        os.fchmod(fd, mode)
        os.utime(fd, (member.mtime, member.mtime))
