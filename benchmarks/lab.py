"""Speed of the replay lab, of the joint model and of whole searches on a table.

Run as `make bench` or `OPENBLAS_NUM_THREADS=1 python benchmarks/lab.py`. Everything runs in one
process, and with that setting on one core.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import record

from coevolve import protocols
from coevolve.analysis import replay, synthetic_matrix
from coevolve.core.joint import Joint
from coevolve.core.posterior import Cells, Posterior
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.table_search import SearchSetting, TableSearches

SEEDS = 3
TABLE = Path(__file__).parent / "tables" / "service-desk.npz"
SETTINGS = (
    ("full", 1.0),
    ("adaptive", 0.2),
    ("adaptive", 0.07),
    ("task-coevolve", 0.2),
    ("naive", 0.2),
)
SEARCHES = 10


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds an act takes, and its result."""
    start = time.perf_counter()
    result = act()
    return time.perf_counter() - start, result


def one_series() -> list[dict[str, Any]]:
    """Replay of one 60-candidate x 500-task series under every protocol, per seed."""
    matrix = synthetic_matrix(tasks=500, candidates=60, worlds=1)
    rows: list[dict[str, Any]] = []
    names = [known.name for known in protocols()]
    replay([matrix], protocols=names, fractions=[0.01], seeds=[0])  # imports and first calls
    for name in names:
        seconds, _ = timed(partial(replay, [matrix], protocols=[name], seeds=range(SEEDS)))
        rows.append({"protocol": name, "seconds per seed": round(seconds / SEEDS, 3)})
    seconds, _ = timed(partial(replay, [matrix], protocols=names, seeds=range(SEEDS)))
    return [*rows, {"protocol": "all in one", "seconds per seed": round(seconds / SEEDS, 3)}]


def cells_of(candidates: int, tasks: int, share: float, rng: np.random.Generator) -> Cells:
    """Outcomes of an item-response world: two candidates on all tasks, the others on a share."""
    skill, ease = rng.normal(0, 0.7, candidates), rng.normal(0, 2.5, tasks)
    seen = rng.random((candidates, tasks)) < share
    seen[:2] = True
    row, column = np.nonzero(seen)
    solved = rng.random(len(row)) < 1 / (1 + np.exp(-(skill[row] + ease[column])))
    return Cells(
        candidate=row,
        task=column,
        score=solved.astype(np.float64),
        trials=np.ones(len(row)),
        rounds=(0, 0, *range(1, candidates - 1)),
        shares=np.full(tasks, 1 / tasks),
    )


def without(cells: Cells, last: int) -> Cells:
    """The same outcomes but for the last few."""
    return Cells(
        candidate=cells.candidate[:-last],
        task=cells.task[:-last],
        score=cells.score[:-last],
        trials=cells.trials[:-last],
        rounds=cells.rounds,
        shares=cells.shares,
    )


def refit(candidates: int, tasks: int) -> dict[str, Any]:
    """A first fit, and a refit after one more outcome."""
    cells = cells_of(candidates, tasks, 0.2, np.random.default_rng(candidates))
    model = Joint()
    start: Posterior = model.fit(without(cells, 1), None)
    cold = [timed(lambda: model.fit(cells, None)) for _ in range(3)]
    warm = [timed(lambda: model.fit(cells, start)) for _ in range(15)]
    gap = np.abs(cold[0][1].scores - warm[0][1].scores).max()
    return {
        "candidates": candidates,
        "tasks": tasks,
        "outcomes": len(cells.score),
        "first fit ms": round(1e3 * statistics.median(t for t, _ in cold), 1),
        "refit ms": round(1e3 * statistics.median(t for t, _ in warm), 1),
        "largest difference of scores": f"{gap:.0e}",
    }


def table_searches() -> list[dict[str, Any]]:
    """Whole searches of 20 rounds of 3 candidates on the table of service-desk."""
    searches, rows = TableSearches(HarnessTable.read(TABLE)), []
    for protocol, fraction in SETTINGS:
        setting = SearchSetting(protocol=protocol, fraction=fraction)
        searches.search(setting, 0)  # first calls
        start = time.process_time()
        for seed in range(1, SEARCHES + 1):
            searches.search(setting, seed)
        seconds = (time.process_time() - start) / SEARCHES
        rows.append(
            {
                "protocol": protocol,
                "fraction": f"{fraction:.0%}",
                "CPU seconds": round(seconds, 2),
                "searches per second": round(1 / seconds, 1),
            }
        )
    return rows


def main() -> None:
    """Measure, print and record."""
    series = one_series()
    record.show("Replay of a series of 60 candidates and 500 tasks at 20%, one core", series)
    fits = [refit(*size) for size in ((20, 89), (60, 500), (200, 1_000), (60, 10_000))]
    record.show("Joint model: first fit, and refit after one more outcome", fits)
    searches = table_searches()
    record.show("Whole searches on a table, one core", searches)
    record.save("lab", {"replay": series, "joint": fits, "searches": searches})


if __name__ == "__main__":
    main()
