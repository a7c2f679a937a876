"""A run whose disk, journal or clock fails loses nothing that was recorded."""

import itertools
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.errors import DamageError, StoreError
from coevolve.runs.session import read_state
from coevolve.search.effects import fold
from coevolve.search.trials import Blame, Fault, Result, Trial
from coevolve.store import RunStore, repair, verify
from tests.effort import first
from tests.search.snapshots import snapshot
from tests.search.stubs import POOL, StubExecutor, go_on, opened, whole_run


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, which can be filled."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False, stderr=-3
        ).returncode
    )
    if not mounted:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", disk], check=True)


def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(small_disk: Path) -> None:
    folder = small_disk / "run"
    with RunStore.create(folder) as store:
        opened(store)

    def fill(trial: Trial) -> Result | None:
        if len(executor.ran) >= 20 and not (small_disk / "big").exists():
            room = os.statvfs(small_disk)
            (small_disk / "big").write_bytes(bytes(room.f_bavail * room.f_frsize))
        return None

    executor = StubExecutor(act=fill)
    with (
        RunStore.open(folder) as store,
        pytest.raises(StoreError, match=r"[Nn]o (space|room)|full"),
    ):
        go_on(store, executor)
    assert executor.closed
    recorded = read_state(folder).evaluating.trials
    assert 10 <= recorded < 40
    (small_disk / "big").unlink()
    remount(small_disk, "size=8m")
    again = StubExecutor()
    with RunStore.open(folder) as store:
        state = go_on(store, again)
    assert snapshot(state) == snapshot(whole_run())
    assert len(again.ran) == state.evaluating.trials - recorded


def test_a_read_only_folder_can_be_looked_at_and_not_gone_on_with(small_disk: Path) -> None:
    folder = small_disk / "run"
    remount(small_disk, "size=8m")
    with RunStore.create(folder) as store:
        opened(store)
        expected = snapshot(go_on(store))
    remount(small_disk, "ro")
    assert snapshot(read_state(folder)) == expected
    with pytest.raises(StoreError, match="read-only"):
        RunStore.open(folder)
    remount(small_disk, "rw")
    assert snapshot(read_state(folder)) == expected


def finished(folder: Path) -> dict[str, object]:
    """A whole run on disk, and its state."""
    with RunStore.create(folder) as store:
        opened(store)
        return snapshot(go_on(store, StubExecutor(faults=0.2)))


@pytest.mark.parametrize("seed", first(2, range(4)))
@pytest.mark.parametrize("how", ["truncated", "bit-flipped"])
def test_a_damaged_journal_is_noticed_repaired_and_gone_on_with(
    how: str, seed: int, tmp_path: Path
) -> None:
    expected = finished(tmp_path)
    journal, rng = tmp_path / "run.db", random.Random(seed)
    data = bytearray(journal.read_bytes())
    if how == "truncated":
        del data[rng.randrange(8192, len(data)) :]
    else:
        while verify(tmp_path).damage is None:  # until a bit is hit that means something
            data[rng.randrange(8192, len(data))] ^= 1 << rng.randrange(8)
            journal.write_bytes(data)
    journal.write_bytes(data)
    with pytest.raises(DamageError, match=r"doctor --repair"):
        read_state(tmp_path)
    repaired = repair(tmp_path)
    assert repaired.backup is not None
    assert repaired.backup.read_bytes() == data
    with RunStore.open(tmp_path) as store:
        assert store.count == repaired.kept
        if not repaired.kept:
            opened(store)
        assert snapshot(go_on(store, StubExecutor(faults=0.2))) == expected


def test_a_clock_that_jumps_backwards_changes_nothing(tmp_path: Path) -> None:
    jumps = itertools.cycle([2e9, 1e9, 1.5e9, 0.0])
    with RunStore.create(tmp_path, wall=lambda: next(jumps)) as store:
        opened(store)
        state = go_on(store)
    assert snapshot(state) == snapshot(whole_run())
    with RunStore.read(tmp_path) as store:
        clocks = [event["clock"] for event in store.events()]
        assert clocks == sorted(clocks)
        assert snapshot(fold(store.events())) == snapshot(state)


def test_a_skimmed_journal_folds_to_the_same_state_after_every_event(tmp_path: Path) -> None:
    def outage(trial: Trial) -> Result | None:
        bad = trial.candidate == "plain" and len(executor.ran) < 3 * len(POOL)
        fault = Fault(
            blame=Blame.INFRASTRUCTURE, kind="sandbox", reason="did not start", shared=True
        )
        return Result(fault=fault) if bad else None

    executor = StubExecutor(act=outage, faults=0.2)
    with RunStore.create(tmp_path) as store:
        opened(store, rounds=2, candidates=1, overlap=True)
        go_on(store, executor)
        events = list(store.events())
        assert "reopened" in {event["type"] for event in events}
        for until in range(1, len(events) + 1):
            skimmed, whole = fold(store.skim(until)), fold(events[:until])
            assert snapshot(skimmed) == snapshot(whole), events[until - 1]
            assert skimmed.durations == whole.durations
