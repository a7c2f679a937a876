"""Speed and memory of the engine: trials that do nothing, a long journal, a long run.

Run as `make bench` or `python benchmarks/engine.py`; it takes a few minutes. `--quick` tries
everything on a small scale and records nothing; `--trials` measures only trials and records
nothing; `--profile` shows where opening a long journal spends its time, instead.
"""

import argparse
import asyncio
import cProfile
import pstats
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import record
from engine_runs import Copier, InstantExecutor, Work, opened, write_long_journal

from coevolve.core.events import Event
from coevolve.executors.isolation import Bubblewrap, PlainProcess
from coevolve.executors.isolation.detection import why_not_bubblewrap
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.search.effects import fold
from coevolve.search.journal import Journal, MemoryJournal
from coevolve.search.loop import Search
from coevolve.search.trials import Executor
from coevolve.store import RunStore

HERE = Path(__file__).parent
WORKERS = 2
WORKS: dict[Work, str] = {
    "nothing": "does not touch the candidate",
    "call": "calls the candidate, a process for every trial",
    "fresh": "calls the candidate, a sandbox for every trial",
}


class Stopwatch:
    """Wall clock and the engine's own CPU from the first outcome to the last."""

    def __init__(self) -> None:
        self.outcomes = 0
        self._first = self._last = (0.0, 0.0)

    def __call__(self, event: Event) -> None:
        if event["type"] == "outcome":
            self._last = time.perf_counter(), time.process_time()
            self._first = self._first if self.outcomes else self._last
            self.outcomes += 1

    def row(self) -> dict[str, float]:
        """Trials per second, and milliseconds of the engine's CPU per trial."""
        wall, cpu = (b - a for a, b in zip(self._first, self._last, strict=True))
        trials = self.outcomes - 1
        return {"trials/s": trials / wall, "engine's CPU ms": 1e3 * cpu / trials}


def timed_run(journal: Journal, executor: Executor, tasks: int) -> dict[str, float]:
    """A run of three candidates on every task."""
    watch = Stopwatch()
    opened(journal, tasks=tasks, rounds=1, candidates=1, fraction=1)
    asyncio.run(Search(journal, executor, Copier(), listen=watch).run())
    return watch.row()


def with_workers(kind: str, work: Work, tasks: int) -> dict[str, float]:
    """The same with worker processes and a journal on disk."""
    isolation = Bubblewrap() if kind == "bwrap" else PlainProcess(as_root=True)
    spec = Spec(factory="engine_runs:NoOp", arguments={"work": work}, folder=HERE)
    with tempfile.TemporaryDirectory() as folder, RunStore.create(Path(folder)) as store:
        executor = LocalExecutor(spec, contents=store, workers=WORKERS, isolation=isolation)
        return timed_run(store, executor, tasks)


def in_process(on_disk: bool, tasks: int) -> dict[str, float]:
    """The same without any other process."""
    if not on_disk:
        return timed_run(MemoryJournal(), InstantExecutor(), tasks)
    with tempfile.TemporaryDirectory() as folder, RunStore.create(Path(folder)) as store:
        return timed_run(store, InstantExecutor(), tasks)


def trials(tasks: int, repeats: int) -> list[dict[str, Any]]:
    """Trials per second, the median of several runs."""

    def row(what: str, trial: str, run: Callable[[], dict[str, float]]) -> dict[str, Any]:
        runs = [run() for _ in range(repeats)]
        rate = statistics.median(one["trials/s"] for one in runs)
        cpu = statistics.median(one["engine's CPU ms"] for one in runs)
        return {
            "trials run": what,
            "a trial": trial,
            "trials/s": f"{rate:.0f}",
            "engine's CPU ms": f"{cpu:.2f}",
        }

    rows = [
        row("in the engine, journal in memory", "nothing", partial(in_process, False, tasks)),
        row("in the engine, journal on disk", "nothing", partial(in_process, True, tasks)),
    ]
    missing = why_not_bubblewrap()
    if missing:
        print(f"bwrap is left out: {missing}")
    for isolation in ("process",) if missing else ("process", "bwrap"):
        for work, trial in WORKS.items():
            size = max(10, tasks // 10) if work == "fresh" else tasks
            what = f"in {WORKERS} workers, isolation {isolation!r}"
            rows.append(row(what, trial, partial(with_workers, isolation, work, size)))
    return rows


def read_and_fold(folder: Path) -> dict[str, Any]:
    """What it takes to open a journal; for a fresh process."""
    before = rss()
    start = time.perf_counter()
    with RunStore.read(folder) as store:
        events = sum(1 for _ in store.events())
    middle = time.perf_counter()
    with RunStore.read(folder) as store:
        state = fold(store.skim())
    end = time.perf_counter()
    return {
        "outcomes": f"{state.evaluating.trials:,}",
        "events": f"{events:,}",
        "file MB": f"{(folder / 'run.db').stat().st_size / 1e6:.0f}",
        "read and checked s": f"{middle - start:.2f}",
        "read, checked and folded s": f"{end - middle:.2f}",
        "MB before": f"{before:.0f}",
        "MB at most": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    }


def profile(folder: Path) -> None:
    """Where opening a journal spends its time."""
    profiler = cProfile.Profile()
    with RunStore.read(folder) as store:
        profiler.runcall(fold, store.skim())
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def rss() -> float:
    """Megabytes this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def memory(trials: int) -> list[dict[str, Any]]:
    """Memory of a run of so many trials, ten times on the way; for a fresh process."""
    rows: list[dict[str, Any]] = []
    outcomes, tasks = 0, 500

    def listen(event: Event) -> None:
        nonlocal outcomes
        outcomes += event["type"] == "outcome"
        if event["type"] == "outcome" and outcomes % (trials // 10) == 0:
            row = {"trials": f"{outcomes:,}", "MB": f"{rss():.0f}"}
            rows.append(row | {"seconds": f"{time.perf_counter() - start:.0f}"})

    with tempfile.TemporaryDirectory() as folder, RunStore.create(Path(folder)) as store:
        per_round = 10 * tasks // 5
        rounds = -(-(trials - 2 * tasks) // per_round)
        opened(store, tasks=tasks, rounds=rounds, candidates=10, fraction=0.2)
        start = time.perf_counter()
        asyncio.run(Search(store, InstantExecutor(), Copier(), listen=listen).run())
    return rows


def apart[Done](act: Callable[..., Done], *given: Any) -> Done:
    """What an act gives in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(act, *given).result()


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, and nothing recorded")
    parser.add_argument("--trials", action="store_true", help="trials only, and nothing recorded")
    parser.add_argument("--profile", action="store_true", help="profile opening a journal")
    options = parser.parse_args()
    if options.trials:
        record.show("Trials that do nothing, through the whole engine", trials(1_000, 3))
        return
    outcomes = 20_000 if options.quick else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "long"
        begin = time.perf_counter()
        apart(write_long_journal, folder, outcomes)
        print(f"wrote the journal in {time.perf_counter() - begin:.0f} s")
        if options.profile:
            profile(folder)
            return
        opening = [apart(read_and_fold, folder)]
    record.show("A journal opened and folded in a fresh process", opening)
    speed = trials(*((50, 1) if options.quick else (1_000, 3)))
    record.show("Trials that do nothing, through the whole engine", speed)
    growth = apart(memory, 10_000 if options.quick else 100_000)
    record.show("Memory of a long run, journal on disk", growth)
    if not options.quick:
        record.save("engine", {"trials": speed, "journal": opening, "memory": growth})


if __name__ == "__main__":
    main()
