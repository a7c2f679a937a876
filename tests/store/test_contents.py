"""Blobs are what their addresses say; checkouts are what their candidates say."""

import os
import stat
from pathlib import Path

import pytest

from coevolve.errors import DamageError, InputError, StoreError
from coevolve.search.candidate import Candidate, address_of, read_folder
from coevolve.search.journal import MemoryJournal
from coevolve.store import RunStore

FILES = {"harness.py": b"def answer(q): return q", "prompts/deep/one.txt": b"one", "empty": b""}


def candidate(run: RunStore | MemoryJournal) -> Candidate:
    for data in FILES.values():
        run.put(data)
    return Candidate.of(FILES, name="plain")


def test_bytes_come_back_and_are_kept_once(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        for data in (b"", b"trace", bytes(range(256)) * 1000):
            address = run.put(data)
            assert address == address_of(data) == run.put(data)
            assert run.get(address) == data
    assert len([path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]) == 3
    with RunStore.read(tmp_path) as reader:
        assert reader.get(address_of(b"trace")) == b"trace"


@pytest.mark.parametrize("bad", ["", "../../etc/passwd", "A" * 32, "0" * 31, "/" * 32])
def test_an_address_is_an_address(tmp_path: Path, bad: str) -> None:
    with RunStore.create(tmp_path) as run, pytest.raises(InputError, match="32 hex digits"):
        run.get(bad)


def test_a_damaged_or_missing_blob_is_named_and_can_be_put_again(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        address = run.put(b"trace")
        path = tmp_path / "blobs" / address[:2] / address
        path.chmod(0o644)
        path.write_bytes(b"trade")
        with pytest.raises(DamageError, match=f"blob {address} is damaged"):
            run.get(address)
        run.put(b"trace")
        assert run.get(address) == b"trace"
        path.unlink()
        with pytest.raises(DamageError, match=f"blob {address} is missing"):
            run.get(address)


@pytest.mark.parametrize("known", [False, True])
def test_durable_bytes_are_on_the_disk_with_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    synced: set[int] = set()
    fsync = os.fsync

    def noticed(file: int) -> None:
        synced.add(os.fstat(file).st_ino)
        fsync(file)

    with RunStore.create(tmp_path) as run:
        if known:
            run.put(b"state")
        monkeypatch.setattr(os, "fsync", noticed)
        address = run.put(b"state", durable=True)
    blob = tmp_path / "blobs" / address[:2] / address
    for path in (blob, *blob.parents[:3]):
        assert path.stat().st_ino in synced


def test_a_checkout_has_the_files_and_they_are_read_only(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        folder = run.checkout(candidate(run))
        assert run.checkout(candidate(run)) == folder
    assert read_folder(folder) == FILES
    for path in (folder, *folder.rglob("*")):
        wanted = 0o755 if path.is_dir() else 0o444
        assert stat.S_IMODE(path.stat().st_mode) == wanted


def test_files_in_a_checkout_of_a_journal_in_memory_are_written_once() -> None:
    journal = MemoryJournal()
    folder = journal.checkout(candidate(journal))
    assert read_folder(folder) == FILES
    for path in FILES:
        os.utime(folder / path, ns=(0, 0))
    assert journal.checkout(candidate(journal)) == folder  # while a sandbox may import them
    assert {(folder / path).stat().st_mtime_ns for path in FILES} == {0}


def changed(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"def answer(q): return 7")


def removed(path: Path) -> None:
    path.unlink()


def linked(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def joined(path: Path) -> None:
    (path.parent / "sitecustomize.py").write_text("")


def folder_added(path: Path) -> None:
    (path.parent / "more").mkdir()


def swollen(path: Path) -> None:
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.truncate(1 << 42)


@pytest.mark.parametrize("tamper", [changed, removed, linked, joined, folder_added, swollen])
def test_a_checkout_that_was_tampered_with_is_made_anew(tmp_path: Path, tamper: object) -> None:
    with RunStore.create(tmp_path) as run:
        folder = run.checkout(candidate(run))
    tamper(folder / "harness.py")  # type: ignore[operator]
    with RunStore.read(tmp_path) as reader, pytest.raises(StoreError, match="reading only"):
        reader.checkout(Candidate.of(FILES, name="plain"))
    with RunStore.open(tmp_path) as run:
        assert read_folder(run.checkout(candidate(run))) == FILES
    with RunStore.read(tmp_path) as reader:
        assert reader.checkout(Candidate.of(FILES, name="plain")) == folder


def test_a_folder_that_is_a_link_is_not_a_checkout(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run") as run:
        folder = run.checkout(candidate(run))
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    with RunStore.open(tmp_path / "run") as run:
        assert not run.checkout(candidate(run)).is_symlink()
    assert read_folder(tmp_path / "elsewhere") == FILES


def test_a_checkout_without_its_blobs_names_what_is_missing(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        with pytest.raises(DamageError, match="is missing"):
            run.checkout(Candidate.of(FILES, name="plain"))
        assert read_folder(run.checkout(candidate(run))) == FILES


def test_what_a_killed_writer_left_unfinished_is_cleared_away(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    (tmp_path / "unfinished" / "checkout-1-0" / "half").mkdir(parents=True)
    with RunStore.open(tmp_path) as run:
        run.checkout(candidate(run))
    assert list((tmp_path / "unfinished").iterdir()) == []
