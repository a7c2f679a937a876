"""Readers notice a damaged log as writers do, and never take a log at work for a damaged one."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.errors import DamageError
from coevolve.store import RunStore, log_frames, repair, verify
from coevolve.store.log_frames import FRAME, LOG_HEADER
from tests.effort import effort
from tests.store.helpers import COUNT, copied, crashed, flip, kept, noted, python, write

WANTED = [f"{n} ".ljust(100, "x") for n in range(COUNT)]


@pytest.fixture(scope="module")
def left(top: Path) -> Path:
    """All files that a killed writer leaves, its index of the log included."""
    write(top / "left", 100)
    with RunStore.open(top / "left") as run:
        for number in range(100, COUNT):
            run.append(noted(WANTED[number]))
        folder = crashed(run, top / "left behind")
        shutil.copy(run.folder / "run.db-shm", folder / "run.db-shm")
    return folder


def places(log: Path) -> list[tuple[int, int]]:
    """Bits to flip: in every field of the first and the last frame, and all over the log."""
    size = log.stat().st_size
    heads = [0, 5, 9, 13, 17, 25]
    fields = [start + offset for start in (LOG_HEADER, size - FRAME) for offset in (0, 4, 9, 17)]
    random = Random(16)
    count = effort(24, 1500)
    spread = [int((n + random.random()) * size / count) for n in range(count)]
    return [(place, random.randrange(8)) for place in (*heads, *fields, *spread, size - 1)]


def test_no_flipped_bit_in_the_log_of_a_killed_run_hides_events_from_a_reader(left: Path) -> None:
    assert kept(copied(left)) == WANTED
    for place, bit in places(left / "run.db-wal"):
        folder = copied(left)
        flip(folder / "run.db-wal", place, bit)
        with pytest.raises(DamageError, match=r"run.db-wal is damaged.*doctor --repair") as found:
            kept(folder)
        assert verify(folder).intact == found.value.intact
        assert repair(folder).kept >= found.value.intact
        assert kept(folder) == WANTED[: found.value.intact]
        shutil.rmtree(folder)


def test_a_log_cut_at_its_end_is_noticed_if_its_index_is_there(left: Path) -> None:
    folder = copied(left)
    log = folder / "run.db-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - FRAME)
    for attempt in (RunStore.read, RunStore.open):
        with pytest.raises(DamageError, match="damaged at its end"):
            attempt(folder)


def before_the_start(folder: Path) -> None:
    """As if the machine had restarted since."""
    os.utime(folder / "run.db-shm", (0, 0))


def half_written(folder: Path) -> None:
    flip(folder / "run.db-shm", 16)


def absent(folder: Path) -> None:
    (folder / "run.db-shm").unlink()


def emptied(folder: Path) -> None:
    (folder / "run.db-shm").write_bytes(b"")


@pytest.mark.parametrize("change", [before_the_start, half_written, absent, emptied])
def test_an_index_that_cannot_be_trusted_raises_no_alarm(
    left: Path, change: Callable[[Path], None]
) -> None:
    folder = copied(left)
    log = folder / "run.db-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - FRAME)
    change(folder)
    assert kept(folder) == WANTED[:-1]


SESSIONS = """
import os, sys
from pathlib import Path
from coevolve.store import RunStore
for session in range(int(sys.argv[2])):
    if (child := os.fork()) == 0:
        run = RunStore.open(Path(sys.argv[1]))
        for number in range(40):
            text = "x" * (40 if number % 5 else 4000)
            run.append([("noted", {"text": text})] * (1 + number % 7))
        if session % 2:
            run.close()
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
"""


def test_readers_of_a_run_that_is_opened_written_and_closed_see_it_grow_without_alarm(
    tmp_path: Path,
) -> None:
    RunStore.create(tmp_path).close()
    seen, reads = 0, 0
    with python(SESSIONS, tmp_path, effort(6, 300)) as process:
        while process.poll() is None:
            with RunStore.read(tmp_path) as run:
                assert run.count >= seen
                seen, reads = run.count, reads + 1
        assert process.returncode == 0
    assert reads > 1
    assert verify(tmp_path).damage is None


KILLED = """
import sys
from pathlib import Path
from coevolve.store import RunStore
run = RunStore.open(Path(sys.argv[1]))
while True:
    [*_, last] = run.append([("noted", {"text": "x" * 3000})] * 3)
    print(last["seq"], flush=True)
"""


def test_a_writer_that_is_killed_leaves_no_alarm(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    for turn in range(effort(2, 25)):
        with python(KILLED, tmp_path) as process:
            assert process.stdout is not None
            printed = [int(process.stdout.readline()) for _ in range(10 + 7 * turn)]
            process.kill()
            printed += map(int, process.stdout.read().split())
        with RunStore.read(tmp_path) as run:
            assert run.count > printed[-1]


@given(data=st.binary(min_size=48, max_size=48), order=st.sampled_from("<>"))
def test_the_checksum_of_a_row_is_that_of_sqlite(data: bytes, order: str) -> None:
    words = np.frombuffer(data, f"{order}u4").tolist()
    first = second = 0
    for x, y in zip(words[::2], words[1::2], strict=True):
        first = (first + x + second) % 2**32
        second = (second + y + first) % 2**32
    checksum = log_frames._Checksum(order, 24)
    sums = (0, 0)
    for part in checksum.parts(np.frombuffer(data, np.uint8).reshape(2, 24)):
        sums = checksum.added(sums, part)
    assert sums == (first, second)
