"""Whole searches with candidates that drop what they cannot solve: it never pays.

`benchmarks/strategic.py` has the simulation, and `make bench-strategic` runs 200 searches of each
kind.
"""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.effort import effort

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import strategic

SEEDS = range(effort(1, 200))
honest = functools.cache(functools.partial(strategic.search, way="", protocol="task-coevolve"))
WAYS = [way for way in strategic.FAULTS.values() if way not in ("", *strategic.REFUSED)]


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_gives_the_same_search_as_failing_honestly(way: str) -> None:
    for seed in SEEDS:
        found = strategic.search(seed, way=way, protocol="task-coevolve")
        assert found == honest(seed), seed


@pytest.mark.parametrize("way", strategic.REFUSED)
def test_a_candidate_that_dies_before_its_first_trial_is_never_chosen(way: str) -> None:
    for seed in SEEDS:
        found = strategic.search(seed, way=way, protocol="task-coevolve")
        assert found.strategic == []
        assert found.chosen.startswith("rival")


def test_rounds_of_strategic_candidates_alone_gain_nothing_either() -> None:
    for seed in SEEDS:
        one, other = (
            strategic.search(seed, way=way, protocol="task-coevolve", alone=True)
            for way in ("", "ReadTimeout")
        )
        assert one == other, seed


def test_an_outage_of_the_model_costs_no_candidate_anything() -> None:
    for seed in SEEDS:
        down = strategic.search(
            seed, way="", protocol="task-coevolve", service=strategic.Service(outage=(40.0, 100.0))
        )
        assert down.rivals == pytest.approx(honest(seed).rivals)


@pytest.mark.parametrize(("service", "way"), strategic.SERVICES.values())
def test_a_service_that_is_exhausted_or_fails_does_not_pay(
    service: strategic.Service, way: str
) -> None:
    seeds = range(effort(2, 20))
    one = functools.partial(strategic.search, protocol="task-coevolve", service=service)
    found, honest = ([one(seed, way=how) for seed in seeds] for how in (way, ""))
    gained, usual = (
        np.mean([v for run in some for v in run.strategic]) for some in (found, honest)
    )
    assert gained <= usual + effort(0.25, 0.08)
