"""Hours of a search, simulated: in which order trials start, and whether proposing overlaps.

Run as `make bench-wallclock` or `OPENBLAS_NUM_THREADS=1 python benchmarks/wallclock.py`; it takes
a few minutes. `--quick` tries it on few worlds and records nothing.

The real loop runs on virtual time: 89 tasks, ten rounds of one candidate, ten trials at once,
proposals of 15 to 20 minutes, as in the paper's runs on Terminal-Bench. The times of trials are
log-normal (`trial_times.py`); the two figures of the distribution are fitted so that full search
takes 22.2 hours and task-coevolve at 20% takes 11.5 when trials start as they were asked, which
is what the paper reports for GPT-5.6 Luna. Every setting meets the same worlds, and a trial takes
the same time in all of them.
"""

import argparse
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import record
from simulated_search import (
    FIFTH,
    FULL,
    LIMIT,
    NOISE,
    PAPER,
    PLACES,
    PROPOSAL,
    Place,
    Setting,
    Simulated,
    Times,
    drawn,
    fitted,
    simulate,
)

from coevolve.search.evaluation import Order, longest_first

BUDGETS = {"full": FULL, "20%": FIFTH}

ORDERS: dict[str, Callable[[Place], Order]] = {
    "as asked": lambda place: lambda state, cell: 0.0,
    "random": lambda place: _shuffled(np.random.default_rng([place.world.seed, 78])),
    "shortest first, learned": lambda place: lambda state, cell: -longest_first(state, cell),
    "longest first, learned (the engine's)": lambda place: longest_first,
    "longest first, learned, exact": lambda place: (
        lambda s, cell: -s.durations.expected(cell.task)
    ),
    "longest first, known": lambda place: lambda state, cell: -place.seconds(cell),
}
AS_ASKED, ENGINE = "as asked", "longest first, learned (the engine's)"
LONGER = {"full": 12, "20%": 13}
"""Rounds that fit into the same hours with overlap as ten do without."""


def _shuffled(rng: np.random.Generator) -> Order:
    return lambda state, cell: rng.random()


class Measured:
    """What is kept of a simulated search."""

    def __init__(self, done: Simulated) -> None:
        self.hours, self.least = done.hours, done.least_hours
        self.timed_out = done.timed_out
        self.truth, self.best = done.truth, done.best


Key = tuple[Setting, str]


def searches(seed: int, times: Times, keys: Sequence[Key]) -> list[Measured]:
    """Several searches of one world."""
    place = Place(seed, times)
    return [Measured(simulate(place, setting, ORDERS[name](place))) for setting, name in keys]


def order_keys() -> list[Key]:
    """Both budgets with and without overlap in every order, and the paper's baselines."""
    keys = [
        (setting._replace(overlap=overlap), order)
        for setting in BUDGETS.values()
        for overlap in (False, True)
        for order in ORDERS
    ]
    return keys + [(Setting(name, 0.2), AS_ASKED) for name in ("naive", "random-resample")]


def mean(values: Iterable[float], digits: int = 2) -> str:
    """A mean with its standard error."""
    found = np.array(list(values))
    error = found.std(ddof=1) / math.sqrt(len(found))
    return f"{found.mean():.{digits}f} ± {error:.{digits}f}"


def model_rows(found: dict[Key, list[Measured]]) -> list[dict[str, Any]]:
    """The simulated hours beside the paper's."""
    rows = []
    for name, paper in PAPER.items():
        setting = FULL if name == "full" else Setting(name, 0.2)
        mine = found[setting, AS_ASKED]
        hours = np.array([m.hours for m in mine])
        rows.append(
            {
                "protocol": name,
                "paper's hours": paper,
                "simulated": mean(hours),
                "spread of single searches": f"{hours.std(ddof=1):.2f}",
                "fitted": "yes" if setting in (FULL, FIFTH) else "no",
                "trials at the limit %": f"{100 * np.mean([m.timed_out for m in mine]):.1f}",
            }
        )
    return rows


def order_rows(found: dict[Key, list[Measured]], *, saved: bool) -> list[dict[str, Any]]:
    """Hours by order; or what an order saves, search by search, against the order asked."""
    columns = {
        f"{name}{', overlap' * overlap}": setting._replace(overlap=overlap)
        for name, setting in BUDGETS.items()
        for overlap in (False, True)
    }
    rows = []
    for order in ORDERS:
        row: dict[str, Any] = {"order": order}
        for column, setting in columns.items():
            mine, base = found[setting, order], found[setting, AS_ASKED]
            gains = [b.hours - m.hours for m, b in zip(mine, base, strict=True)]
            row[column] = mean(gains if saved else [m.hours for m in mine])
        rows.append(row)
    bound = {
        column: mean(
            b.hours - m.least if saved else m.least
            for m, b in zip(found[setting, ENGINE], found[setting, AS_ASKED], strict=True)
        )
        for column, setting in columns.items()
    }
    return [*(rows[1:] if saved else rows), {"order": "no order can beat", **bound}]


