"""Answers by the key of their request, in one SQLite file that processes may share.

It has one table, `replies(key, reply, seal)`; a row is never changed. The seal is a hash of the
other two, because SQLite does not detect all damage. The file is in WAL mode, so readers never
wait; that needs a local disk.
"""

import json
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Self

from coevolve.errors import StoreError
from coevolve.models.provider import ModelReply, canonical


def cache_folder() -> Path:
    """The folder for downloads and answers that all projects share.

    It is `$COEVOLVE_CACHE`, or `coevolve` in `$XDG_CACHE_HOME` or `~/.cache`. It may not exist.
    """
    own = os.environ.get("COEVOLVE_CACHE")
    if own:
        return Path(own).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "coevolve"


APPLICATION = 0x436F4361
VERSION = 1
PATIENCE = 30.0
"""Seconds to wait while another process writes."""

_TABLE = """
CREATE TABLE replies (
    key BLOB PRIMARY KEY NOT NULL, reply BLOB NOT NULL, seal BLOB NOT NULL
) WITHOUT ROWID
"""
_READONLY = "it cannot be written. Make it writable for this user, or choose another cache"
_TROUBLE = {
    sqlite3.SQLITE_FULL: "the disk is full. Free some disk space and resume the run",
    sqlite3.SQLITE_BUSY: "another program has locked it. Close that program and resume the run",
    sqlite3.SQLITE_READONLY: _READONLY,
    sqlite3.SQLITE_CANTOPEN: _READONLY,
    sqlite3.SQLITE_PERM: _READONLY,
    sqlite3.SQLITE_IOERR: "the disk failed. Check the disk, then resume the run",
}


class CacheError(StoreError):
    """The cache cannot be used; the message says why and what to do."""


class ResponseCache:
    """Replies by key; threads and processes may share it.

    Args:
        path: The file; it is created, with its folder, if it does not exist.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ResponseCache(Path(folder) / "cache.db") as cache:
    ...         cache.put("ab12", ModelReply(text="yes", finish="stop", tokens_in=9, tokens_out=1))
    ...         reply, nothing = cache.get("ab12"), cache.get("cd34")
    >>> reply and reply.text, nothing
    ('yes', None)
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._using = threading.Lock()
        with self._explained():
            if not self.path.exists():
                self._make()
            self._connection = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        try:
            with self._explained():
                self._check()
                self._connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            self._connection.close()
            raise

    def get(self, key: str) -> ModelReply | None:
        """The reply at a key, if there is one."""
        query = "SELECT reply, seal FROM replies WHERE key = ?"
        with self._explained(), self._using:
            row = self._connection.execute(query, (bytes.fromhex(key),)).fetchone()
        if row is None:
            return None
        reply, seal = row
        if not isinstance(reply, bytes) or seal != _seal(key, reply):
            raise self._damaged(f"the reply at {key[:12]} has changed")
        try:
            return ModelReply.from_json(json.loads(reply))
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"the reply at {key[:12]} cannot be read") from error

    def put(self, key: str, reply: ModelReply) -> None:
        """Store a reply, unless the key has one already."""
        content = canonical(reply.to_json()).encode()
        row = (bytes.fromhex(key), content, _seal(key, content))
        insert = "INSERT INTO replies VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING"
        with self._explained(), self._using:
            self._connection.execute(insert, row)

    def __len__(self) -> int:
        with self._explained(), self._using:
            [count] = self._connection.execute("SELECT count(*) FROM replies").fetchone()
        return int(count)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _make(self) -> None:
        """Create an empty cache; it is renamed to its name when it is complete."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise CacheError(  # SQLite would write its contents into the new file
                f"{log} is the log of a cache that is missing. Restore {self.path.name}, or "
                "delete the log."
            )
        with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
            fresh = Path(folder) / "cache.db"
            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={VERSION}")
                connection.execute(_TABLE)
                connection.execute("PRAGMA journal_mode=WAL")
            try:
                os.link(fresh, self.path)
            except FileExistsError:
                return  # another process was faster

    def _check(self) -> None:
        [application] = self._connection.execute("PRAGMA application_id").fetchone()
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise CacheError(
                f"{self.path} is not a cache of coevolve (application id {application:#x}). "
                "Choose another file."
            )
        if version != VERSION:
            raise CacheError(
                f"{self.path} was written by another version of coevolve (cache version "
                f"{version}; this one reads {VERSION}). Choose another file."
            )
        self._connection.execute("SELECT key, reply, seal FROM replies LIMIT 1").fetchone()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise CacheError(f"the cache {self.path} cannot be used: {why}.") from error
        except UnicodeDecodeError as error:  # in a message of SQLite that quotes the file
            raise self._damaged("its tables cannot be read") from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:  # an error in this program, such as a closed cache
                raise
            if code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF not in _TROUBLE:
                raise self._damaged(str(error)) from error
            why = f"{_TROUBLE[code & 0xFF]} ({error})"
            raise CacheError(f"the cache {self.path} cannot be used: {why}.") from error

    def _damaged(self, what: str) -> CacheError:
        return CacheError(
            f"the cache {self.path} is damaged: {what}. Move it and its -wal and -shm files away "
            "and resume the run. No outcome is lost; missing answers are requested again."
        )


def _seal(key: str, reply: bytes) -> bytes:
    return blake2b(key.encode() + reply, digest_size=8).digest()
