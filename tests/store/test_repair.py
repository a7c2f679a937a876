"""A repair that is killed at any step can be finished, and loses nothing."""

import errno
import os
import shutil
from itertools import count
from pathlib import Path

import pytest

from coevolve.errors import DamageError, StoreError
from coevolve.store import RunStore, repair, verify
from coevolve.store.layout import Layout
from tests.store.helpers import COUNT, copied, flip, kept, noted


@pytest.fixture
def moments(killed: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Copies of a run before and after every step of its repair."""
    folder = copied(killed)
    flip(folder / "run.db", 3)
    top, numbers = copied(killed), count()
    found: list[Path] = []

    def look() -> None:
        found.append(Path(shutil.copytree(folder, top / f"moment-{next(numbers)}")))

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "rename"), (Path, "replace"), (os, "link")):
            _looking(patch, owner, name, look)
        repair(folder)
    look()
    assert len(found) == 5
    return found


def _looking(patch: pytest.MonkeyPatch, owner: object, name: str, look: object) -> None:
    step = getattr(owner, name)

    def looked(*arguments: object) -> object:
        look()  # type: ignore[operator]
        return step(*arguments)

    patch.setattr(owner, name, looked)


def test_a_repair_killed_at_any_step_is_finished_by_another(
    killed: Path, moments: list[Path]
) -> None:
    for folder in moments:
        assert repair(folder).kept == COUNT
        assert sorted(path.name for path in folder.glob("run.db.*")) == [
            "run.db.damaged-1",
            "run.db.damaged-1-wal",
        ]
        damaged = (folder / "run.db.damaged-1").read_bytes()
        assert len(damaged) == (killed / "run.db").stat().st_size
        assert damaged != (killed / "run.db").read_bytes()
        log = (folder / "run.db.damaged-1-wal").read_bytes()
        assert log == (killed / "run.db-wal").read_bytes()
        assert kept(folder) == [f"{n} ".ljust(100, "x") for n in range(COUNT)]
        assert verify(folder).damage is None


def test_a_run_whose_repair_was_killed_continues_or_reports_damage(moments: list[Path]) -> None:
    opened = 0
    for folder in moments:
        try:
            with RunStore.open(folder) as run:
                assert run.count == COUNT
                run.append(noted("continues"))
            opened += 1
        except DamageError:
            assert not opened, "from when the new journal is made on, it is used"
            continue
        assert len(kept(folder)) == COUNT + 1
    assert opened == 4


def test_a_run_cannot_be_read_during_a_repair(moments: list[Path]) -> None:
    unfinished = [folder for folder in moments if Layout(folder).repaired is not None]
    assert unfinished
    for folder in unfinished:
        before = {path.name: path.read_bytes() for path in folder.glob("run.db*")}
        for look in (RunStore.read, verify):
            with pytest.raises(StoreError, match=r"not finished.*coevolve doctor --repair"):
                look(folder)
        assert {path.name: path.read_bytes() for path in folder.glob("run.db*")} == before


def test_a_log_made_after_the_kill_is_put_aside_too(moments: list[Path]) -> None:
    folder = next(f for f in moments if (f / "run.db.damaged-1-wal").exists())
    (folder / "run.db-wal").write_bytes(b"made by another program")
    assert repair(folder).kept == COUNT
    assert (folder / "run.db.damaged-1-wal").stat().st_size > 4096
    assert (folder / "run.db.damaged-1-wal-2").read_bytes() == b"made by another program"


def test_a_disk_without_links_keeps_a_copy(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    folder = copied(killed)
    flip(folder / "run.db", 3)
    damaged = (folder / "run.db").read_bytes()
    monkeypatch.setattr(os, "link", refused)
    assert repair(folder).kept == COUNT
    assert (folder / "run.db.damaged-1").read_bytes() == damaged
