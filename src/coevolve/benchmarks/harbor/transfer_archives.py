"""Archives with files of a task environment, on the side of this machine; they are not trusted."""

import os
import shutil
import stat
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from coevolve.errors import CoevolveError


class NamespaceError(CoevolveError):
    """A task environment could not be made, or has ended."""


class TransferError(NamespaceError):
    """Files could not be copied into or out of an environment."""


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A member of an upload; pipes and devices are left out."""
    return None if member.isdev() or member.isfifo() else member


def extract_file(file: IO[bytes], target: Path) -> None:
    """Write the one file of an archive."""
    with tarfile.open(fileobj=file, mode="r|") as archive:
        member = archive.next()
        content = archive.extractfile(member) if member is not None and member.isreg() else None
        if member is None or content is None:
            raise TransferError(f"the environment sent no file for {target}.")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(content, target, member.mode)


def extract_folder(
    file: IO[bytes], target: Path, limit: int, *, links: Literal["refuse", "skip"] = "refuse"
) -> None:
    """Write regular files and folders below the target. The archive is not trusted.

    Args:
        file: The archive.
        target: The folder.
        limit: The most bytes to write.
        links: What to do with links, pipes and devices in it. They are never written.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            known = member.isreg() or member.isdir()
            if not known and links == "skip":
                continue
            if name.is_absolute() or ".." in name.parts or not known:
                raise TransferError(f"the environment sent {member.name!r}, which is refused.")
            limit -= member.size
            if limit < 0:
                raise TransferError("the environment sent more than the limit.")
            place = target / name
            _refuse_links(target, place)
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            if content is not None:
                _write(content, place, member.mode)


def _refuse_links(top: Path, place: Path) -> None:
    """No folder on the way to a file may be a link out of the target."""
    for folder in place.relative_to(top).parents:
        if (top / folder).is_symlink() and str(folder) != ".":
            raise TransferError(f"{top / folder} is a link; files are not written through links.")


def _write(content: IO[bytes], place: Path, mode: int) -> None:
    if place.is_symlink() or place.exists():
        place.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags, stat.S_IRUSR | stat.S_IWUSR), "wb") as file:
        shutil.copyfileobj(content, file)
        os.fchmod(file.fileno(), (mode & 0o777) | 0o600)
