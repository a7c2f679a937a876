"""Whole searches over hundreds of seeds on a table of harnesses, with standard errors.

Run as `make bench-searches` or `python benchmarks/searches.py [--table ...]`. Every search is the
real loop with 20 rounds of 3 candidates; the outcomes come from a table (docs/harness-table.md).
Searches that are done are kept in .benchmarks/searches, so the command may be stopped and called
again; remove that folder after a change of a protocol or a proposer. `--record` only records what
is done. `--quick` makes few searches and records nothing.

Beside the main table there are searches of equal evaluations with other numbers of candidates,
and the paper's swap of estimators: the winner that another estimator chooses from the same draws
and outcomes, and searches that the other estimator guides.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import record

from coevolve.core.allocation import share
from coevolve.core.pool import Pool
from coevolve.core.protocols import protocol, register
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.search_series import FULL, Average, Series, settings
from coevolve.tables.table_search import (
    SWAPPED,
    Found,
    Point,
    ProposerName,
    SearchSetting,
    Swapped,
    TableSearches,
)

TABLE = Path(__file__).resolve().parent / "tables" / "service-desk.npz"
WORK = Path(__file__).parents[1] / ".benchmarks" / "searches"
PROTOCOLS = (
    FULL,
    "adaptive",
    "joint",
    "task-coevolve",
    "random-estimate",
    "random-resample",
    "naive",
)
FRACTIONS = (0.2, 0.07)
SEEDS: Mapping[ProposerName, int] = {"offline": 300, "mutation": 150}
BUDGETS = (600, 900, 1200, 1500, 3000, 6000)
"""Evaluations at which searches are compared, those of starting harnesses included."""

GROUPS = ("none", "less than 1/3", "1/3 to 2/3", "more than 2/3")
ROUNDS = (0, 4, 10, 19)
"""Rounds after which the solvability of tasks is shown."""

GUIDED = "task-coevolve-hajek"
"""The paper's protocol, with the estimator that its rule does not pick for one pool."""

EQUAL, EQUAL_SEEDS = (6.25, 12.5, 18.75), 60
"""Evaluations of candidates in searches with a free number of candidates, as multiples of the
validation tasks, and seeds of these searches."""

EQUAL_PROTOCOLS = ("adaptive", "task-coevolve")
EQUAL_SETS = ("service-desk", "s2d")

type Key = tuple[str, float, int, int]


class Kept:
    """Searches that are done, in a file: one in each line."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.found: dict[Key, Found] = {}
        self.seconds: dict[Key, float] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                one = json.loads(line)
                setting = SearchSetting(**one["setting"])
                self._add(setting, one["seconds"], _found(one["found"]))

    def put(self, setting: SearchSetting, seconds: float, found: Found) -> None:
        """Keep a search."""
        self._add(setting, seconds, found)
        if self._file is not None:
            line = {"setting": asdict(setting), "seconds": seconds, "found": asdict(found)}
            with self._file.open("a") as target:
                target.write(json.dumps(line) + "\n")

    def series(self, plan: Sequence[SearchSetting]) -> list[Series]:
        """The searches of the seeds that are done for every setting."""
        seeds = sorted({seed for *_, seed in self.found})
        whole = [n for n in seeds if all(key(one, n) in self.found for one in plan)]
        return [
            Series(setting=one, found=tuple(self.found[key(one, n)] for n in whole))
            for one in plan
        ]

    def _add(self, setting: SearchSetting, seconds: float, found: Found) -> None:
        self.found[key(setting, found.seed)] = found
        self.seconds[key(setting, found.seed)] = seconds


def key(setting: SearchSetting, seed: int) -> Key:
    """What a search is kept under."""
    return setting.protocol, setting.fraction, setting.rounds, seed


def _found(given: dict[str, Any]) -> Found:
    curve = tuple(Point(**point) for point in given["curve"])
    swapped = tuple(Swapped(**one) for one in given["swapped"])
    return Found(**{**given, "curve": curve, "swapped": swapped})


def accuracy(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The paper's tables of the accuracy of estimates and of ties.

    A search whose candidates have equal estimates or equal scores has no rank correlation.
    """
    for one in series:
        found = one.found

        def mean(name: str, digits: int, scale: float = 1, found: Any = found) -> str:
            values = [scale * getattr(search, name) for search in found]
            average = Average.of([value for value in values if not math.isnan(value)])
            error = "" if average.se is None else f" ± {average.se:.{digits}f}"
            return f"{average.mean:.{digits}f}{error}"

        yield {
            "protocol": one.setting.protocol,
            "fraction": f"{one.setting.fraction:.0%}",
            "Spearman": mean("spearman", 2),
            "rank of the winner": mean("rank", 1),
            "winner": mean("validation", 1, 100),
            "best candidate": mean("best", 1, 100),
            "share the top estimate": mean("tied", 1),
            "test, earliest": mean("test", 1, 100),
            "test, latest": mean("latest_test", 1, 100),
        }


