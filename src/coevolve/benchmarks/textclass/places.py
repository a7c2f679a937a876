"""Where files are fetched from: a folder, or a server by its address."""

import http.client
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Protocol

from coevolve.errors import CoevolveError

GONE = (404, 410)
SECONDS = 60
MOST_BYTES = 16_000_000


class FetchError(CoevolveError):
    """Files that could not be had, or could not be kept."""


class Place(Protocol):
    """A place with files, by relative paths."""

    name: str

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None if the place has no such file."""
        ...


def place(origin: str) -> Place:
    """The place that a user names by a folder or an address."""
    return Server(origin) if "://" in origin else Folder(Path(origin).expanduser())


class Folder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise FetchError(f"there is no folder {path}.")
        self.name = str(path)
        self._path = path

    def read(self, path: str) -> bytes | None:
        file = self._path / path
        if not file.is_file():
            return None
        try:
            return file.read_bytes()
        except OSError as error:
            raise FetchError(f"cannot read {file}: {error.strerror}.") from error


class Server:
    """A server that gives out files below an address."""

    def __init__(self, address: str) -> None:
        if not address.startswith(("https://", "http://")):
            raise FetchError(f"an address begins with https://, got {address!r}.")
        self.name = address.rstrip("/")

    def read(self, path: str) -> bytes | None:
        address = f"{self.name}/{urllib.parse.quote(path)}"
        try:
            with urllib.request.urlopen(address, timeout=SECONDS) as reply:
                data: bytes = reply.read(MOST_BYTES + 1)
                lacking = reply.length
        except urllib.error.HTTPError as error:
            with error:
                if error.code in GONE:
                    return None
                raise FetchError(f"{address} answers {error.code} {error.reason}.") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise FetchError(f"cannot fetch {address}: {reason}.") from error
        if len(data) > MOST_BYTES:
            raise FetchError(f"{address} is larger than {MOST_BYTES // 1_000_000} MB.")
        if lacking:
            raise FetchError(f"{address} broke off, {lacking:,} bytes before its end.")
        return data
