"""The paper's main table with real searches: the offline proposer and the embedded model.

Run as `make bench-search` or `python benchmarks/search.py [--sets ...] [--seeds ...]`. Every cell
is a run of 20 rounds of 3 candidates under one protocol, fraction and seed, ended by the sealed
test. Cells are resumed where they were left, and share a cache of the model's answers, so that
the command may be stopped and called again; after every cell it records all cells that are done,
those of earlier calls included. A seed on both sets takes some hours on two cores; `full` comes
last, since it takes as long as the others together. `--quick` makes short searches and records
nothing.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import record

from coevolve.benchmarks.textclass.data_sets import load_set
from coevolve.core.events import Event
from coevolve.runs.session import create_run, run_folder, session
from coevolve.search.effects import fold
from coevolve.store import RunStore
from coevolve.views.report import Report, report

SHARED = Path(__file__).parents[2] / "shared" / "data" / "textclass"
WORK = Path(__file__).parents[1] / ".benchmarks" / "search"
SETS = ("service-desk", "s2d")
PROTOCOLS = ("full", "adaptive", "task-coevolve", "random-resample", "naive")
FRACTIONS = (0.2, 0.07)
SEEDS = (0, 1, 2)
STARTS = ("zero-shot", "nearest", "vote")

TEMPLATE = """[run]
name = "{name}"
seed = {seed}

[search]
rounds = {rounds}
candidates = 3
protocol = "{protocol}"
fraction = {fraction}
rescore = true

[benchmark]
kind = "textclass"
sets = ["{data_set}"]
{data}starts = {starts}

[proposer]
kind = "offline"
characters = 1500
best_of_n = {best_of_n}

[model]
name = "embedded"
cache = "answers.db"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One search."""

    data_set: str
    protocol: str
    fraction: float
    seed: int
    best_of_n: bool = False

    @property
    def name(self) -> str:
        """What its run is called."""
        control = "-best-of-n" if self.best_of_n else ""
        percent = f"{100 * self.fraction:g}"
        return f"{self.data_set}-{self.protocol}{control}-{percent}-{self.seed}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Its row in the table: cells of one row differ by their seeds."""
        protocol = f"{self.protocol}, best of n" if self.best_of_n else self.protocol
        return self.data_set, protocol, f"{self.fraction:.0%}"


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The searches in the order of their use: a whole table before the next seed, full last."""
    for seed in options.seeds:
        for name in options.sets:
            for fraction in options.fractions:
                for protocol in options.protocols:
                    if protocol != "full":
                        yield Cell(data_set=name, protocol=protocol, fraction=fraction, seed=seed)
        for name in options.sets if options.control else ():
            yield Cell(data_set=name, protocol="adaptive", fraction=0.2, seed=seed, best_of_n=True)
        for name in options.sets if "full" in options.protocols else ():
            yield Cell(data_set=name, protocol="full", fraction=1.0, seed=seed)


def searched(cell: Cell, options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """What a search found and what it took; taken up where it was left."""
    data = options.data if cell.data_set != "service-desk" else None
    file = work / f"{cell.name}.toml"
    file.write_text(
        TEMPLATE.format(
            name=cell.name,
            seed=cell.seed,
            rounds=options.rounds,
            protocol=cell.protocol,
            fraction=cell.fraction,
            data_set=cell.data_set,
            data="" if data is None else f'data = "{data.resolve()}"\n',
            starts=json.dumps(STARTS),
            best_of_n=str(cell.best_of_n).lower(),
        )
    )
    folder = run_folder(file)
    if not (folder / "run.db").exists():
        create_run(file)
    with session(folder, listen=_told) as search:
        asyncio.run(search.run())
    row = done(cell, work)
    assert row is not None, f"{cell.name} has not ended"
    return row


def done(cell: Cell, work: Path) -> dict[str, Any] | None:
    """What a search found and what it took, if it has ended."""
    file = work / f"{cell.name}.toml"
    if not file.exists() or not (run_folder(file) / "run.db").exists():
        return None
    with RunStore.read(run_folder(file)) as store:
        state = fold(store.skim())
        if state.ended is None:
            return None
        found = report(state)
        return {**_row(cell, found), **_spent(store, found)}


def _told(event: Event) -> None:
    if event["type"] == "settled":
        print(f"  round {event['round']} at {event['clock'] / 60:.1f} min", flush=True)


def _row(cell: Cell, found: Report) -> dict[str, Any]:
    winner = next(row for row in found.candidates if row.name == found.best)
    starts = [row for row in found.candidates if row.start]
    best = max(starts, key=lambda row: row.estimate["value"] if row.estimate else 0.0)
    return {
        "set": cell.data_set,
        "protocol": cell.key[1],
        "fraction": cell.key[2],
        "seed": cell.seed,
        "winner": winner.name,
        "estimate": round(winner.estimate["value"], 4) if winner.estimate else None,
        "validation": winner.full,
        "test": winner.test,
        "best start": best.name,
        "best start's validation": best.estimate["value"] if best.estimate else None,
        "best start's test": best.test,
        "evaluations": found.spend.searched,
        "candidates": sum(not row.start and row.estimate is not None for row in found.candidates),
    }


def _spent(store: RunStore, found: Report) -> dict[str, Any]:
    """Tokens of the calls in traces of candidates' trials, those of cached answers included."""
    starts = {row.name for row in found.candidates if row.start}
    tokens = cached = asked = 0
    for event in store.events():
        counts = event["type"] == "outcome" and event["candidate"] not in starts
        if not counts or "split" in event or "trace" not in event:
            continue
        trace = json.loads(store.get(event["trace"])).get("trace")
        for call in trace["calls"] if trace else ():
            answer = call.get("answer")
            if answer is not None:
                asked += 1
                cached += answer["cached"]
                tokens += answer["tokens_in"] + answer["tokens_out"]
    return {
        "tokens": tokens,
        "from the cache": round(cached / asked, 3) if asked else None,
        "minutes": round(found.seconds / 60, 1),
    }


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each set, protocol and fraction: means over the seeds."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["protocol"], row["fraction"]), []).append(row)
    return [
        {
            "set": key[0],
            "protocol": key[1],
            "fraction": key[2],
            "seeds": len(group),
            "test": _mean(group, "test"),
            "validation": _mean(group, "validation"),
            "estimate": _mean(group, "estimate"),
            "best start's test": _mean(group, "best start's test"),
            "evaluations": round(statistics.mean(row["evaluations"] for row in group)),
            "thousand tokens": round(statistics.mean(row["tokens"] for row in group) / 1000),
            "from the cache": f"{_mean(group, 'from the cache')}%",
            "minutes": round(statistics.mean(row["minutes"] for row in group), 1),
        }
        for key, group in sorted(groups.items(), key=lambda item: _place(item[0]))
    ]


