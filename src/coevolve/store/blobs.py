"""Contents by address: files, prepared states, traces, transcripts."""

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

from coevolve.errors import DamageError, InputError
from coevolve.search.candidate import address_of
from coevolve.store.layout import Layout, sync
from coevolve.store.trouble import explained

_HEX = frozenset("0123456789abcdef")


class Blobs:
    """The blobs of a run; a blob is never changed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._numbers = itertools.count()

    def path(self, address: str) -> Path:
        """Where the blob of an address lies, or would lie."""
        if len(address) != 32 or not _HEX.issuperset(address):
            raise InputError(f"an address has 32 hex digits, got {address!r}.")
        return self._layout.blobs / address[:2] / address

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Keep some bytes; a damaged blob of the same address is made good."""
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
            raise _lost(address, path, "is damaged: its bytes are not those of its address")
        return data

    def sync(self, addresses: Iterable[str]) -> None:
        """Wait until blobs and their names are on the disk, to outlive a power cut."""
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
