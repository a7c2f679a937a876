"""Trials on Ray and on one machine side by side: how many per second, and what they cost.

Trials sleep, so a machine with few cores can have many slots. Efficiency is the time that trials
of 200 ms would take if every slot were always busy, divided by the time they took. Run as
`make bench-ray_trials`; `--quick` runs a little of everything and records nothing. `--trials`
sets how many trials the head's memory is measured over. Ray runs on the loopback address.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # stay on the loopback address
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"

import record
from process_memory import megabytes_of

from coevolve.executors.local import LocalExecutor
from coevolve.executors.ray.ray_connection import ClusterPlace
from coevolve.executors.ray.ray_executor import RayExecutor
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Trial
from coevolve.testing.sample_benchmark import HARNESS

SPEC = Spec(factory="coevolve.testing.sample_benchmark:SampleBenchmark")
SLOTS = (64, 256)
NAP = 0.2


class Contents(MemoryJournal):
    """A journal in memory with one candidate."""

    def __init__(self, more: int = 0) -> None:
        super().__init__()
        files = {"harness.py": HARNESS}
        files |= {f"part{n}.py": os.urandom(5_000) for n in range(more)}
        for data in files.values():
            self.put(data)
        self.bytes = sum(map(len, files.values()))
        self.candidate = Candidate.of(files, name="sample")


def made(kind: str, contents: Contents, slots: int, address: str | None = None) -> Any:
    """An executor with so many slots."""
    if kind == "local":
        return LocalExecutor(SPEC, contents=contents, workers=slots)
    place = ClusterPlace(address=address)
    return RayExecutor(SPEC, contents=contents, workers=slots, place=place)


async def trials(executor: Any, contents: Contents, task: str, count: int, slots: int) -> float:
    """Seconds for some trials with all slots in use."""
    numbers = iter(range(count))

    async def slot() -> None:
        for number in numbers:
            trial = Trial(candidate="sample", task=task, trial=number)
            result = await executor.run(contents.candidate, trial)
            assert result.fault is None, result.fault

    begun = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(min(slots, count))))
    return time.perf_counter() - begun


def used[T](executor: Any, use: Callable[[Any], Awaitable[T]]) -> T:
    """What using an executor gives; it is closed in any case."""

    async def main() -> T:
        try:
            return await use(executor)
        finally:
            await executor.close()

    return asyncio.run(main())


def speed(kind: str, slots: int, rounds: int) -> dict[str, Any]:
    """Trials that do nothing, and trials that sleep, on warm workers."""
    contents = Contents()

    async def use(executor: Any) -> dict[str, Any]:
        await trials(executor, contents, f"sleep:{NAP}", 2 * slots, slots)
        nothing = 10 * slots
        before = time.process_time()
        idle = await trials(executor, contents, "score:0.5", nothing, slots)
        head = (time.process_time() - before) / nothing
        naps = rounds * slots
        asleep = await trials(executor, contents, f"sleep:{NAP}", naps, slots)
        ideal = naps * NAP / slots
        return {
            "executor": kind,
            "slots": slots,
            "no-op trials a second": f"{nothing / idle:.0f}",
            "CPU ms of the head a trial": f"{1e3 * head:.2f}",
            "trials of 200 ms a second": f"{naps / asleep:.0f}",
            "efficiency %": f"{100 * ideal / asleep:.0f}",
            "load before": f"{load:.1f}",
        }

    load = os.getloadavg()[0]
    return used(made(kind, contents, slots), use)


def latency(kind: str, count: int) -> dict[str, Any]:
    """How long one trial takes that does nothing, one after another."""
    contents = Contents()

    async def use(executor: Any) -> dict[str, Any]:
        await trials(executor, contents, "score:0.5", 10, 1)
        found = [await trials(executor, contents, "score:0.5", 1, 1) for _ in range(count)]
        cuts = statistics.quantiles(found, n=20)
        return {
            "executor": kind,
            "trials": count,
            "median ms": f"{1e3 * statistics.median(found):.2f}",
            "95% ms": f"{1e3 * cuts[18]:.2f}",
            "load before": f"{load:.1f}",
        }

    load = os.getloadavg()[0]
    return used(made(kind, contents, 1), use)


def memory(count: int, slots: int = 16) -> list[dict[str, Any]]:
    """The memory of the head's process while trials that do nothing are run."""
    contents = Contents()

    async def use(executor: Any) -> list[dict[str, Any]]:
        await trials(executor, contents, "score:0.5", 1_000, slots)
        rows, done, begun = [], 0, time.perf_counter()
        for _ in range(5):
            rows.append(row(done, begun))
            await trials(executor, contents, "score:0.5", count // 5, slots)
            done += count // 5
        return [*rows, row(done, begun)]

    def row(done: int, begun: float) -> dict[str, Any]:
        return {
            "trials": f"{done:,}",
            "MB of the head": f"{megabytes_of(os.getpid()):.0f}",
            "MB of Ray's control store": f"{megabytes_of(control_store()):.0f}",
            "seconds": f"{time.perf_counter() - begun:.0f}",
        }

    return used(made("ray", contents, slots), use)


def control_store() -> int:
    """The process id of the store of the cluster that this process started."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            parent = int((entry.parent / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"gcs_server" in entry.read_bytes():
                return int(entry.parent.name)
        except OSError:
            continue
    raise RuntimeError("this process has no cluster")


def shipping() -> list[dict[str, Any]]:
    """The bytes that reach three nodes for one candidate, whatever the number of trials."""
    import ray
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"node_ip_address": "127.0.0.1", "object_store_memory": 80_000_000}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, **node},
    )
    contents, rows = Contents(more=10), list[dict[str, Any]]()
    try:
        for _ in range(3):
            cluster.add_node(num_cpus=4, **node)

        async def use(executor: Any) -> None:
            for count in (12, 120):
                await trials(executor, contents, "sleep:0.05", count, 12)
                rows.append(
                    {
                        "trials": count if not rows else count + 12,
                        "nodes": 3,
                        "bytes of the candidate": f"{contents.bytes:,}",
                        "bytes sent": f"{executor.shipped_bytes:,}",
                        "bytes per node": f"{executor.shipped_bytes // 3:,}",
                    }
                )

        used(made("ray", contents, 12, str(cluster.address)), use)
    finally:
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]
    return rows


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a little, and nothing recorded")
    parser.add_argument("--trials", type=int, default=100_000, help="for the head's memory")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="keep the other records")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    tables: dict[str, Sequence[dict[str, Any]]] = {}
    if options.only and not options.quick:
        tables = json.loads((record.RESULTS / "ray_trials.json").read_text())
        tables.pop("measured_on")
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        os.environ["RAY_TMPDIR"] = folder
        for part in options.only or PARTS:
            tables[part] = measured(part, options.quick, options.trials)
            record.show(PARTS[part], tables[part])
    if not options.quick:
        record.save("ray_trials", tables)


PARTS = {
    "speed": "Trials per second",
    "latency": "One trial that does nothing",
    "shipping": "Bytes of a candidate that reach the nodes",
    "memory": "Memory of the head",
}


def measured(part: str, quick: bool, count: int) -> list[dict[str, Any]]:
    """The rows of one table."""
    kinds = ("local", "ray")
    if part == "speed":
        slots = (8,) if quick else SLOTS
        return [speed(kind, many, 3 if quick else 30) for many in slots for kind in kinds]
    if part == "latency":
        return [latency(kind, 50 if quick else 500) for kind in kinds]
    return shipping() if part == "shipping" else memory(2_000 if quick else count)


if __name__ == "__main__":
    main()
