"""The journal of a run, as damage or a user may leave it."""

import functools
import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from coevolve.search.effects import fold
from coevolve.store import RunStore
from coevolve.store.layout import Layout
from coevolve.store.lock import _signature
from coevolve.store.log_frames import log_damage
from coevolve.store.raw_pages import RawPages
from tests.fuzz.inputs import changed, json_bytes, spoiled
from tests.fuzz.target import Target, resealed, scratch, written


def _journal() -> list[dict[str, Any]]:
    path = Path(__file__).parents[1] / "search" / "journals" / "schema-1.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def _run_events(given: tuple[int, int, Any]) -> None:
    """Fold a run in which one event is another, up to some events later."""
    at, later, event = given
    events = _journal()
    at %= len(events)
    fold(resealed([*events[:at], event, *events[at + 1 : at + 1 + later]]))


@st.composite
def _one_event(draw: st.DrawFn) -> tuple[int, int, Any]:
    events = _journal()
    at = draw(st.integers(0, len(events) - 1))
    return at, draw(st.integers(0, 3)), draw(changed(events[at]))


def _rows(given: tuple[int, bytes]) -> None:
    """Read a journal in which one row has any text."""
    at, text = given
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        with RunStore.create(Path(folder)) as store:
            store.append([("noted", {"text": number}) for number in range(4)])
        with closing(sqlite3.connect(Path(folder) / "run.db", isolation_level=None)) as file:
            file.execute("DROP TRIGGER IF EXISTS no_update")
            file.execute("UPDATE events SET text = ? WHERE seq = ?", (text, at))
        with RunStore.read(Path(folder)) as store:
            list(store.skim())
            list(store.events())


@functools.cache
def _database() -> bytes:
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        with RunStore.create(Path(folder)) as store:
            store.append([("noted", {"text": "x" * 9_000})])
            store.append([("noted", {"text": number}) for number in range(9)])
        return (Path(folder) / "run.db").read_bytes()


def _pages(given: tuple[Sequence[tuple[int, bytes]], bytes]) -> None:
    patches, log = given
    data = bytearray(_database())
    for at, patch in patches:
        at %= len(data)
        data[at : at + len(patch)] = patch
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        layout = Layout(Path(folder))
        layout.journal.write_bytes(data)
        layout.log.write_bytes(log)
        with RawPages(layout) as pages:
            for _ in pages.lines():
                pass
        log_damage(layout.log, layout.log)


def _owner(data: bytes) -> None:
    with written("lock", data).open("rb") as file:
        _signature(file.fileno())


TARGETS: tuple[Target, ...] = (
    Target(name="events of a run", written_by="user", inputs=_one_event(), read=_run_events),
    Target(
        name="rows of a journal",
        written_by="user",
        inputs=st.tuples(
            st.integers(0, 3), json_bytes({"seq": 1, "type": "noted", "seal": "ab", "text": 1})
        ),
        read=_rows,
    ),
    Target(
        name="pages of a damaged journal",
        written_by="user",
        inputs=st.tuples(
            st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=9))),
            spoiled(b"\x37\x7f\x06\x82" + bytes(28), b""),
        ),
        read=_pages,
    ),
    Target(
        name="owner of a run",
        written_by="user",
        inputs=json_bytes({"pid": 1, "host": "a", "since": "", "command": "coevolve"}),
        read=_owner,
    ),
)
