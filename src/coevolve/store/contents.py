"""Blobs, which are contents by address, and folders with the files of candidates."""

import itertools
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from coevolve.errors import DamageError, InputError
from coevolve.search.candidate import Candidate, address_of
from coevolve.store.layout import Layout, explained, sync

_HEX = frozenset("0123456789abcdef")


class Blobs:
    """The blobs of a run; a blob is never changed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._numbers = itertools.count()

    def path(self, address: str) -> Path:
        """The path of a blob, whether it exists or not."""
        if len(address) != 32 or not _HEX.issuperset(address):
            raise InputError(f"an address must have 32 hex digits, got {address!r}.")
        return self._layout.blobs / address[:2] / address

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Store some bytes; a damaged blob of the same address is replaced."""
        address = address_of(data)
        path = self.path(address)
        with explained(path):
            if not (path.is_file() and path.read_bytes() == data):
                self._write(path, data)
            if durable:
                self.sync([address])
        return address

    def get(self, address: str) -> bytes:
        """The bytes of an address, checked."""
        path = self.path(address)
        with explained(path):
            if not path.exists():
                raise _lost(address, path, "is missing")
            data = path.read_bytes()
        if address_of(data) != address:
            raise _lost(address, path, "is damaged: its bytes do not match its address")
        return data

    def sync(self, addresses: Iterable[str]) -> None:
        """Wait until blobs and their names are on the disk, to survive a power cut."""
        paths = [self.path(address) for address in addresses]
        folders = {path.parent for path in paths} | {self._layout.blobs, self._layout.folder}
        for path in (*paths, *folders):
            sync(path)

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._layout.unfinished / f"blob-{os.getpid()}-{next(self._numbers)}"
        unfinished.parent.mkdir(exist_ok=True)
        try:
            with unfinished.open("xb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), 0o444)
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def _lost(address: str, path: Path, what: str) -> DamageError:
    return DamageError(f"blob {address} {what} ({path}). Restore it from a copy of the run.")


class Checkouts:
    """Candidates as folders, each checked when a session first uses it.

    The files are read-only as a reminder; their owner can change that. A folder that was changed
    is moved aside and created again.
    """

    def __init__(self, layout: Layout, blobs: Blobs) -> None:
        self._layout = layout
        self._blobs = blobs
        self._checked: set[str] = set()
        self._numbers = itertools.count()

    def path(self, candidate: Candidate) -> Path:
        """The path of the folder of a candidate, whether it exists or not."""
        return self._layout.candidates / candidate.address

    def intact(self, candidate: Candidate) -> bool:
        """Whether the folder exists and has exactly the files of the candidate."""
        path = self.path(candidate)
        if candidate.address in self._checked:
            return path.is_dir()
        with explained(path):
            good = self._holds(path, candidate)
        if good:
            self._checked.add(candidate.address)
        return good

    def make(self, candidate: Candidate) -> Path:
        """The folder of a candidate, created unless it is intact."""
        path = self.path(candidate)
        if not self.intact(candidate):
            with explained(path):
                self._renew(path, candidate)
            self._checked.add(candidate.address)
        return path

    def _holds(self, path: Path, candidate: Candidate) -> bool:
        if path.is_symlink() or not path.is_dir():
            return False
        if _listing(path) != (_folders(candidate), set(candidate.files)):
            return False
        return all(self._same(path / name, a) for name, a in candidate.files.items())

    def _same(self, path: Path, address: str) -> bool:
        """Whether a file has the bytes of an address; a changed file may be too large to read."""
        blob = self._blobs.path(address)
        if blob.exists() and blob.stat().st_size != path.stat().st_size:
            return False
        return address_of(path.read_bytes()) == address

    def _renew(self, path: Path, candidate: Candidate) -> None:
        fresh = self._aside("checkout")
        try:
            _make_folders(fresh, candidate)
            for name, address in candidate.files.items():
                _write(fresh / name, self._blobs.get(address))
            # A run cannot continue without the files, and trials cost money.
            self._blobs.sync(candidate.files.values())
            path.parent.mkdir(exist_ok=True)
            if path.is_symlink() or path.exists():
                path.rename(self._aside("changed"))
            fresh.rename(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _aside(self, what: str) -> Path:
        self._layout.unfinished.mkdir(exist_ok=True)
        return self._layout.unfinished / f"{what}-{os.getpid()}-{next(self._numbers)}"


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o444)


def _make_folders(top: Path, candidate: Candidate) -> None:
    """Create all folders of a candidate, with the same mode under any umask."""
    for folder in sorted(_folders(candidate)):
        (top / folder).mkdir()
        (top / folder).chmod(0o755)


def _folders(candidate: Candidate) -> set[str]:
    return {str(parent) for name in candidate.files for parent in PurePosixPath(name).parents}


def _listing(top: Path) -> tuple[set[str], set[str]] | None:
    """Folders and regular files below a folder; None if there is anything else."""
    folders, files = {"."}, set()
    for root, below, names in os.walk(top):
        for name in (*below, *names):
            path = Path(root) / name
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                folders.add(path.relative_to(top).as_posix())
            elif stat.S_ISREG(mode):
                files.add(path.relative_to(top).as_posix())
            else:
                return None
    return folders, files
