"""The synthetic world behind the protocol of benchmarks."""

import asyncio
import json
from typing import Any

import pytest

from coevolve.benchmarks.synthetic import SyntheticWorld, search
from coevolve.benchmarks.synthetic.synthetic_benchmark import (
    SyntheticBenchmark,
    SyntheticProposer,
    harness_files,
    read_harness,
)
from coevolve.core.selector import Selector
from coevolve.errors import InputError
from coevolve.executors.failures import CandidateFault
from coevolve.search.candidate import Files
from tests.benchmarks.harnesses import at_work
from tests.proposers.views import view

WORLD = SyntheticWorld(pools={"x": 12, "y": 20}, seed=4)
BENCHMARK = SyntheticBenchmark(WORLD, test_tasks=50)


def scores(files: Files, trial: int = 0) -> dict[str, float]:
    with at_work(files) as harness:
        BENCHMARK.check(harness)
        return {task: BENCHMARK.run(harness, task, trial) for task in WORLD.pool.tasks}


@pytest.mark.parametrize("trial", [0, 3])
def test_outcomes_are_those_of_the_world(trial: int) -> None:
    start = WORLD.start(1)[0]
    child = WORLD.child(start, WORLD.failures(start, WORLD.pool.tasks), round=1, index=0)
    for harness in (start, child):
        given = scores(harness_files(harness), trial)
        assert list(given.values()) == WORLD.outcomes(harness, trial).tolist()


def test_files_keep_all_of_a_harness() -> None:
    start = WORLD.start(1)[0]
    child = WORLD.child(start, [1, 5, 7], round=1, index=0)
    assert read_harness(harness_files(child)["skills.json"], WORLD) == child


def test_the_sealed_test_has_tasks_of_its_own_where_nothing_was_mended() -> None:
    start = WORLD.start(1)[0]
    assert not set(BENCHMARK.test_tasks) & set(WORLD.pool.tasks)
    mended = {**json.loads(harness_files(start)["skills.json"]), "mended": list(range(32))}
    with (
        at_work(harness_files(start)) as plain,
        at_work({"skills.json": json.dumps(mended)}) as other,
    ):
        tests = [
            [BENCHMARK.run_test(harness, task, 0) for task in BENCHMARK.test_tasks]
            for harness in (plain, other)
        ]
    assert tests[0] == tests[1]
    assert 0 < sum(tests[0]) < 50


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a harness"),
        ("[]", "not a harness"),
        ('{"name": "a", "skills": [1, 2], "mended": []}', "2 skills, but the world has 3"),
        ('{"name": "a", "skills": [1, 2, 3], "mended": [99]}', "'mended' has tasks out of range"),
        ('{"name": "a", "skills": ["x", 2, 3], "mended": []}', "not a harness"),
        ('{"name": "\\ud800", "skills": [1, 2, 3], "mended": []}', "not a harness"),
        ('{"name": "a", "skills": [1, 2, NaN], "mended": []}', "must be finite"),
        ('{"name": "a", "skills": [1, 2, 3], "mended": [Infinity]}', "not a harness"),
    ],
)
def test_what_is_no_harness_is_the_candidates_fault(content: str, message: str) -> None:
    with (
        at_work({"skills.json": content}) as harness,
        pytest.raises(CandidateFault, match=message),
    ):
        BENCHMARK.check(harness)
    with (
        at_work({"other": ""}) as harness,
        pytest.raises(CandidateFault, match=r"no skills\.json"),
    ):
        BENCHMARK.check(harness)


def test_a_world_without_a_test_refuses_one() -> None:
    with (
        at_work(BENCHMARK.starts["start-0"]) as harness,
        pytest.raises(InputError, match="no sealed test"),
    ):
        SyntheticBenchmark(WORLD).run_test(harness, "test-00", 0)
    with pytest.raises(InputError, match="needs a starting harness, got 0"):
        SyntheticBenchmark(WORLD, starts=0)


def test_a_search_by_files_is_the_search_of_the_world() -> None:
    """Proposer and benchmark together find what `search` finds, candidate by candidate."""
    selector = Selector(WORLD.pool, fraction=0.3, seed=WORLD.seed)
    proposer = SyntheticProposer(WORLD)
    files: dict[str, Files] = dict(BENCHMARK.starts)
    outcomes: dict[str, Any] = {name: scores(given) for name, given in files.items()}
    for name in files:
        selector.tell_full(name, outcomes[name])
    parent = max(selector.starts, key=lambda name: selector.estimate(name).value)
    for round in (1, 2, 3):
        seen = view(round=round, candidates=files, outcomes=outcomes, parent=parent)
        made = asyncio.run(proposer.propose(seen, 2)).proposals
        assert all(one.parents == (parent,) for one in made)
        files |= {one.name: one.files for one in made}
        for asked in selector.ask([one.name for one in made]):
            known = scores(files[asked.candidate])
            outcomes[asked.candidate] = {task: known[task] for task in asked.tasks}
            selector.tell(asked, outcomes[asked.candidate])
        choice = selector.best()
        parent = choice.better_start or choice.candidate
    expected = search(WORLD, protocol="task-coevolve", fraction=0.3, rounds=3, per_round=2)
    assert selector.best() == expected.choice
    assert selector.evaluations == expected.evaluations
