"""A full, read-only or forbidden disk: a clear error, nothing lost, and on with it afterwards."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coevolve.errors import StoreError
from coevolve.search.candidate import Candidate, read_folder
from coevolve.store import RunStore, verify
from tests.store.helpers import crashed, kept, noted, python, scratch, texts, write


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return filler
    raise AssertionError("a small disk has an end")


def fails_for_want_of_room(action: Callable[[], object]) -> None:
    with pytest.raises(StoreError, match=r"the disk is full.*Free some disk space"):
        action()


def append_until_full(run: RunStore) -> list[str]:
    done: list[str] = []

    def append_many() -> None:
        for number in range(10_000):
            text = f"{number} ".ljust(2000, "x")
            run.append(noted(text))
            done.append(text)

    with pytest.raises(StoreError, match="full"):
        append_many()
    return done


def test_a_full_disk_stops_appends_until_there_is_room_again(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    with RunStore.create(disk / "run") as run, RunStore.read(disk / "run") as reader:
        done = append_until_full(run)
        assert len(done) > 20
        with pytest.raises(StoreError, match="full"):
            run.append(noted("y" * 200_000, "one", "two"))
        assert texts(list(run.events())) == texts(list(reader.events())) == done
        ballast.unlink()
        run.append(noted("continues"))
        assert texts(list(run.events())) == [*done, "continues"]
    assert verify(disk / "run").damage is None
    assert kept(disk / "run") == [*done, "continues"]


def test_a_run_closed_or_killed_on_a_full_disk_is_intact(disk: Path) -> None:
    with RunStore.create(disk / "run") as run:
        run.append(noted(*range(100)))
        filler = fill(disk)
    with python(
        "import sys; from pathlib import Path; from coevolve.store import RunStore\n"
        "run = RunStore.open(Path(sys.argv[1]))\n"
        "while True: run.append([('noted', {'text': 1})])",
        disk / "run",
    ) as process:
        assert process.wait(60) != 0
    filler.unlink()
    found = kept(disk / "run")
    assert found[:100] == list(range(100))
    assert set(found[100:]) <= {1}
    assert verify(disk / "run").damage is None


def test_contents_on_a_full_disk(disk: Path) -> None:
    files = {"harness.py": b"x" * 30_000, "more/notes.txt": b"y" * 30_000}
    with RunStore.create(disk / "run") as run:
        for data in files.values():
            run.put(data)
        candidate = Candidate.of(files, name="plain")
        filler = fill(disk)
        fails_for_want_of_room(lambda: run.put(b"z" * 100_000))
        fails_for_want_of_room(lambda: run.checkout(candidate))
        assert list((disk / "run" / "unfinished").iterdir()) == []
        assert run.get(candidate.files["harness.py"]) == files["harness.py"]
        filler.unlink()
        assert read_folder(run.checkout(candidate)) == files
        run.put(b"z" * 100_000)


def test_a_run_cannot_be_made_on_a_full_disk_but_once_there_is_room(disk: Path) -> None:
    filler = fill(disk)
    with pytest.raises(StoreError, match="full"):
        RunStore.create(disk / "run")
    filler.unlink()
    with RunStore.create(disk / "run") as run:
        run.append(noted("a"))


def test_a_journal_that_cannot_grow_is_a_full_disk(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        connection = run._file._connection
        connection.execute("PRAGMA max_page_count=12").fetchall()
        done = append_until_full(run)
        assert texts(list(run.events())) == done
        connection.execute("PRAGMA max_page_count=1000000").fetchall()
        run.append(noted("continues"))
    assert kept(tmp_path) == [*done, "continues"]


def test_a_read_only_disk_can_be_read_and_says_what_to_do_about_writing(disk: Path) -> None:
    wanted = write(disk / "run", 20)
    with RunStore.open(disk / "run") as run:
        run.append(noted("in the log"))
        killed = crashed(run, disk / "killed")
        shutil.copy(disk / "run" / "run.db-shm", killed / "run.db-shm")
        without_index = crashed(run, disk / "without-index")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert kept(disk / "run") == [*wanted, "in the log"]
    assert kept(killed) == [*wanted, "in the log"]
    assert verify(disk / "run").damage is None
    with pytest.raises(StoreError, match="copy it"):
        RunStore.read(without_index)
    for attempt in (RunStore.open, RunStore.create):
        with pytest.raises(StoreError, match=r"read-only.*Make the folder writable"):
            attempt(disk / "run")
    with pytest.raises(StoreError, match="read-only"):
        RunStore.create(disk / "new")


AS_NOBODY = """
import os, sys
import urllib.parse  # on first use it would be too late: it may lie where only root can read
from pathlib import Path
from coevolve.errors import StoreError
from coevolve.store import RunStore
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
folder = Path(sys.argv[1])
for attempt in (RunStore.open, RunStore.create, lambda f: RunStore.create(f / "below")):
    try:
        attempt(folder)
    except StoreError as error:
        print(error)
with RunStore.read(folder) as run:
    print(run.count)
"""


def test_a_folder_of_another_user_can_be_read_and_not_written() -> None:
    with scratch() as top:
        write(top / "run", 20)
        for path in (*(top / "run").iterdir(), top / "run", top):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with python(AS_NOBODY, top / "run") as process:
            assert process.stdout is not None
            *refused, count = process.stdout.read().splitlines()
        top.chmod(0o755)
        (top / "run").chmod(0o755)
    assert count == "20"
    assert len(refused) == 3
    assert all("permission is denied. Make the folder writable" in line for line in refused)


def test_a_path_below_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="not a folder"):
        RunStore.create(tmp_path / "file" / "run")