def _place(key: tuple[str, str, str]) -> tuple[float, ...]:
    """Where a row stands: by set, fraction and protocol, the control last."""
    name, protocol, fraction = key
    places = [SETS.index(name), -float(fraction.rstrip("%"))]
    last = PROTOCOLS.index(protocol) if protocol in PROTOCOLS else len(PROTOCOLS)
    return (*places, last)


def _mean(group: Sequence[dict[str, Any]], name: str) -> str:
    """A mean in percent, and the standard deviation where there are several seeds."""
    values = [100 * row[name] for row in group if row[name] is not None]
    if not values:
        return "missing"
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def main() -> None:
    """Search, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=SHARED if SHARED.is_dir() else None)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--fractions", nargs="+", type=float, choices=FRACTIONS, default=FRACTIONS)
    parser.add_argument("--seeds", nargs="+", type=int, choices=SEEDS, default=SEEDS)
    parser.add_argument("--control", action="store_true", help="add best of n, without feedback")
    parser.add_argument("--work", type=Path, default=WORK, help="where the runs are kept")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    for name in options.sets:  # rather than after hours
        load_set(name, options.data)
    options.rounds = 2 if options.quick else 20
    work = options.work / ("quick" if options.quick else "whole")
    work.mkdir(parents=True, exist_ok=True)
    for cell in cells(options):
        started = time.perf_counter()
        print(f"{cell.name}", flush=True)
        row = searched(cell, options, work)
        print(json.dumps(row), f"({time.perf_counter() - started:.0f} s)", flush=True)
        if not options.quick:
            rows = all_done(work)
            record.save("search", {"table": summary(rows), "searches": rows})
    table = summary(all_done(work))
    for name in options.sets:
        record.show(name, [row for row in table if row["set"] == name])


def all_done(work: Path) -> list[dict[str, Any]]:
    """Every search that has ended, of this call or of an earlier one."""
    every = argparse.Namespace(
        sets=SETS, protocols=PROTOCOLS, fractions=FRACTIONS, seeds=SEEDS, control=True
    )
    found = (done(cell, work) for cell in cells(every))
    return [row for row in found if row is not None]


if __name__ == "__main__":
    main()
