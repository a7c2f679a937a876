"""Speed and memory of imports: a million past outcomes in each format, into a run on disk.

Run as `make bench-history` or `python benchmarks/history.py`; it takes a few minutes. `--quick`
imports 10,000 outcomes and records nothing. Each import runs in a process of its own, as the
command does. *Seconds* is the whole of it, with the start of Python; *reopen* is the time to read
the state of the run afterwards, as every command does.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import record

from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.runs.session import read_state

CONFIG = """
[search]
rounds = 1
[benchmark]
kind = "synthetic"
pools = {{ all = {tasks} }}
[proposer]
kind = "synthetic"
"""
IMPORT = "import coevolve, sys; coevolve.open(sys.argv[1]).import_past(sys.argv[2])"
LIMIT = 30.0
"""Seconds that an import of a million outcomes may take."""


def rows(candidates: int, tasks: int) -> Iterator[tuple[str, str, float, float]]:
    """Candidate, task, score and cost; the first two candidates are the starting harnesses."""
    rng = np.random.default_rng(0)
    names = SyntheticWorld(pools={"all": tasks}).pool.tasks
    for number in range(candidates):
        name = f"start-{number}" if number < 2 else f"candidate-{number}"
        scores = rng.integers(0, 2, tasks).tolist()
        costs = rng.random(tasks).round(4).tolist()
        for task, score, cost in zip(names, scores, costs, strict=True):
            yield name, task, float(score), cost


def write_csv(path: Path, candidates: int, tasks: int) -> None:
    """A CSV file."""
    with path.open("w") as file:
        file.write("candidate,task,score,trial,cost\n")
        file.writelines(f"{n},{t},{s},0,{c}\n" for n, t, s, c in rows(candidates, tasks))


def write_jsonl(path: Path, candidates: int, tasks: int) -> None:
    """A JSONL file."""
    with path.open("w") as file:
        for name, task, score, cost in rows(candidates, tasks):
            row = {"candidate": name, "task": task, "score": score, "cost": cost}
            file.write(json.dumps(row) + "\n")


def write_parquet(path: Path, candidates: int, tasks: int) -> None:
    """A Parquet file."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    columns = zip(*rows(candidates, tasks), strict=True)
    table = dict(zip(("candidate", "task", "score", "cost"), map(list, columns), strict=True))
    parquet.write_table(pa.table(table), path)


WRITERS: dict[str, Callable[[Path, int, int], None]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
}


def measured(kind: str, candidates: int, tasks: int) -> dict[str, Any]:
    """One import, and the run that it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        config, results = Path(folder) / "big.toml", Path(folder) / f"past.{kind}"
        config.write_text(CONFIG.format(tasks=tasks))
        WRITERS[kind](results, candidates, tasks)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-c", IMPORT, config, results], check=True, cwd=folder)
        seconds = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        run = Path(folder) / "runs" / "big"
        (done,) = read_state(run).past.imports
        return {
            "format": kind,
            "outcomes": done.phase_0 + done.observed,
            "MB": round(results.stat().st_size / 1e6, 1),
            "seconds": round(seconds, 1),
            "CPU s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
            "peak MB": round(after.ru_maxrss / 1e3),
            "journal MB": round((run / "run.db").stat().st_size / 1e6, 1),
            "reopen s": round(time.perf_counter() - began, 1),
        }


def main() -> None:
    """Measure every format, and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few outcomes; record nothing")
    quick = parser.parse_args().quick
    size = (100, 100) if quick else (1_000, 1_000)
    table = [measured(kind, *size) for kind in WRITERS]
    record.show(f"imports of {size[0] * size[1]:,} outcomes", table)
    slow = [row["format"] for row in table if row["seconds"] >= LIMIT]
    print(f"\nover {LIMIT:g} s: {', '.join(slow) or 'none'}")
    if not quick:
        record.save("history", {"imports": table})


if __name__ == "__main__":
    main()
