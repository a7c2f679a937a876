"""A family of harnesses in full, and how well each protocol would have searched them.

Run as `make bench-family` or `python benchmarks/family.py`; it takes about ten minutes on two
cores. Every harness of the family is evaluated on the whole validation and test split of the
service-desk set with the embedded model; then the protocols search the recorded outcomes, which
costs no further evaluation. `--cache FILE` keeps the model's answers for another time.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import record
from textclass import SLOTS, Bench

from coevolve.analysis import Matrix, replay
from coevolve.benchmarks.textclass import TextClassification
from coevolve.models.embedded import EmbeddedProvider
from coevolve.models.gateway import Gateway
from coevolve.models.rate_limits import Pace
from coevolve.models.response_cache import ResponseCache
from coevolve.runs.config import read_config
from coevolve.store import RunStore

FAMILY = Path(__file__).parents[1] / "examples" / "text_classification" / "family.toml"
PROTOCOLS = ("full", "naive", "random-resample", "task-coevolve", "joint", "adaptive")
SEEDS = 100


def harnesses() -> list[str]:
    """The starting harnesses, then the candidates in the order of their rounds."""
    config = read_config(FAMILY).to_json()
    rounds = config["proposer"]["folders"]
    return [*config["benchmark"]["starts"], *(name for round in rounds for name in round)]


async def measured(
    names: list[str], scratch: Path, cache: Path
) -> tuple[list[dict[str, Any]], Any]:
    """Accuracies of the harnesses, and their outcomes; what two of them ask is asked once."""
    rows = []
    gateway = Gateway(
        EmbeddedProvider(slots=SLOTS),
        pace=Pace(concurrency=SLOTS),
        cache=ResponseCache(cache),
    )
    with RunStore.create(scratch / "run") as store:
        bench = Bench(store, gateway, None, None)
        try:
            for name in names:
                row = await bench.row("service-desk", name)
                rows.append({key: row[key] for key in ("harness", "validation", "test")})
                print(rows[-1], flush=True)
        finally:
            await gateway.close()
    tasks = TextClassification(("service-desk",)).pool.tasks
    return rows, np.array([[bench.outcomes[name][task] for task in tasks] for name in names])


def searched(names: list[str], outcomes: Any) -> list[dict[str, Any]]:
    """What each protocol finds among the outcomes, on average over seeds."""
    matrix = Matrix.from_arrays("family", outcomes, candidates=np.array(names))
    found = replay(
        [matrix], protocols=PROTOCOLS, fractions=[0.2], seeds=range(SEEDS), per_round=2, workers=2
    )
    rows = []
    for protocol in PROTOCOLS:
        means = {n: m.mean or 0.0 for n, m in found.overall(protocol, 0.2).means.items()}
        rows.append(
            {
                "protocol": protocol,
                "points below the best": round(100 * means["regret"], 2),
                "Spearman": round(means["spearman"], 3),
                "searches": SEEDS,
            }
        )
    return rows


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, help="a file that keeps the model's answers")
    names = harnesses()
    with tempfile.TemporaryDirectory() as folder:
        cache = parser.parse_args().cache or Path(folder) / "responses.db"
        rows, outcomes = asyncio.run(measured(names, Path(folder), cache))
    tables: dict[str, Any] = {"harnesses": rows, "protocols at 20%": searched(names, outcomes)}
    for title, table in tables.items():
        record.show(title, table)
    record.save("family", tables)


if __name__ == "__main__":
    main()
