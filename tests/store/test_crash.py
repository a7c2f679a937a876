"""However a writer ends, what `append` returned for is there, in order."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coevolve.store import RunStore, verify
from tests.effort import effort
from tests.store.helpers import crashed, kept, noted, python, scratch, texts

LOOP = """
import sys
from pathlib import Path
from coevolve.store import RunStore
with RunStore.open(Path(sys.argv[1])) as run:
    while True:
        [*_, last] = run.append([("noted", {"text": "x" * 300})] * int(sys.argv[2]))
        print(last["seq"], flush=True)
"""


@pytest.mark.parametrize(
    ("batch", "appends"),
    [(1, 40), (7, 300)]
    + [pytest.param(*more, marks=pytest.mark.long) for more in ((1, 1), (1, 2500))],
)
def test_a_writer_killed_in_the_middle_loses_nothing_it_was_told_is_kept(
    tmp_path: Path, batch: int, appends: int
) -> None:
    RunStore.create(tmp_path).close()
    for _ in range(3):
        with python(LOOP, tmp_path, batch) as process:
            assert process.stdout is not None
            printed = [int(process.stdout.readline()) for _ in range(appends)]
            process.kill()
            printed += map(int, process.stdout.read().split())
        with RunStore.open(tmp_path) as run:
            assert [event["seq"] for event in run.events()] == list(range(run.count))
            assert run.count > printed[-1]
            assert run.count % batch == 0
    assert verify(tmp_path).damage is None


@pytest.fixture
def memory() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


class Crashes(RuleBasedStateMachine):
    """Appends, reopenings and crashes in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = ExitStack()
        self.top = self.scratch.enter_context(scratch())
        self.folders = (self.top / f"run-{number}" for number in count())
        self.numbers = count()
        self.run = RunStore.create(next(self.folders))
        self.batches: list[list[str]] = []

    @property
    def recorded(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    @rule(sizes=st.lists(st.sampled_from([1, 10, 300, 5_000, 70_000]), max_size=4))
    def append(self, sizes: list[int]) -> None:
        batch = [f"{next(self.numbers)} ".ljust(size, "x") for size in sizes]
        assert texts(self.run.append(noted(*batch))) == batch
        if batch:
            self.batches.append(batch)

    @rule()
    def reopen(self) -> None:
        self.run.close()
        self.run = RunStore.open(self.run.folder)

    @rule()
    def crash(self) -> None:
        folder = crashed(self.run, next(self.folders))
        self.run.close()
        self.run = RunStore.open(folder)

    @precondition(lambda self: (self.run.folder / "run.db-wal").exists())
    @rule(part=st.floats(0, 1))
    def crash_with_a_torn_log(self, part: float) -> None:
        folder = crashed(self.run, next(self.folders))
        log = folder / "run.db-wal"
        data = log.read_bytes()
        log.write_bytes(data[: int(part * len(data))])
        self.run.close()
        self.run = RunStore.open(folder)
        left = texts(list(self.run.events()))
        while self.recorded != left:
            assert len(self.recorded) > len(left), "only whole transactions are kept or lost"
            self.batches.pop()

    @invariant()
    def all_is_there(self) -> None:
        assert texts(list(self.run.events())) == self.recorded
        assert kept(self.run.folder) == self.recorded

    def teardown(self) -> None:
        self.run.close()
        assert verify(self.run.folder).damage is None
        self.scratch.close()


Crashes.TestCase.settings = settings(
    max_examples=effort(10, 40), stateful_step_count=15, deadline=None
)
TestCrashes = Crashes.TestCase


def test_a_log_torn_at_any_byte_leaves_whole_transactions(memory: Path) -> None:
    with RunStore.create(memory / "run") as run:
        for number in range(4):
            run.append(noted(f"{number} a", f"{number} b" + "x" * 2000))
        all_texts = texts(list(run.events()))
        copy = crashed(run, memory / "copy")
    data = (copy / "run.db-wal").read_bytes()
    seen = set()
    for size in (*range(0, len(data), 509), len(data)):
        shutil.rmtree(memory / "torn", ignore_errors=True)
        shutil.copytree(copy, memory / "torn")
        (memory / "torn" / "run.db-wal").write_bytes(data[:size])
        with RunStore.open(memory / "torn") as torn:
            left = texts(list(torn.events()))
        assert left == all_texts[: len(left)]
        assert len(left) % 2 == 0
        seen.add(len(left))
    assert seen == {0, 2, 4, 6, 8}