def quality_settings() -> dict[str, tuple[Setting, Setting]]:
    """Searches with overlap, each beside the one without that it is compared with."""
    pairs = {}
    for name, setting in BUDGETS.items():
        overlapped = setting._replace(overlap=True)
        pairs[f"{name}, 10 rounds of 1"] = (overlapped, setting)
        rounds = LONGER[name]
        pairs[f"{name}, {rounds} rounds of 1"] = (overlapped._replace(rounds=rounds), setting)
    wide = FIFTH._replace(rounds=20, candidates=3)
    pairs["20%, 20 rounds of 3"] = (wide._replace(overlap=True), wide)
    return pairs


def quality_rows(found: dict[Key, list[Measured]]) -> list[dict[str, Any]]:
    """True scores of winners in points, with and without overlap."""
    rows = []
    for name, (overlapped, plain) in quality_settings().items():
        ours, theirs = found[overlapped, ENGINE], found[plain, ENGINE]
        pairs = list(zip(ours, theirs, strict=True))
        rows.append(
            {
                "search with overlap": name,
                "hours": mean(m.hours for m in ours),
                "hours without": mean(m.hours for m in theirs),
                "winner": mean((100 * m.truth for m in ours), 1),
                "winner without": mean((100 * m.truth for m in theirs), 1),
                "difference": mean((100 * (a.truth - b.truth) for a, b in pairs), 1),
                "regret": mean((100 * (m.best - m.truth) for m in ours), 1),
                "regret without": mean((100 * (m.best - m.truth) for m in theirs), 1),
            }
        )
    return rows


def example_rows(times: Times, seed: int = 0, round: int = 5) -> list[dict[str, Any]]:
    """One round of a search, trial by trial, under two orders: for the figure."""
    place = Place(seed, times)
    rows = []
    for order in (AS_ASKED, ENGINE):
        done = simulate(place, FULL, ORDERS[order](place)).of(round)
        begin = min(trial.began for trial in done)
        free = [0.0] * PLACES
        for trial in done:
            at = (trial.began - begin) / 60
            lane = next(i for i in range(PLACES) if free[i] <= at + 1e-6)
            free[lane] = at + trial.seconds / 60
            numbers = {"began": round_(at), "minutes": round_(trial.seconds / 60)}
            rows.append({"order": order, "place": lane, **numbers})
    return rows


def round_(value: float) -> float:
    """For the record."""
    return round(value, 2)


def parameter_rows(times: Times, worlds: int) -> list[dict[str, Any]]:
    """What the simulation assumes."""
    values = {
        "median minutes of a trial": (times.median, "fitted"),
        "spread of tasks (sd of log)": (times.spread, "fitted"),
        "noise of trials (sd of log)": (NOISE, "assumed"),
        "limit in minutes": (LIMIT, "assumed"),
        "minutes of a proposal": (f"{PROPOSAL[0]:g} to {PROPOSAL[1]:g}", "the paper's"),
        "trials at once": (PLACES, "the paper's"),
        "simulated searches per cell": (worlds, ""),
    }
    return [{"what": k, "value": v, "from": source} for k, (v, source) in values.items()]


def main() -> None:
    """Fit, simulate, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing recorded")
    quick = parser.parse_args().quick
    seeds = range(6 if quick else 60)
    many = range(6 if quick else 120)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        draws = {s: list(pool.map(partial(drawn, setting=s), seeds)) for s in (FULL, FIFTH)}
        times = fitted(draws, seeds)

        def all_of(keys: Sequence[Key], seeds: Sequence[int]) -> dict[Key, list[Measured]]:
            done = list(pool.map(partial(searches, times=times, keys=keys), seeds))
            return {key: [found[i] for found in done] for i, key in enumerate(keys)}

        ordered = all_of(order_keys(), seeds)
        pairs = [s for pair in quality_settings().values() for s in pair]
        quality = all_of([(s, ENGINE) for s in dict.fromkeys(pairs)], many)
    tables = {
        "parameters": parameter_rows(times, len(seeds)),
        "model": model_rows(ordered),
        "orders": order_rows(ordered, saved=False),
        "saved": order_rows(ordered, saved=True),
        "overlap": quality_rows(quality),
    }
    for name, rows in tables.items():
        record.show(name, rows)
    if not quick:
        record.save("wallclock", {**tables, "example": example_rows(times)})


if __name__ == "__main__":
    main()
