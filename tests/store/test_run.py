"""Appended events are kept in order, with their times, and can be read meanwhile."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.core.events import verified
from coevolve.errors import EventError, OwnedError, StoreError
from coevolve.search.journal import Journal
from coevolve.store import RunStore
from tests.effort import effort
from tests.store.helpers import crashed, kept, noted, texts

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_a_run_is_a_journal(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        journal: Journal = run
        assert list(journal.events()) == []


def test_events_are_numbered_sealed_and_returned_as_a_reader_gets_them(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        first = run.append([("opened", {"seed": 7, "pair": (1, 2)})])
        rest = run.append(noted("a", "b"))
        assert run.append([]) == []
        assert [event["seq"] for event in first + rest] == [0, 1, 2]
        assert first[0]["pair"] == [1, 2]
        assert list(run.events()) == first + rest
        assert [line.event for line in verified(run.events())] == first + rest


@settings(max_examples=effort(10, 30), deadline=None)
@given(values=st.lists(JSON, min_size=1, max_size=5))
def test_any_json_comes_back_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with RunStore.create(folder) as run:
        assert texts(run.append(noted(*values))) == values
    assert kept(folder) == values


@pytest.mark.parametrize("text", ["\ud800", "\udc00\ud800", "a\0b", "\u2028", "😀", "\x7f\x80"])
def test_no_text_breaks_the_journal(tmp_path: Path, text: str) -> None:
    with RunStore.create(tmp_path) as run:
        run.append(noted(text, "next"))
    assert kept(tmp_path) == [text, "next"]


def test_an_event_that_is_not_json_leaves_nothing_of_its_transaction(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        for bad in (float("nan"), {1, 2}, b"bytes"):
            with pytest.raises(EventError, match="must be plain JSON"):
                run.append(noted("good", bad))
        assert run.count == 0
        run.append(noted("next"))
        assert texts(list(run.events())) == ["next"]


@pytest.mark.parametrize("field", ["seq", "type", "seal", "at", "clock"])
def test_the_store_s_own_fields_cannot_be_given(tmp_path: Path, field: str) -> None:
    with RunStore.create(tmp_path) as run, pytest.raises(EventError, match=f"field '{field}'"):
        run.append([("noted", {field: 1})])


def test_a_reopened_run_continues(tmp_path: Path) -> None:
    for number in range(3):
        with (RunStore.open if number else RunStore.create)(tmp_path) as run:
            assert run.count == number
            run.append(noted(number))
    with RunStore.read(tmp_path) as run:
        assert texts([line.event for line in verified(run.events())]) == [0, 1, 2]


def test_parts_of_a_journal_can_be_read(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        assert run.last_event() is None
        for start in range(0, 3000, 1000):
            run.append(noted(*range(start, start + 1000)))
        assert texts(list(run.events(1234))) == list(range(1234, 3000))
        assert texts(list(run.events(5, 8))) == [5, 6, 7]
        assert texts(list(run.events(2990, 9999))) == list(range(2990, 3000))
        assert list(run.events(3000)) == list(run.events(4000)) == list(run.events(7, 3)) == []
        last = run.last_event()
        assert last is not None
        assert last["text"] == 2999


def test_a_follower_gets_new_events_and_a_few_at_a_time(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run, RunStore.read(tmp_path) as reader:
        assert reader.latest(0) == []
        run.append(noted(*range(5)))
        assert texts(reader.latest(0, most=3)) == [0, 1, 2]
        assert texts(reader.latest(3, most=3)) == [3, 4]
        assert reader.latest(5) == []
        assert reader.count == 5


def test_reading_ends_where_the_journal_ended_when_it_began(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run, RunStore.read(tmp_path) as reader:
        run.append(noted(*range(1500)))
        events = reader.events()
        assert next(events)["seq"] == 0
        for number in range(1500, 1600):
            run.append(noted(number))
        assert [event["seq"] for event in events] == list(range(1, 1500))
        assert reader.count == 1600


def test_a_slow_reader_does_not_block_the_writer(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run, RunStore.read(tmp_path) as reader:
        run.append(noted(*range(5000)))
        events = reader.events()
        next(events)
        for number in range(3000):
            run.append(noted(number))
        # The log is cleared every thousand pages or so, unless a reader is in its way.
        assert (tmp_path / "run.db-wal").stat().st_size < 12_000_000
        assert len(list(events)) == 4999


def test_the_wall_clock_may_jump_back(tmp_path: Path) -> None:
    wall = iter([1000.0, 500.0, 2.5])
    with RunStore.create(tmp_path, wall=lambda: next(wall)) as run:
        for number in range(3):
            run.append(noted(number))
        assert [event["at"] for event in run.events()] == [1000.0, 500.0, 2.5]
        assert [event["seq"] for event in run.events()] == [0, 1, 2]


def test_the_clock_counts_the_seconds_of_all_sessions(tmp_path: Path) -> None:
    ticks = count(100, 10)
    with RunStore.create(tmp_path, monotonic=lambda: float(next(ticks))) as run:
        assert run.clock() == 10
        [event] = run.append(noted("first"))
        assert event["clock"] == 20
    ticks = count(5, 3)
    with RunStore.open(tmp_path, monotonic=lambda: float(next(ticks))) as run:
        assert run.clock() == 23
        assert run.append(noted("second"))[0]["clock"] == 26
    with RunStore.read(tmp_path) as reader:
        assert reader.clock() == 26


def test_the_clock_stops_while_the_clock_of_the_machine_runs_backwards(tmp_path: Path) -> None:
    machine = iter([50.0, 60.0, 20.0, 61.0])
    with RunStore.create(tmp_path, monotonic=lambda: next(machine)) as run:
        assert [run.clock(), run.clock(), run.clock()] == [10, 10, 11]


def test_the_seconds_between_sessions_do_not_count(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, monotonic=lambda: 0.0) as run:
        run.append(noted("a"))
    with RunStore.open(tmp_path, monotonic=lambda: 1e6) as run:
        assert run.append(noted("b"))[0]["clock"] == 0


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    RunStore.create(tmp_path / "new" / "run").close()
    with pytest.raises(StoreError, match=r"already contains a run.*coevolve resume"):
        RunStore.create(tmp_path / "new" / "run")
    RunStore.open(tmp_path / "new" / "run").close()


@pytest.mark.parametrize("opener", [RunStore.open, RunStore.read])
def test_a_folder_without_a_run_is_refused_and_left_alone(tmp_path: Path, opener: object) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match=r"contains no run: it has no run\.db"):
            opener(folder)  # type: ignore[operator]
    assert list(tmp_path.iterdir()) == []


def test_the_remains_of_a_killed_creation_are_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "run.db").write_bytes(b"half")
    with pytest.raises(StoreError, match="contains no run"):
        RunStore.open(tmp_path)
    with RunStore.create(tmp_path) as run:
        run.append(noted("a"))
    assert kept(tmp_path) == ["a"]


def test_the_log_of_another_journal_is_not_mixed_into_a_new_one(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run") as run:
        run.append(noted("old"))
        copy = crashed(run, tmp_path / "copy")
    (copy / "run.db").unlink()
    with pytest.raises(StoreError, match=r"run\.db-wal is the log of a journal that is missing"):
        RunStore.create(copy)
    assert (copy / "run.db-wal").stat().st_size > 0


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    with RunStore.read(tmp_path) as reader:
        with pytest.raises(StoreError, match="for reading only"):
            reader.append(noted("a"))
        with pytest.raises(StoreError, match="for reading only"):
            reader.put(b"a")


def test_a_closed_run_says_so(tmp_path: Path) -> None:
    run = RunStore.create(tmp_path)
    run.close()
    run.close()
    with pytest.raises(StoreError, match="closed"):
        run.append(noted("a"))


def test_names_of_folders_may_hold_anything(tmp_path: Path) -> None:
    folder = tmp_path / "what? 100% #1 ü"
    with RunStore.create(folder) as run, RunStore.read(folder) as reader:
        run.append(noted("a"))
        assert reader.count == 1
    with RunStore.open(folder) as run, pytest.raises(OwnedError):
        RunStore.open(folder)
