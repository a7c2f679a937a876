"""Pages show what the benchmarks recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TABLES = {
    "embedded-model": [("embedded", "speed")],
    "engine": [
        ("faults", "faults"),
        *(("wallclock", table) for table in ("parameters", "model", "orders", "saved", "overlap")),
        ("in_flight", "searches"),
        *(("engine", table) for table in ("trials", "journal", "memory")),
        *(("soak", table) for table in ("runs", "memory")),
    ],
    "harness-table": [("table_agreement", "agreement")],
    "history": [("history", "imports")],
    "isolation": [("test-long", "attacks")],
    "models": [("latency", "evaluations")],
    "ray": [("ray_trials", table) for table in ("speed", "latency", "shipping", "memory")],
    "report": [("projections", "runs")],
    "searches": [
        ("search", "table"),
        *(
            ("searches", table)
            for table in (
                "offline",
                "offline: budgets",
                "offline: accuracy",
                "offline: solvability",
                "offline: swap",
                "offline: equal evaluations",
                "mutation",
            )
        ),
        *(("searches_s2d", table) for table in ("offline", "offline: equal evaluations")),
        ("searches_law", "offline"),
        *(("expectations", table) for table in ("correlations", "searches")),
        ("limits", "informed"),
        ("limits", "choices"),
    ],
    "terminal-bench": [
        ("harbor_search", "candidates"),
        ("harbor_search", "search"),
        ("harbor_trials", "phases"),
        ("harbor_trials", "counts"),
    ],
    "terminal-bench-environments": [
        ("harbor_comparison", "environments"),
        ("harbor_environment", "environments"),
    ],
    "text-classification": [
        ("textclass", "embedded model"),
        ("family", "harnesses"),
        ("family", "protocols at 20%"),
    ],
    "ui": [("dashboard", table) for table in ("drawing", "opening", "live", "machine")],
}


@pytest.mark.record
@pytest.mark.parametrize(
    ("page", "results", "table"),
    [(page, file, table) for page, tables in TABLES.items() for file, table in tables],
)
def test_every_recorded_table_is_on_its_page(page: str, results: str, table: str) -> None:
    data = json.loads((ROOT / "benchmarks" / "results" / f"{results}.json").read_text())
    rows = data[table]
    lines = [
        f"| {' | '.join(rows[0])} |",
        "|" + "---|" * len(rows[0]),
        *(f"| {' | '.join(str(value) for value in row.values())} |" for row in rows),
    ]
    assert "\n".join(lines) + "\n" in (ROOT / "docs" / f"{page}.md").read_text()


@pytest.mark.record
def test_the_table_of_strategic_candidates_is_the_recorded_one() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "strategic.json").read_text())
    by_protocol: dict[str, dict[str, dict[str, Any]]] = {}
    for row in record["faults"]:
        by_protocol.setdefault(row["protocol"], {})[row["fault"]] = row

    def cells(row: dict[str, Any]) -> str:
        estimate = row["estimate"].replace("nan", "refused")
        return (
            f"{row['chosen']} / {row['chosen if honest']} | "
            f"{estimate} / {row['estimate if honest']} | {row['same choice']} of {row['searches']}"
        )

    usual, adaptive = by_protocol["task-coevolve"], by_protocol["adaptive"]
    lines = [f"| {name} | {cells(usual[name])} | {cells(adaptive[name])} |" for name in usual]
    assert "\n".join(lines) + "\n" in (ROOT / "docs" / "failures.md").read_text()
