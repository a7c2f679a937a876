"""Searches without rounds, simulated: hours against the true scores of winners.

Run as `make bench-in_flight` or `OPENBLAS_NUM_THREADS=1 python benchmarks/in_flight.py`; it takes
some minutes. `--quick` tries it on few worlds and records nothing.

The worlds, the times of trials and proposals and the loop are those of `wallclock.py`: 89 tasks,
ten candidates proposed one by one, ten trials at once. The fitted times are read from its record.
Every setting meets the same worlds.
"""

import argparse
import json
import math
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import record
from simulated_search import FIFTH, FULL, PLACES, Place, Setting, Times, simulate

RESULTS = Path(__file__).parent / "results" / "wallclock.json"
SEARCHES = {
    "20%": (FIFTH, 300),
    "20%, adaptive": (Setting("adaptive", 0.2), 60),
    "full": (FULL, 40),
}
IN_FLIGHT = (1, 2, 3, 4, 8)
ROUNDS = "rounds"


class Measured(NamedTuple):
    """What is kept of a simulated search: `busy` is the share of the places in use."""

    hours: float
    truth: float
    best: float
    busy: float


def recorded_times() -> Times:
    """The times that `wallclock.py` fitted to the paper's hours."""
    rows = json.loads(RESULTS.read_text())["parameters"]
    values = {row["what"]: row["value"] for row in rows}
    return Times(
        median=float(values["median minutes of a trial"]),
        spread=float(values["spread of tasks (sd of log)"]),
    )


def ways(setting: Setting) -> dict[str, Setting]:
    """A search with rounds, with overlap, and without rounds."""
    flights = {f"in_flight = {k}": setting._replace(in_flight=k) for k in IN_FLIGHT}
    return {ROUNDS: setting, "overlap": setting._replace(overlap=True), **flights}


def measured(seed: int, times: Times, setting: Setting) -> Measured:
    """One search."""
    done = simulate(Place(seed, times), setting)
    used = sum(trial.seconds for trial in done.trials) / 3600
    return Measured(done.hours, 100 * done.truth, 100 * done.best, used / PLACES / done.hours)


def mean(values: Iterable[float], digits: int) -> str:
    """A mean with its standard error."""
    found = np.array(list(values))
    error = found.std(ddof=1) / math.sqrt(len(found))
    return f"{found.mean():.{digits}f} ± {error:.{digits}f}"


def row(search: str, way: str, mine: list[Measured], rounds: list[Measured]) -> dict[str, Any]:
    """Hours, and true scores in points, beside those of the search with rounds."""
    pairs = zip(mine, rounds, strict=True)
    return {
        "search": search,
        "candidates": way,
        "hours": mean((m.hours for m in mine), 2),
        "places in use %": f"{100 * np.mean([m.busy for m in mine]):.0f}",
        "winner": mean((m.truth for m in mine), 1),
        "difference": mean((a.truth - b.truth for a, b in pairs), 1),
        "regret": mean((m.best - m.truth for m in mine), 1),
        "searches": len(mine),
    }


def main() -> None:
    """Simulate, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing recorded")
    quick = parser.parse_args().quick
    times, rows = recorded_times(), []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for search, (setting, worlds) in SEARCHES.items():
            seeds = range(6 if quick else worlds)
            found = {
                way: list(pool.map(partial(measured, times=times, setting=one), seeds))
                for way, one in ways(setting).items()
            }
            rows += [row(search, way, mine, found[ROUNDS]) for way, mine in found.items()]
            record.show(search, rows[-len(found) :])
    if not quick:
        record.save("in_flight", {"searches": rows})


if __name__ == "__main__":
    main()
