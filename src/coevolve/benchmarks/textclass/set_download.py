"""Download of the published sets: from their repositories, a mirror or a folder."""

import http.client
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from coevolve.benchmarks.textclass.data_sets import data_folder, read_known
from coevolve.benchmarks.textclass.published_sets import (
    LAWBENCH,
    SPLITS,
    KnownSet,
    Source,
    check_bytes,
    law_split,
)
from coevolve.errors import CoevolveError, ConfigError

GONE = (404, 410)
SECONDS = 60
MOST_BYTES = 16_000_000


class FetchError(CoevolveError):
    """Files that could not be fetched or stored."""


class Place(Protocol):
    """A place with files, by relative paths."""

    name: str

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None if the place has no such file."""
        ...


def place(origin: str) -> Place:
    """The folder or server that a user names."""
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
    """A server with files below an address."""

    def __init__(self, address: str) -> None:
        if not address.startswith(("https://", "http://")):
            raise FetchError(f"an address must begin with https:// or http://, got {address!r}.")
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
                raise FetchError(f"{address} returned {error.code} {error.reason}.") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise FetchError(f"cannot fetch {address}: {reason}.") from error
        if len(data) > MOST_BYTES:
            raise FetchError(f"{address} is larger than {MOST_BYTES // 1_000_000} MB.")
        if lacking:
            raise FetchError(f"{address}: the download ended {lacking:,} bytes early.")
        return data


PUBLIC = "https://raw.githubusercontent.com"
"""Serves the files of public repositories at a commit."""

Files = dict[str, bytes]
Offer = Callable[[], Files | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """A stored set: its folder, and its origin, or None if it was already stored."""

    name: str
    folder: Path
    origin: str | None


def get_set(known: KnownSet, *, origin: str | None = None, to: Path | None = None) -> Got:
    """Store the published files of a set in a folder.

    A complete set is not changed. Otherwise all its files are fetched and verified before the
    first one is written.

    Args:
        known: The set.
        origin: A folder, or the address of a mirror; by default the public repositories. Files are
            looked for as `<set>/<split>.jsonl` and at the paths of the repositories.
        to: The folder for sets; by default the one that benchmarks read.

    Raises:
        FetchError: The files cannot be fetched or written.
        ChecksumError: They are not the published files.
    """
    folder = (data_folder() if to is None else to) / known.name
    if is_complete(known, folder):
        return Got(name=known.name, folder=folder, origin=None)
    try:
        where = place(PUBLIC if origin is None else origin)
        files = _fetched(known, where, origin is None)
    except FetchError as error:
        raise FetchError(f"{error} {_help(known)}") from error
    _write(files, folder)
    return Got(name=known.name, folder=folder, origin=where.name)


def is_complete(known: KnownSet, folder: Path) -> bool:
    """Whether a folder has all files of a set as they were published."""
    try:
        read_known(known, folder)
    except ConfigError:
        return False
    return True


def _fetched(known: KnownSet, where: Place, public: bool) -> Files:
    """The verified files of a set from the first of its sources that has them."""
    refused: ConfigError | None = None
    for offer in _offers(known, where, public):
        try:
            files = offer()
            if files is None:
                continue
            for split, data in files.items():
                name = f"{split}.jsonl of {known.name} from {where.name}"
                check_bytes(data, known.checksums[split], name, _help(known))
        except ConfigError as error:
            refused = refused or error
        else:
            return files
    if refused is not None:
        raise refused
    raise FetchError(f"{where.name} does not have all files of the set {known.name}.")


def _offers(known: KnownSet, where: Place, public: bool) -> Iterator[Offer]:
    """Ways to get all files of a set, the most likely first."""
    if not public:
        yield partial(_splits, where, {split: f"{known.name}/{split}.jsonl" for split in SPLITS})
    if known.name == "law":
        for path in _paths(LAWBENCH, public):
            yield partial(_law, where, path)
    for folder in known.folders:
        for path in _paths(folder, public):
            yield partial(_splits, where, {split: f"{path}/{split}.jsonl" for split in SPLITS})


def _paths(source: Source, public: bool) -> tuple[str, ...]:
    """The paths of a source: as on the public server, or as in a clone."""
    return (source.address,) if public else (source.path, source.address)


def _law(where: Place, path: str) -> Files | None:
    data = where.read(path)
    return None if data is None else law_split(data, f"{where.name}/{path}")


def _splits(where: Place, paths: dict[str, str]) -> Files | None:
    files: Files = {}
    for split, path in paths.items():
        data = where.read(path)
        if data is None:
            return None
        files[split] = data
    return files


def _help(known: KnownSet) -> str:
    law = " (or LawBench's data/zero_shot/3-3.json)" if known.name == "law" else ""
    return (
        f"`coevolve data get {known.name} --from FOLDER|URL` copies the files from a folder or "
        f"mirror that has {known.name}/train.jsonl, val.jsonl and test.jsonl{law}."
    )


def _write(files: Files, folder: Path) -> None:
    part: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        part.chmod(0o755)
        for split, data in files.items():
            (part / f"{split}.jsonl").write_bytes(data)
        if folder.exists():
            for file in part.iterdir():
                file.replace(folder / file.name)
        else:
            part.rename(folder)
    except OSError as error:
        raise FetchError(f"cannot write {folder}: {error.strerror}.") from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
