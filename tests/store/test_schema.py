"""Journals of schema 1 open, and those of an unknown schema say what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from coevolve.errors import EventError, StoreError
from coevolve.search.effects import fold
from coevolve.store import Health, RunStore, repair, verify
from tests.store.helpers import noted

LINES = (Path(__file__).parent / "schema-1.jsonl").read_text().splitlines()
"""The events of a finished search of two rounds, written by the first version with this schema."""


def journal(folder: Path, *, schema: int = 1) -> Path:
    """A journal of these events as docs/journal.md describes it, written without our code."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "run.db", isolation_level=None)) as connection:
        connection.executescript(
            f"""
            PRAGMA page_size=4096;
            PRAGMA application_id={0x436F4576};
            PRAGMA user_version={schema};
            CREATE TABLE events (seq INTEGER PRIMARY KEY, text TEXT NOT NULL);
            CREATE TABLE head (
                id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, count INTEGER NOT NULL
            );
            INSERT INTO head VALUES (0, {schema}, {len(LINES)});
            PRAGMA journal_mode=WAL;
            """
        )
        connection.executemany("INSERT INTO events VALUES (?, ?)", enumerate(LINES))
    return folder


def test_a_journal_of_schema_1_opens_and_gives_the_same_search(tmp_path: Path) -> None:
    folder = journal(tmp_path / "run")
    assert verify(folder) == Health(events=len(LINES), intact=len(LINES), damage=None)
    with RunStore.open(folder) as run:
        whole, skimmed = fold(run.events()), fold(run.skim())
        run.append(noted("continued"))
    for state in (whole, skimmed):
        assert state.ended is not None
        assert state.ended["why"] == "finished"
        choice = state.selector.best()
        assert (choice.candidate, round(choice.estimate.value, 3)) == ("r1-0", 0.932)
        assert state.chosen is not None
        assert state.chosen["candidate"] == choice.candidate


def test_a_journal_of_a_newer_schema_says_what_to_do(tmp_path: Path) -> None:
    folder = journal(tmp_path / "run", schema=2)
    before = (folder / "run.db").read_bytes()
    for attempt in (RunStore.open, RunStore.read, verify, repair):
        with pytest.raises(StoreError) as refused:
            attempt(folder)
        assert str(refused.value) == (
            f"{folder / 'run.db'} has journal schema 2, written by a newer version of coevolve; "
            "this version reads schema 1. The file is unchanged. Upgrade with `pip install "
            "--upgrade task-coevolve`, then open the run again."
        )
    assert (folder / "run.db").read_bytes() == before


def test_events_of_a_newer_schema_say_what_to_do(tmp_path: Path) -> None:
    with RunStore.read(journal(tmp_path / "run")) as run:
        first, *others = run.events()
    with pytest.raises(EventError, match=r"schema 2.*reads schema 1.*pip install --upgrade"):
        fold([{**first, "schema": 2}, *others])
