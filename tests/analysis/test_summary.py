"""Means over series, their standard errors, and paired comparisons."""

import math

import numpy as np
import pytest

from coevolve.analysis import Entry, Mean, Row
from coevolve.analysis.replay import Comparison, summarised


def row(matrix: str, series: str, protocol: str, seed: int, regret: float | None) -> Row:
    return Row(
        matrix=matrix,
        series=series,
        protocol=protocol,
        fraction=0.2,
        seed=seed,
        candidates=3,
        tasks=10,
        values={"regret": regret, "coverage": None},
    )


def entry(entries: list[Entry], matrix: str | None, protocol: str) -> Entry:
    (found,) = [e for e in entries if (e.matrix, e.run, e.protocol) == (matrix, None, protocol)]
    return found


REGRETS = {
    ("m", "0"): {"a": [0.1, 0.3], "b": [0.1, 0.1]},
    ("m", "1"): {"a": [0.4, 0.4], "b": [0.1, 0.3]},
    ("n", "0"): {"a": [0.6, 0.8], "b": [0.7, 0.9]},
}
ROWS = [
    row(matrix, series, protocol, seed, regret)
    for (matrix, series), found in REGRETS.items()
    for protocol, values in found.items()
    for seed, regret in enumerate(values)
]


def test_a_matrix_is_the_mean_of_its_series() -> None:
    found = entry(summarised(ROWS), "m", "a")
    assert (found.series, found.seeds) == (2, 2)
    regret = found.means["regret"]
    assert regret.mean == pytest.approx(0.3)
    assert regret.se == pytest.approx(np.std([0.2, 0.4], ddof=1) / math.sqrt(2))
    assert regret.se_seeds == pytest.approx(math.sqrt(0.02 / 2) / 2)


def test_all_matrices_count_alike() -> None:
    found = entry(summarised(ROWS), None, "a")
    assert found.series == 3
    assert found.means["regret"].mean == pytest.approx((0.3 + 0.7) / 2)
    spread = 0.0625 * (0.3**2 + 0.1**2) + 0.25 * 0.2**2
    assert found.means["regret"].se == pytest.approx(math.sqrt(1.5 * spread))


def test_with_as_many_series_each_the_error_is_the_usual_one() -> None:
    values = np.random.default_rng(0).random((3, 4))
    found = Mean.of([[np.array([value]) for value in group] for group in values])
    assert found.mean == pytest.approx(values.mean())
    assert found.se == pytest.approx(values.std(ddof=1) / math.sqrt(12))
    assert found.se_seeds is None


def test_what_is_missing_is_left_out_and_never_zero() -> None:
    assert entry(summarised(ROWS), None, "a").means["coverage"] == Mean(
        mean=None, se=None, se_seeds=None
    )
    nan = np.nan
    found = Mean.of([[np.array([nan, 2.0]), np.array([nan, nan])], [np.array([4.0, 4.0])]])
    assert found.mean == 3.0
    assert found.se_seeds is None


def test_protocols_are_compared_seed_by_seed_with_the_first() -> None:
    entries = summarised(ROWS)
    assert entry(entries, None, "a").paired is None
    paired = entry(entries, None, "b").paired
    assert paired is not None
    assert paired.against == "a"
    assert paired.difference == pytest.approx((-0.15 + 0.1) / 2)
    assert (paired.wins, paired.ties, paired.losses) == (1, 0, 1)
    assert not paired.significant
    within = entry(entries, "n", "b").paired
    assert within is not None
    assert within.difference == pytest.approx(0.1)
    assert within.se is None
    assert (within.wins, within.ties, within.losses) == (0, 0, 1)


def test_a_difference_counts_from_two_standard_errors_on() -> None:
    steady, wild = (
        Comparison.of("a", [[np.array([value])] for value in values], within=False)
        for values in ([0.1, 0.12, 0.11], [0.1, -0.12, 0.11])
    )
    assert steady.significant
    assert steady.z is not None
    assert steady.z > 2
    assert not wild.significant


def test_no_difference_at_all_is_a_tie() -> None:
    found = Comparison.of("a", [[np.zeros(3)], [np.zeros(3)]], within=False)
    assert (found.z, found.significant) == (None, False)
    assert (found.wins, found.ties, found.losses) == (0, 2, 0)


def test_entries_come_by_fraction_matrix_and_protocol_with_the_overall_last() -> None:
    keys = [(e.matrix, e.run, e.protocol) for e in summarised(ROWS)]
    places = [("m", None), ("m", "0"), ("m", "1"), ("n", None), (None, None)]
    assert keys == [(*place, p) for place in places for p in ("a", "b")]


def test_a_series_of_several_has_entries_of_its_own() -> None:
    (found,) = (e for e in summarised(ROWS) if (e.run, e.protocol) == ("1", "a"))
    assert (found.matrix, found.series, found.means["regret"].mean) == ("m", 1, 0.4)
