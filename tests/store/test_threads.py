"""One open run serves several threads: what one of them writes, the others see whole."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from coevolve.errors import StoreError
from coevolve.search.candidate import Candidate, read_folder
from coevolve.store import RunStore, verify
from tests.store.helpers import noted

APPENDS = 300


def all_along(action: Callable[[], object], over: Event) -> int:
    """Do something again and again until it is over; how often it was done."""
    times = 0
    while not over.is_set() or not times:
        action()
        times += 1
    return times


def test_threads_read_while_another_appends(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run, ThreadPoolExecutor() as pool:
        run.append(noted(*range(1500)))
        over = Event()

        def read_all() -> None:
            numbers = [event["seq"] for event in run.events()]
            assert numbers == list(range(len(numbers)))

        def read_end() -> None:
            count = run.count
            assert len(run.latest(count - 100)) >= 100
            last = run.last_event()
            assert last is not None
            assert last["seq"] >= count - 1

        def skim() -> None:
            assert len(list(run.skim())) >= 1500

        readers: list[Future[int]] = [
            pool.submit(all_along, action, over) for action in (read_all, read_end, skim)
        ]
        try:
            for number in range(APPENDS):
                run.append(noted(number, "and another"))
        finally:
            over.set()
        assert all(reader.result(timeout=60) for reader in readers)
        assert run.count == 1500 + 2 * APPENDS
    assert verify(tmp_path).damage is None


def test_threads_that_append_do_so_in_turns(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run, ThreadPoolExecutor() as pool:

        def append(name: int) -> list[int]:
            return [run.append(noted([name, n]))[0]["seq"] for n in range(100)]

        numbers = list(pool.map(append, range(4)))
        assert sorted(n for each in numbers for n in each) == list(range(400))
        clocks = [event["clock"] for event in run.events()]
        assert clocks == sorted(clocks)


def test_threads_share_contents(tmp_path: Path) -> None:
    files = {"harness.py": b"def answer(q): return q", "prompt.txt": b"think"}
    with RunStore.create(tmp_path) as run, ThreadPoolExecutor() as pool:

        def use(number: int) -> None:
            for data in files.values():
                run.put(data, durable=number % 2 == 0)
            candidate = Candidate.of(files, name="plain")
            assert read_folder(run.checkout(candidate)) == files
            assert [run.get(address) for address in candidate.files.values()] == [*files.values()]

        list(pool.map(use, range(12)))


def test_a_run_closed_under_a_reader_says_so(tmp_path: Path) -> None:
    run = RunStore.create(tmp_path)
    with closing(run):
        run.append(noted(*range(2000)))
        events = run.events()
        next(events)
    with pytest.raises(StoreError, match="closed"):
        list(events)
