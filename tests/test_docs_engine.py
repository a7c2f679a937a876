"""The page on the engine shows what the benchmarks recorded."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "engine.md").read_text()


def recorded(results: str, table: str) -> list[dict[str, Any]]:
    data = json.loads((ROOT / "benchmarks" / "results" / f"{results}.json").read_text())
    rows: list[dict[str, Any]] = data[table]
    return rows


def test_how_far_the_simulation_is_from_the_papers_random_draws_follows_from_the_record() -> None:
    [row] = [r for r in recorded("wallclock", "model") if r["protocol"] == "random-resample"]
    hours = float(row["simulated"].split(" ± ")[0])
    gap = (hours - row["paper's hours"]) / float(row["spread of single searches"])
    assert f"was {gap:.1f} standard deviations" in PAGE


def test_what_longest_first_saves_follows_from_the_record() -> None:
    rows = {row["order"]: row for row in recorded("wallclock", "saved")}

    def saved(order: str, column: str = "full") -> float:
        return float(rows[f"longest first, {order}"][column].split(" ± ")[0])

    engine = "learned (the engine's)"
    full, fifth = saved(engine), saved(engine, "20%")
    assert f"saves {full:.1f} hours of full search and {fifth:.1f} at 20%" in PAGE
    assert f"would save {saved('known') - full:.2f} more" in PAGE
    assert f"powers of two costs {saved('learned, exact') - full:.2f}" in PAGE


def test_what_overlap_costs_follows_from_the_record() -> None:
    rows = {row["search with overlap"]: row for row in recorded("wallclock", "overlap")}
    full, fifth = (
        -float(rows[f"{budget}, 10 rounds of 1"]["difference"].split(" ± ")[0])
        for budget in ("full", "20%")
    )
    assert f"costs {full:.1f} points in full search and {fifth:.1f} at 20%" in PAGE


def test_what_candidates_under_way_save_and_cost_follows_from_the_record() -> None:
    rows = {(r["search"], r["candidates"]): r for r in recorded("in_flight", "searches")}

    def of(search: str, candidates: str, column: str) -> tuple[float, float]:
        value, error = rows[search, candidates][column].split(" ± ")
        return float(value), float(error)

    three, rounds = (of("20%", way, "hours")[0] for way in ("in_flight = 3", "rounds"))
    assert f"take {three:.2f} hours in place of {rounds:.2f} with rounds" in PAGE
    gain, error = of("20%", "in_flight = 3", "difference")
    assert f"it is {gain:.1f} ± {error:.1f} points higher" in PAGE
    assert gain >= -1.0
    hours, loss = (of("20%", "overlap", column)[0] for column in ("hours", "difference"))
    assert f"`overlap` takes {hours:.2f} hours and loses {-loss:.1f}" in PAGE
    for way in ("in_flight = 2", "in_flight = 3"):
        gain, error = of("20%, adaptive", way, "difference")
        assert f"{gain:+.1f} ± {error:.1f}" in PAGE
        assert gain > -2 * error
    assert three <= 5.5


def test_what_a_trial_costs_in_memory_follows_from_the_record() -> None:
    first, *_, last = recorded("engine", "memory")
    trials = [int(row["trials"].replace(",", "")) for row in (first, last)]
    grown = (float(last["MB"]) - float(first["MB"])) * 2**20 / (trials[1] - trials[0])
    assert f"about {round(grown, -1):.0f} bytes a trial" in PAGE
