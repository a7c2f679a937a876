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


def test_what_a_trial_costs_in_memory_follows_from_the_record() -> None:
    first, *_, last = recorded("engine", "memory")
    trials = [int(row["trials"].replace(",", "")) for row in (first, last)]
    grown = (float(last["MB"]) - float(first["MB"])) * 2**20 / (trials[1] - trials[0])
    assert f"about {round(grown, -1):.0f} bytes a trial" in PAGE
