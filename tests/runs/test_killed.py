"""A run that is killed and resumed ends exactly as one that was left alone."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from coevolve.runs.session import create_run, read_state
from coevolve.search.effects import fold
from coevolve.search.run_state import RunState, Status
from coevolve.store import RunStore
from tests.effort import effort
from tests.runs.drill import make_project
from tests.search.snapshots import snapshot
from tests.shared import made_once

DRILL = Path(__file__).with_name("drill.py")
ROUNDS, TASKS = effort((3, 32), (6, 80))
KILLS = effort({False: 2, True: 2}, {False: 50, True: 10})


def begin(folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A process group of its own that goes on with a run."""
    root = str(DRILL.parents[2])
    return subprocess.Popen(
        [sys.executable, str(DRILL), str(folder)],
        env={**os.environ, **environment, "PYTHONPATH": root},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finish(folder: Path, **environment: str) -> int:
    """Go on with a run to its end, or its own death."""
    with begin(folder, **environment) as process:
        _, errors = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        return process.returncode


@pytest.fixture(scope="module", params=[False, True], ids=["in turn", "overlapping"])
def left_alone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, RunState]:
    """The state of the run that nobody interrupts."""
    overlap = bool(request.param)

    def make(folder: Path) -> None:
        file = make_project(folder, overlap=overlap, rounds=ROUNDS, tasks=TASKS)
        assert finish(create_run(file)) == 0

    name = "alone-overlapping" if overlap else "alone-in-turn"
    state = read_state(made_once(tmp_path_factory, name, make) / "runs" / "drill")
    assert state.ended == {"why": "finished"}
    assert state.evaluating.trials >= effort(100, 300)
    assert state.evaluating.failed_attempts > 0
    return overlap, state


def check_same(folder: Path, expected: RunState) -> None:
    state = read_state(folder)
    found, wanted = snapshot(state), snapshot(expected)
    for field in wanted:
        assert found[field] == wanted[field], field
    with RunStore.read(folder) as store:
        told = Counter(
            (event["candidate"], event["task"], event["trial"])
            for event in store.events()
            if event["type"] == "outcome"
        )
    assert max(told.values()) == 1
    assert sum(told.values()) == state.evaluating.trials


def killed_again_and_again(folder: Path, kills: int, seed: int) -> None:
    """Kill a run at random instants, and check that nothing recorded is lost."""
    rng = random.Random(seed)
    recorded: list[bytes] = []
    for _ in range(kills):
        with begin(folder) as process:
            with RunStore.read(folder) as store:
                seen = store.count
                deadline = time.monotonic() + 30
                while store.count == seen and time.monotonic() < deadline:
                    time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.08))
            kill(process)
        with RunStore.read(folder) as store:
            seals = [event["seal"] for event in store.events()]
        assert seals[: len(recorded)] == recorded, "what was recorded is lost"
        recorded = seals


def test_killed_at_random_instants(tmp_path: Path, left_alone: tuple[bool, RunState]) -> None:
    overlap, expected = left_alone
    folder = create_run(make_project(tmp_path, overlap=overlap, rounds=ROUNDS, tasks=TASKS))
    killed_again_and_again(folder, KILLS[overlap], 11)
    assert read_state(folder).ended is None, "the run was over before the last kill"
    assert finish(folder) == 0
    check_same(folder, expected)


def test_a_search_without_rounds_killed_at_random_instants(tmp_path: Path) -> None:
    folder = create_run(make_project(tmp_path, in_flight=4, rounds=ROUNDS, tasks=TASKS))
    killed_again_and_again(folder, effort(3, 20), 12)
    assert finish(folder) == 0
    state = read_state(folder)
    assert state.ended == {"why": "finished"}
    assert len(state.rounds) == ROUNDS
    assert state.selector.outstanding() == []
    check_same(folder, fold_of(folder))
    live = [n for n, known in state.candidates.items() if known.status != Status.REFUSED]
    assert set(live) == {*state.starts, *state.selector.candidates}


def fold_of(folder: Path) -> RunState:
    """The state that follows from all events, also those that a later one sums up."""
    with RunStore.read(folder) as store:
        return fold(store.events())


PLACES = [
    {"KILL": "propose"},
    {"KILL": "retry"},
    *({"KILL": "write", "AFTER": str(n)} for n in (2, effort(120, 300), 0, 1, 60, 230)),
]
SHORT = [(False, 0), (True, 1), (True, 3)]
"""Whether rounds overlap, and the place of the kill, in `make test`."""


@pytest.mark.parametrize(
    ("left_alone", "where"),
    [
        pytest.param(
            overlap,
            where,
            id=f"{'overlapping' if overlap else 'in turn'}-{'-'.join(where.values())}",
            marks=() if (overlap, place) in SHORT else pytest.mark.long,
        )
        for overlap in (False, True)
        for place, where in enumerate(PLACES)
    ],
    indirect=["left_alone"],
)
def test_killed_in_the_middle_of(
    where: dict[str, str], tmp_path: Path, left_alone: tuple[bool, RunState]
) -> None:
    overlap, expected = left_alone
    folder = create_run(make_project(tmp_path, overlap=overlap, rounds=ROUNDS, tasks=TASKS))
    assert finish(folder, **where) == -signal.SIGKILL
    assert finish(folder) == 0
    check_same(folder, expected)
