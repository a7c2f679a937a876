"""Starting workers: our fork server, multiprocessing's fork server, and plain processes.

Every worker builds the text-classification benchmark on the embedded set. `multiprocessing`
imports the benchmark's module once (preload), but builds the benchmark in every worker; our fork
server builds it once. Run as `make bench-workers`; `--quick` runs everything once and records
nothing.
"""

import argparse
import asyncio
import json
import multiprocessing.forkserver
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import record

from coevolve.executors.isolation import Limits
from coevolve.executors.local import WorkerPool
from coevolve.executors.worker_process import Held, ServiceUse
from coevolve.executors.workload import Spec

MODULE = "coevolve.benchmarks.textclass.text_classification"
SPEC = Spec(
    factory=f"{MODULE}:TextClassification",
    arguments={"sets": ["service-desk"], "starts": ["zero-shot", "few-shot"]},
    folder=Path(),
)
COUNTS = (2, 32)


async def from_pool(count: int, *, forked: bool) -> dict[str, float]:
    """Workers of the engine's pool."""
    limits = asdict(Limits())
    setup = {"spec": SPEC.to_json(), "isolation": "process-as-root", "limits": limits}
    begun = time.perf_counter()
    pool = WorkerPool(setup, size=count, start_seconds=300, services={}, forked=forked)
    async with AsyncExitStack() as stack:
        held = Held(name="none", address="", state=None)
        borrowed = (pool.borrowed(held, 300, ServiceUse()) for _ in range(count))
        workers = await asyncio.gather(*(stack.enter_async_context(one) for one in borrowed))
        seconds = time.perf_counter() - begun
        memory = sum(megabytes(worker.pid) for worker in workers if worker.pid)
    await pool.close()
    return {"seconds": seconds, "MB": memory}


def build(ready: Connection) -> None:
    """A worker of multiprocessing: builds the benchmark, says so, waits for the end."""
    SPEC.build()
    ready.send(True)
    ready.recv()


def from_multiprocessing(count: int) -> dict[str, float]:
    """Workers of multiprocessing's fork server."""
    context = get_context("forkserver")
    context.set_forkserver_preload([MODULE, "coevolve.executors.worker", "workers"])
    begun = time.perf_counter()
    pairs = [context.Pipe() for _ in range(count)]
    processes = [context.Process(target=build, args=(theirs,)) for _, theirs in pairs]
    for process in processes:
        process.start()
    for ours, _ in pairs:
        ours.recv()
    seconds = time.perf_counter() - begun
    memory = sum(megabytes(process.pid) for process in processes if process.pid)
    for ours, _ in pairs:
        ours.send(True)
    for process in processes:
        process.join()
    stop = getattr(multiprocessing.forkserver, "_forkserver")._stop  # noqa: B009
    stop()  # so that its CPU time is counted
    return {"seconds": seconds, "MB": memory}


def megabytes(pid: int) -> float:
    """Memory of a process; pages shared by several processes count in proportion."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no Pss")


WAYS: dict[str, Callable[[int], dict[str, float]]] = {
    "our fork server": lambda count: asyncio.run(from_pool(count, forked=True)),
    "multiprocessing's fork server": from_multiprocessing,
    "plain processes": lambda count: asyncio.run(from_pool(count, forked=False)),
}


def apart(way: str, count: int) -> dict[str, float]:
    """One start in a process of its own, so that its CPU time is counted alone."""
    command = [sys.executable, __file__, "--one", way, str(count)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(out))


def one(way: str, count: int) -> None:
    """Measure one start and print it as JSON."""
    found = WAYS[way](count)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({**found, "CPU s": used.ru_utime + used.ru_stime}))


def table(repeats: int) -> list[dict[str, Any]]:
    """The median of several starts; the ways take turns."""
    rows = []
    for count in COUNTS:
        runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(repeats):
            for way in WAYS:
                runs[way].append(apart(way, count))
        for way, found in runs.items():
            middle = {key: statistics.median(run[key] for run in found) for key in found[0]}
            rows.append(
                {
                    "workers": count,
                    "started by": way,
                    "all ready after s": f"{middle['seconds']:.2f}",
                    "CPU s": f"{middle['CPU s']:.2f}",
                    "MB of all workers": f"{middle['MB']:.0f}",
                }
            )
    return rows


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="once, and nothing recorded")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], int(options.one[1]))
        return
    rows = table(1 if options.quick else 5)
    record.show("Workers of the text-classification benchmark", rows)
    if not options.quick:
        record.save("workers", {"starts": rows})


if __name__ == "__main__":
    main()
