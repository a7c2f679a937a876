"""Short runs, copies of them as a crash would leave them, and processes to kill."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from coevolve.core.events import Event
from coevolve.errors import DamageError
from coevolve.store import RunStore

COUNT = 150
"""Events of the runs to damage."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: these tests open and close hundreds of runs."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def noted(*texts: Any) -> list[tuple[str, dict[str, Any]]]:
    """Events to append, one per text."""
    return [("noted", {"text": text}) for text in texts]


def texts(events: list[Event]) -> list[Any]:
    """What was noted in some events."""
    return [event["text"] for event in events]


def kept(folder: Path) -> list[Any]:
    """What is noted in the run of a folder."""
    with RunStore.read(folder) as run:
        return texts(list(run.events()))


def write(folder: Path, count: int, *, size: int = 100) -> list[str]:
    """A closed run of so many events, each in a transaction of its own."""
    with RunStore.create(folder) as run:
        for number in range(count):
            run.append(noted(f"{number} ".ljust(size, "x")))
        return texts(list(run.events()))


def crashed(run: RunStore, folder: Path) -> Path:
    """A copy of the files of an open run, as if its process had just been killed."""
    folder.mkdir(parents=True)
    for path in run.folder.glob("run.db*"):
        if not path.name.endswith("-shm"):
            shutil.copy(path, folder / path.name)
    return folder


@contextmanager
def python(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that runs some code; killed at the end, if it is still there."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def copied(source: Path) -> Path:
    """A copy of a run, beside it."""
    return Path(shutil.copytree(source, mkdtemp(dir=source.parent), dirs_exist_ok=True))


def flip(path: Path, place: int, bit: int = 0) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def outcome(folder: Path) -> list[str] | DamageError:
    """What a run gives: all it holds, or an error."""
    try:
        with RunStore.open(folder) as run:
            return texts(list(run.events()))
    except DamageError as error:
        return error
