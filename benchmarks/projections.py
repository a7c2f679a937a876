"""How long the projections, figures and reports of runs take, and how large a report is.

Run as `make bench-projections`; it takes a minute. The runs have 100,000 outcomes, or many
candidates; their events go through the recorder and the state of a real run. Seconds are of CPU,
the least of three, after the modules are imported.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import engine_runs
import record

from coevolve import Pool, Selector
from coevolve.figures import run_figures
from coevolve.reports import check_report, html_report, markdown_report, run_document
from coevolve.search.budget import Settings
from coevolve.search.loop import open_run
from coevolve.store import RunStore
from coevolve.views.grid_order import grid_orders
from coevolve.views.timeline import Timeline

REPEATS = 3
RUNS = {
    "60 candidates, 89 tasks": (1_250, 89, 0.2, 3),
    "200 candidates, 2,000 tasks": (80_000, 2_000, 0.2, 10),
    "490 candidates, 1,000 tasks": (100_000, 1_000, 0.2, 10),
    "3,000 candidates, 2,000 tasks": (64_000, 2_000, 0.01, 30),
}
"""Outcomes, tasks, fraction and candidates per round of each run."""


def made(folder: Path, outcomes: int, tasks: int, fraction: float, per_round: int) -> RunStore:
    """A run of so many outcomes under the paper's protocol."""

    def opened(store: RunStore, outcomes: int) -> None:
        open_run(
            store,
            name="long",
            settings=Settings(rounds=outcomes, candidates=per_round),
            selector=Selector(Pool([f"task-{i:04d}" for i in range(tasks)]), fraction=fraction),
            starts={f"start-{i}": {"harness.py": f"# {i}\n".encode()} for i in range(2)},
        )

    engine_runs._open, engine_runs.PER_ROUND = opened, per_round
    engine_runs.write_long_journal(folder, outcomes)
    return RunStore.read(folder)


def seconds[T](run: Callable[[], T]) -> tuple[str, T]:
    """The least CPU time of some calls, and the result."""
    times: list[float] = []
    results: list[T] = []
    for _ in range(REPEATS):
        began = time.process_time()
        results[:] = [run()]
        times.append(time.process_time() - began)
    return f"{min(times):.2f}", results[0]


def measured(name: str, store: RunStore) -> dict[str, str]:
    """The row of a run."""
    opening, timeline = seconds(lambda: Timeline.of(store))
    snapshot, now = seconds(timeline.snapshot)
    matrix, grid = seconds(timeline.grid)
    orders, _ = seconds(lambda: grid_orders(grid))
    figures, drawn = seconds(lambda: run_figures(now, grid))
    report, document = seconds(lambda: run_document(Timeline.of(store), store, version="0"))
    page = html_report(document.numbers, {key: one.svg for key, one in drawn.items()})
    if found := check_report(page, document):
        raise SystemExit(f"the report of {name} does not fit its run: {found[0]}")
    markdown = markdown_report(document.numbers, {})
    return {
        "run": name,
        "outcomes": f"{len(timeline.columns):,}",
        "read the journal, s": opening,
        "snapshot, s": snapshot,
        "matrix, s": matrix,
        "orders, s": orders,
        "figures, s": figures,
        "report, s": report,
        "HTML, MB": f"{len(page.encode()) / 1e6:.1f}",
        "Markdown, MB": f"{len(markdown.encode()) / 1e6:.1f}",
    }


def main() -> None:
    """Measure, print and record."""
    rows = []
    for name, shape in RUNS.items():
        with tempfile.TemporaryDirectory() as folder, made(Path(folder, "run"), *shape) as store:
            rows.append(measured(name, store))
    record.show("Projections, figures and reports", rows)
    record.save("projections", {"runs": rows})


if __name__ == "__main__":
    main()
