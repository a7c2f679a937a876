"""Candidates in real sandboxes that break what they do not know: it counts as their failure.

`tests/search/test_strategic.py` does the same with many simulated searches. Its faults are
compared here with the real ones.
"""

import sys
from pathlib import Path

import pytest

from coevolve.search.run_state import Status
from tests.executors.droppers import FLOOD, REFUSED, WAYS, Model, World, harness

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import strategic

KNOWN, RIVAL = 1, 2
SIMULATED = {
    "calls of the model, past trial_calls": "trial_calls",
    "tokens of the model, past trial_tokens": "trial_tokens",
    "memory of its process": "memory",
    "kills itself": "killed",
    "exits": "exit",
    "dies in its check": "check",
    "exits at import": "import",
}
"""Faults that the simulation has too."""


def numbers(world: World, known: list[str]) -> dict[str, float]:
    """The scores of a candidate that fails honestly."""
    return {task: float(task in known) for task in world.names}


def test_breaking_a_task_is_failing_it(tmp_path: Path) -> None:
    world = World(tasks=3)
    known = {way: world.known(place, KNOWN) for place, way in enumerate(WAYS)}
    names = {way: f"c{place}" for place, way in enumerate([*WAYS, *REFUSED])}
    proposed = {names[way]: harness(known[way], drop=drop) for way, drop in WAYS.items()}
    proposed |= {names[way]: harness(world.names, rest=rest) for way, rest in REFUSED.items()}
    found = world.search(tmp_path, {**proposed, "rival": harness(world.names[:RIVAL])})
    assert {way: found.scores(names[way]) for way in WAYS} == {
        way: numbers(world, known[way]) for way in WAYS
    }
    estimates = {way: found.state.estimate(names[way]) for way in WAYS}
    assert {way: one and one.value for way, one in estimates.items()} == dict.fromkeys(
        WAYS, pytest.approx(KNOWN / world.tasks)
    )
    status = {way: found.state.candidates[names[way]].status for way in REFUSED}
    assert status == dict.fromkeys(REFUSED, Status.REFUSED)
    assert found.chosen == "rival"
    for way, simulated in SIMULATED.items():
        fault = strategic.fault_of(simulated)
        assert found.faults[names[way]] == {(fault.blame.value, fault.kind)}, way
    blames = {blame for blame, _ in found.faults[names["forks without end"]]}
    assert blames == {strategic.fault_of("fork").blame.value}


def test_an_end_at_import_and_a_flood_of_requests_are_failures(tmp_path: Path) -> None:
    world = World(tasks=4, checked=False, model=Model(per_second=20))
    ends = {way: rest for way, rest in REFUSED.items() if "import" in way}
    names = {way: f"c{place}" for place, way in enumerate(ends)}
    proposed = {names[way]: harness(world.names, rest=rest) for way, rest in ends.items()}
    known = world.known(0, KNOWN)
    proposed |= {"flood": harness(known, drop=FLOOD)}
    found = world.search(tmp_path, {**proposed, "rival": harness(world.names[:RIVAL])})
    for way, name in names.items():
        assert found.scores(name) == dict.fromkeys(world.names, 0.0), way
    unknown = {task: score for task, score in found.scores("flood").items() if task not in known}
    assert unknown == {task: 0.0 for task in world.names if task not in known}
    assert "flood" in found.faults
    assert found.chosen not in names.values()


@pytest.mark.long
def test_waiting_for_the_model_past_the_time_limit_is_a_failure(tmp_path: Path) -> None:
    world = World(tasks=2, model_seconds=60.0, trial_seconds=8.0)
    proposed = {"late": harness(["task-0"], drop="ask('late')")}
    found = world.search(tmp_path, {**proposed, "rival": harness(world.names)})
    assert found.scores("late") == {"task-0": 1.0, "task-1": 0.0}
    assert found.faults["late"] == {("doubtful", "service-limit")}
    assert found.chosen == "rival"


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["task-coevolve", "adaptive"])
@pytest.mark.parametrize("seed", range(4))
def test_a_search_is_the_same_as_with_honest_failures(
    tmp_path: Path, seed: int, protocol: str
) -> None:
    """Candidates know three of eight tasks, and every fourth one is a rival that knows four."""
    world = World(tasks=8, seed=seed, protocol=protocol, fraction=0.5, candidates=4)
    broken, honest = {}, {}
    for place, (way, drop) in enumerate(WAYS.items()):
        if place % 3 == 0:
            rival = harness(world.known(100 + place, 4))
            broken[f"rival-{place}"] = honest[f"rival-{place}"] = rival
        known = world.known(place, 3)
        broken[f"c{place}"] = harness(known, drop=drop)
        honest[f"c{place}"] = harness(known, rest=f"# {way}")
    one, other = (world.search(tmp_path, proposed) for proposed in (broken, honest))
    assert one.chosen == other.chosen
    for name in other.state.selector.candidates:
        assert one.scores(name) == other.scores(name), name
        assert one.state.estimate(name) == other.state.estimate(name), name