def solvability(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The paper's table of the solvability of tasks, as a search knows it."""
    for one in series:
        for group, name in enumerate(GROUPS):
            row = {
                "protocol": one.setting.protocol,
                "fraction": f"{one.setting.fraction:.0%}",
                "solved by": name,
            }
            for round in ROUNDS:
                counts = [search.curve[round].solvability[group] for search in one.found]
                row[f"after round {round}"] = f"{sum(counts) / len(counts):.1f}"
            yield row


def searched(
    searches: TableSearches, plan: Sequence[SearchSetting], seeds: int, kept: Kept, title: str
) -> None:
    """Make the searches that are missing, all settings of a seed before the next seed."""
    for seed in range(seeds):
        for setting in plan:
            if key(setting, seed) not in kept.found:
                began = time.process_time()
                found = searches.search(setting, seed)
                kept.put(setting, time.process_time() - began, found)
        if seed % 10 == 9:
            print(f"  {title}: {seed + 1} of {seeds} seeds", flush=True)


def rows(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """A row for each setting: means and standard errors in percent."""
    full = next(one for one in series if one.setting.protocol == FULL)
    for one in series:
        told = one.to_json(full)
        yield {
            "protocol": one.setting.protocol,
            "fraction": f"{one.setting.fraction:.0%}",
            "seeds": told["seeds"],
            "validation": _percent(told["validation"]),
            "test": _percent(told["test"]),
            "estimate - validation": _percent(told["bias"]),
            "below full": _percent(told.get("below full")),
            "beats best start": _share(told["beats start"]),
            "beats full": _share(told.get("beats full")),
            "evaluations": round(told["evaluations"]["mean"]),
            "thousand tokens": round(told["tokens"]["mean"] / 1000),
        }


def curves(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The mean true score of the current choice after every round."""
    for one in series:
        for number, point in enumerate(one.curve()):
            yield {
                "protocol": one.setting.protocol,
                "fraction": one.setting.fraction,
                "round": number,
                "evaluations": round(point["evaluations"], 1),
                "validation": round(point["validation"], 5),
                "test": round(point["test"], 5),
            }


def budgets(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The true score of the current choice when a number of evaluations is spent.

    A search that has ended before keeps its winner.
    """
    for one in series:
        row: dict[str, Any] = {
            "protocol": one.setting.protocol,
            "fraction": f"{one.setting.fraction:.0%}",
        }
        for budget in BUDGETS:
            spent = [
                [point.validation for point in found.curve if point.evaluations <= budget][-1]
                for found in one.found
            ]
            row[f"{budget}"] = f"{100 * sum(spent) / len(spent):.1f}"
        yield row


def swap(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The paper's swap of estimators, for the paper's protocol: chosen, and guided, by others."""
    for one in series:
        if one.setting.protocol not in ("task-coevolve", GUIDED):
            continue
        fraction = f"{one.setting.fraction:.0%}"
        own = "difference" if one.setting.protocol == "task-coevolve" else "hajek"
        yield {
            "fraction": fraction,
            "search guided by": own,
            "winner by": own,
            "seeds": len(one.found),
            **_swapped([(found.estimate, found.validation, found.test) for found in one.found]),
        }
        for name in SWAPPED:
            others = [s for found in one.found for s in found.swapped if s.estimator == name]
            if others and name != own:
                yield {
                    "fraction": fraction,
                    "search guided by": own,
                    "winner by": name,
                    "seeds": len(others),
                    **_swapped([(s.estimate, s.validation, s.test) for s in others]),
                }


def _swapped(winners: Sequence[tuple[float, float, float]]) -> dict[str, str]:
    return {
        "validation": _percent(asdict(Average.of([true for _, true, _ in winners]))),
        "test": _percent(asdict(Average.of([test for *_, test in winners]))),
        "estimate - validation": _percent(asdict(Average.of([e - t for e, t, _ in winners]))),
    }


def equal_plan(tasks: int) -> list[SearchSetting]:
    """Searches of equal evaluations: the fewer tasks a candidate gets, the more candidates."""
    plan = []
    for name in EQUAL_PROTOCOLS:
        for fraction in FRACTIONS:
            for factor in EQUAL:
                rounds = _rounds(factor * tasks, fraction, tasks)
                plan.append(SearchSetting(protocol=name, fraction=fraction, rounds=rounds))
    return plan


def _rounds(budget: float, fraction: float, tasks: int) -> int:
    """Rounds of 3 candidates that cost about this many evaluations."""
    return round(budget / (3 * sum(share(fraction, Pool(map(str, range(tasks)))))))


def equal(full: Series, series: Sequence[Series], tasks: int) -> Iterator[dict[str, Any]]:
    """Winners of searches of equal evaluations; `full` as far as it comes with these."""
    for budget in (tasks * factor for factor in EQUAL):
        rounds = int(budget // (3 * tasks))
        points = [found.curve[rounds] for found in full.found[: len(series[0].found)]]
        yield {
            "evaluations": rounds * 3 * tasks,
            "protocol": FULL,
            "fraction": "100%",
            "candidates": 3 * rounds,
            "seeds": len(points),
            "validation": _percent(asdict(Average.of([point.validation for point in points]))),
            "test": _percent(asdict(Average.of([point.test for point in points]))),
            "best candidate": "",
        }
        for one in series:
            if one.setting.rounds == _rounds(budget, one.setting.fraction, tasks):
                told = one.to_json(None)
                yield {
                    "evaluations": round(told["evaluations"]["mean"]),
                    "protocol": one.setting.protocol,
                    "fraction": f"{one.setting.fraction:.0%}",
                    "candidates": 3 * one.setting.rounds,
                    "seeds": told["seeds"],
                    "validation": _percent(told["validation"]),
                    "test": _percent(told["test"]),
                    "best candidate": _percent(told["best"]),
                }


def aims(series: Sequence[Series], equal: Sequence[Series]) -> Iterator[dict[str, str]]:
    """What `adaptive` is meant to reach, and what it reaches."""
    by_setting = {(one.setting.protocol, one.setting.fraction): one for one in series}
    full = by_setting[FULL, 1.0]
    for fraction, wanted in ((0.2, "0.5"), (0.07, "2")):
        told = by_setting["adaptive", fraction].to_json(full)
        yield {
            "aim": f"adaptive at {fraction:.0%}, points below full at equal rounds",
            "wanted": f"at most {wanted}",
            "found": _percent(told["below full"]),
        }
        yield {
            "aim": f"adaptive at {fraction:.0%}, estimate of the winner - its score",
            "wanted": "within 1",
            "found": _percent(told["bias"]),
        }
    final = full.to_json(None)
    spent = [
        told["evaluations"]["mean"] / final["evaluations"]["mean"]
        for one in equal
        if one.setting.protocol == "adaptive"
        for told in [one.to_json(None)]
        if told["validation"]["mean"] >= final["validation"]["mean"]
    ]
    if equal:
        yield {
            "aim": "evaluations for the score of full, as a share of its evaluations",
            "wanted": "at most 10%",
            "found": f"{min(spent):.0%}" if spent else f"above {_largest(equal, final):.0%}",
        }
    behind = [
        f"{other} at {fraction:.0%} ({measure})"
        for other in ("random-resample", "naive")
        for fraction in FRACTIONS
        for measure in ("validation", "test")
        if _behind(by_setting["adaptive", fraction], by_setting[other, fraction], measure)
    ]
    yield {
        "aim": "cells in which adaptive is behind random-resample or naive by two standard errors",
        "wanted": "none",
        "found": ", ".join(behind) or "none",
    }


def _largest(series: Sequence[Series], final: Mapping[str, Any]) -> float:
    most = max(one.to_json(None)["evaluations"]["mean"] for one in series)
    return float(most / final["evaluations"]["mean"])


def _behind(one: Series, other: Series, measure: str) -> bool:
    """Whether the other series is better with equal seeds, by two standard errors."""
    pairs = zip(one.found, other.found, strict=True)
    apart = Average.of([getattr(b, measure) - getattr(a, measure) for a, b in pairs])
    return apart.mean > 2 * (apart.se or 0.0)


def _percent(average: Mapping[str, Any] | None) -> str:
    if average is None:
        return ""
    error = "" if average["se"] is None else f" ± {100 * average['se']:.1f}"
    return f"{100 * average['mean']:.1f}{error}"


def _share(average: Mapping[str, float] | None) -> str:
    return "" if average is None else f"{average['mean']:.0%}"


def _plan(proposer: ProposerName) -> list[SearchSetting]:
    names = PROTOCOLS if proposer == "mutation" else (*PROTOCOLS, GUIDED)
    return settings(names, FRACTIONS, rounds=20, candidates=3)


def _recorded(
    name: str, about: dict[str, list[dict[str, Any]]]
) -> dict[str, Sequence[dict[str, Any]]]:
    """What is recorded of the same table, of all proposers; a new record if there is none."""
    file = record.RESULTS / f"{name}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    found.pop("measured_on", None)
    return found if found.items() >= about.items() else dict(about)


def main() -> None:
    """Make the searches, show and record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=lambda name: Path(name).resolve(), default=TABLE)
    parser.add_argument("--proposers", nargs="+", choices=list(SEEDS), default=list(SEEDS))
    parser.add_argument("--seeds", type=int, help="of each proposer")
    parser.add_argument("--record", action="store_true", help="make no search")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    table = HarnessTable.read(options.table)
    tasks = len(table.tasks)
    register(replace(protocol("task-coevolve", estimator="hajek"), name=GUIDED))
    name = sha256(options.table.read_bytes()).hexdigest()[:12]
    WORK.mkdir(parents=True, exist_ok=True)
    about = {
        "table of harnesses": [
            {
                "set": table.facts.set,
                "harnesses": len(table.keys),
                "stage": table.facts.stage,
                "best validation": round(float(table.validation.max()), 4),
                "best start": round(
                    max(float(table.validation[table.keys[start]]) for start in table.starts), 4
                ),
                "file": name,
            }
        ]
    }
    other = "" if options.table == TABLE else f"_{table.facts.set.replace('-', '_')}"
    made: dict[str, Sequence[dict[str, Any]]] = _recorded(f"searches{other}", about)
    for proposer in cast("list[ProposerName]", options.proposers):
        kept = Kept(None if options.quick else WORK / f"{name}-{proposer}.jsonl")
        free = proposer == "offline" and table.facts.set in EQUAL_SETS
        plan, more = _plan(proposer), equal_plan(tasks) if free else []
        if not options.record:
            searches = TableSearches(table, proposer, swapped=proposer == "offline")
            given = SEEDS[proposer] if options.seeds is None else options.seeds
            seeds = 2 if options.quick else given
            searched(searches, plan, seeds, kept, proposer)
            if not options.quick:
                searched(searches, more, min(seeds, EQUAL_SEEDS), kept, "equal evaluations")
        series = kept.series(plan)
        if not series[0].found:
            print(f"no seed of the {proposer} proposer is done")
            continue
        made = {
            title: found for title, found in made.items() if title.partition(":")[0] != proposer
        }
        swaps, series = series, [one for one in series if one.setting.protocol != GUIDED]
        parts = ["", ": aims", ": budgets", ": accuracy", ": solvability", ": speed"]
        if proposer == "offline":
            parts.append(": swap")
            made[f"{proposer}: swap"] = list(swap(swaps))
        if any(one.found for one in kept.series(more)):
            parts.append(": equal evaluations")
            full = next(one for one in series if one.setting.protocol == FULL)
            found = list(equal(full, kept.series(more), tasks))
            made[f"{proposer}: equal evaluations"] = found
        made[proposer] = list(rows(series))
        made[f"{proposer}: aims"] = list(aims(series, kept.series(more)))
        made[f"{proposer}: budgets"] = list(budgets(series))
        made[f"{proposer}: accuracy"] = list(accuracy(series))
        made[f"{proposer}: solvability"] = list(solvability(series))
        spent = [kept.seconds[key(one.setting, f.seed)] for one in series for f in one.found]
        per_second = len(spent) / sum(spent)
        made[f"{proposer}: speed"] = [{"searches per second of CPU": round(per_second, 2)}]
        for part in parts:
            title = f"{proposer}{part}"
            record.show(title, made[title])
        made[f"{proposer}: curves"] = list(curves(series))
    if not options.quick:
        record.save(f"searches{other}", made)


if __name__ == "__main__":
    main()
