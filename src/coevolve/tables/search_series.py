"""Many searches on a table, in several processes, and their means with standard errors."""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coevolve.core.protocols import protocol as named
from coevolve.errors import InputError
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.table_search import Found, ProposerName, SearchSetting, TableSearches

FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """A mean over seeds and its standard error; None with one seed."""

    mean: float
    se: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Average":
        """The mean of some values."""
        given = np.asarray(values, float)
        spread = given.std(ddof=1) / np.sqrt(len(given)) if len(given) > 1 else None
        return cls(mean=float(given.mean()), se=None if spread is None else float(spread))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The searches of one setting, a seed each.

    Args:
        setting: The protocol, the fraction and the length.
        found: The searches, by seed.
    """

    setting: SearchSetting
    found: tuple[Found, ...]

    def to_json(self, full: "Series | None") -> dict[str, Any]:
        """Means with standard errors; `full` has the searches of `full` with the same seeds.

        A table without a sealed test has no entry for it.
        """
        found = self.found
        means: dict[str, Average] = {
            name: Average.of([getattr(one, name) for one in found])
            for name in ("validation", "test", "estimate", "best", "evaluations", "tokens")
            if name != "test" or self._tested
        }
        means["bias"] = Average.of([one.estimate - one.validation for one in found])
        means["beats start"] = Average.of([one.validation > one.start for one in found])
        if full is not None and full is not self:
            pairs = list(zip(found, full.found, strict=True))
            means["beats full"] = Average.of([a.validation > b.validation for a, b in pairs])
            means["below full"] = Average.of([b.validation - a.validation for a, b in pairs])
            if self._tested:
                means["test below full"] = Average.of([b.test - a.test for a, b in pairs])
        return {
            **asdict(self.setting),
            "seeds": len(found),
            "first evaluations": found[0].first,
            **{name: asdict(average) for name, average in means.items()},
            "curve": list(self.curve()),
        }

    def curve(self) -> Iterator[dict[str, float]]:
        """The mean true score of the current choice after Phase 0 and after every round.

        Evaluations include those of starting harnesses.
        """
        for points in zip(*(one.curve for one in self.found), strict=False):
            names = ("evaluations", "validation", *(("test",) if self._tested else ()))
            yield {n: float(np.mean([getattr(point, n) for point in points])) for n in names}

    @property
    def _tested(self) -> bool:
        return not np.isnan(self.found[0].test)


def settings(
    protocols: Sequence[str], fractions: Sequence[float], *, rounds: int, candidates: int
) -> list[SearchSetting]:
    """The settings of a comparison; `full` has one, whatever the fractions.

    Raises:
        InputError: A protocol is unknown or named twice, or a number is out of range.
    """
    if len(set(protocols)) < len(protocols):
        raise InputError(f"a protocol is named twice: {', '.join(protocols)}.")
    if len(set(fractions)) < len(fractions):
        given = ", ".join(f"{fraction:g}" for fraction in fractions)
        raise InputError(f"a fraction is named twice: {given}.")
    for fraction in fractions:
        if not 0 < fraction <= 1:
            raise InputError(f"a fraction must be above 0 and at most 1, got {fraction:g}.")
    for name, value in (("rounds", rounds), ("candidates per round", candidates)):
        if value < 1:
            raise InputError(f"the {name} must be at least 1, got {value}.")
    made = []
    for protocol in protocols:
        named(protocol)
        for fraction in (1.0,) if protocol == FULL else fractions:
            made.append(
                SearchSetting(
                    protocol=protocol, fraction=fraction, rounds=rounds, candidates=candidates
                )
            )
    return made


def run_series(
    table: HarnessTable,
    plan: Sequence[SearchSetting],
    seeds: Sequence[int],
    *,
    proposer: ProposerName = "offline",
    workers: int = 1,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[Series, ...]:
    """All searches of a plan.

    Args:
        table: The table.
        plan: The settings.
        seeds: The seeds of every setting.
        proposer: Who proposes.
        workers: Processes.
        told: Gets the number of finished searches, and of all.
    """
    searches = TableSearches(table, proposer)
    jobs = [(place, seed) for seed in seeds for place in range(len(plan))]
    results: dict[tuple[int, int], Found] = {}
    if workers == 1:
        for place, seed in jobs:
            results[place, seed] = searches.search(plan[place], seed)
            told(len(results), len(jobs))
    else:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(
            workers, mp_context=context, initializer=_begin, initargs=(searches,)
        ) as pool:
            waiting = {pool.submit(_one, plan[place], seed): (place, seed) for place, seed in jobs}
            for future in as_completed(waiting):
                results[waiting[future]] = future.result()
                told(len(results), len(jobs))
    return tuple(
        Series(setting=setting, found=tuple(results[place, seed] for seed in seeds))
        for place, setting in enumerate(plan)
    )


def report(series: Sequence[Series], about: Mapping[str, Any]) -> dict[str, Any]:
    """All series as plain JSON, each compared with `full` where it is among them."""
    full = next((one for one in series if one.setting.protocol == FULL), None)
    return {**about, "series": [one.to_json(full) for one in series]}


_searches: TableSearches | None = None


def _begin(searches: TableSearches) -> None:
    """Keep what a fork has inherited."""
    global _searches
    _searches = searches


def _one(setting: SearchSetting, seed: int) -> Found:
    assert _searches is not None
    return _searches.search(setting, seed)
