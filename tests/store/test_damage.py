"""Damage is noticed, named, and repaired up to where it begins."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coevolve.errors import DamageError, OwnedError, StoreError
from coevolve.store import Health, Repaired, RunStore, repair, verify
from tests.store.helpers import COUNT, copied, flip, kept, noted, outcome


def event_of(folder: Path, text: bytes) -> None:
    """Change one letter of an event."""
    path = folder / "run.db"
    flip(path, path.read_bytes().index(text))


def test_a_changed_event_is_named_and_the_events_before_it_are_kept(
    closed: Path,
) -> None:
    folder = copied(closed)
    event_of(folder, b'"text":"57 x')
    with RunStore.open(folder) as run:
        events = run.events()
        assert [next(events)["seq"] for _ in range(57)] == list(range(57))
        with pytest.raises(DamageError) as found:
            next(events)
    assert found.value.intact == 57
    assert "damaged at event 57" in str(found.value)
    assert f"coevolve doctor --repair {folder}" in str(found.value)

    health = verify(folder)
    assert (health.events, health.intact) == (COUNT, 57)
    assert "event 57" in str(health.damage)

    backup = folder / "run.db.damaged-1"
    assert repair(folder) == Repaired(kept=57, lost=COUNT - 57, backup=backup)
    assert backup.exists()
    assert kept(folder) == kept(closed)[:57]
    with RunStore.open(folder) as run:
        run.append(noted("continues"))
    assert verify(folder) == Health(events=58, intact=58, damage=None)


def test_a_healthy_run_is_not_touched_by_a_repair(
    closed: Path,
) -> None:
    folder = copied(closed)
    assert verify(folder) == Health(events=COUNT, intact=COUNT, damage=None)
    assert repair(folder) == Repaired(kept=COUNT, lost=0, backup=None)
    assert (folder / "run.db").read_bytes() == (closed / "run.db").read_bytes()


def test_each_repair_keeps_its_own_backup(
    closed: Path,
) -> None:
    folder = copied(closed)
    for number, text in enumerate((b'"text":"57 x', b'"text":"12 x'), 1):
        event_of(folder, text)
        assert repair(folder).backup == folder / f"run.db.damaged-{number}"
    assert kept(folder) == kept(closed)[:12]


def test_a_run_that_is_being_written_is_not_repaired(tmp_path: Path) -> None:
    with RunStore.create(tmp_path), pytest.raises(OwnedError):
        repair(tmp_path)


def test_a_run_can_be_verified_while_it_is_written(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        run.append(noted("a", "b"))
        assert verify(tmp_path) == Health(events=2, intact=2, damage=None)


def test_half_a_journal_gives_half_its_events(
    closed: Path,
) -> None:
    folder = copied(closed)
    with (folder / "run.db").open("r+b") as file:
        file.truncate(5 * 4096)
    with pytest.raises(DamageError) as found:
        RunStore.read(folder)
    assert 20 < found.value.intact < COUNT
    assert repair(folder).kept == found.value.intact


def test_a_lost_log_loses_what_was_in_it_and_nothing_else(
    killed: Path,
) -> None:
    folder = copied(killed)
    (folder / "run.db-wal").unlink()
    assert repair(folder) == Repaired(kept=100, lost=0, backup=None)
    assert kept(folder) == [f"{n} ".ljust(100, "x") for n in range(100)]


def test_events_in_the_log_are_salvaged_from_a_damaged_journal(
    killed: Path,
) -> None:
    folder = copied(killed)
    flip(folder / "run.db", 3)
    repaired = repair(folder)
    assert repaired.kept == COUNT
    assert (folder / "run.db.damaged-1-wal").exists()
    assert len(kept(folder)) == COUNT


@pytest.mark.parametrize("page", [0, 1])
def test_events_are_salvaged_without_the_pages_that_sqlite_needs(closed: Path, page: int) -> None:
    # Page 0 lists the tables, page 1 is the root of the events: without it a query finds none.
    folder = copied(closed)
    with (folder / "run.db").open("r+b") as file:
        file.seek(4096 * page)
        file.write(bytes(4096))
    assert repair(folder).kept == COUNT
    assert kept(folder) == kept(closed)


@pytest.mark.parametrize("place", [3, 8, 10])
def test_a_flipped_bit_in_the_head_of_a_page_loses_no_event(closed: Path, place: int) -> None:
    # The number of cells, and the pointers to the first two.
    folder = copied(closed)
    flip(folder / "run.db", 3 * 4096 + place, 6)
    assert repair(folder).kept == COUNT


def dropped(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute(f"DELETE FROM events WHERE seq >= {COUNT - 10}")
        connection.commit()


def removed(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("DELETE FROM events WHERE seq = 57")
        connection.commit()


def exchanged(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("UPDATE events SET seq = 9999 WHERE seq = 57")
        connection.execute("UPDATE events SET seq = 57 WHERE seq = 58")
        connection.execute("UPDATE events SET seq = 58 WHERE seq = 9999")
        connection.commit()


def forgotten(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("DELETE FROM head")
        connection.commit()


def retyped(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("UPDATE events SET text = 7.5 WHERE seq = 57")
        connection.commit()


@pytest.mark.parametrize(
    ("change", "left"),
    [(dropped, COUNT - 10), (removed, 57), (exchanged, 57), (forgotten, None), (retyped, 57)],
)
def test_events_lost_or_moved_by_hand_are_noticed(
    closed: Path,
    change: Callable[[Path], None],
    left: int | None,
) -> None:
    folder = copied(closed)
    change(folder)
    assert isinstance(outcome(folder), DamageError)
    health = verify(folder)
    assert health.damage is not None
    # What was deleted is often still in the file, and then it is found.
    assert repair(folder).kept >= (COUNT if left is None else left)
    assert kept(closed)[: len(kept(folder))] == kept(folder)


def test_a_file_of_another_program_or_version_is_left_alone(tmp_path: Path) -> None:
    for setting, told in (
        ("application_id=7", "not a journal of coevolve"),
        ("user_version=2", "schema 2, written by a newer version.*pip install --upgrade"),
    ):
        RunStore.create(tmp_path / setting).close()
        path = tmp_path / setting / "run.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA {setting}")
            connection.execute("UPDATE head SET schema = 2")
            connection.commit()
        before = path.read_bytes()
        for attempt in (RunStore.open, RunStore.read, verify, repair):
            with pytest.raises(StoreError, match=told):
                attempt(path.parent)
        assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"nonsense", b"x" * 10_000, bytes(8192)])
def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.db").write_bytes(content)
    for attempt in (RunStore.open, RunStore.read):
        with pytest.raises(DamageError, match="The 0 events"):
            attempt(tmp_path)
    assert verify(tmp_path).intact == 0
    assert repair(tmp_path).kept == 0
    assert (tmp_path / "run.db.damaged-1").read_bytes() == content
