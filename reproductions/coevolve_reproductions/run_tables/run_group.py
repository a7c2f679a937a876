"""Runs that differ only by seed, and what is not recorded of them."""

import json
import math
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coevolve.core.protocol_settings import settings_of
from coevolve.errors import InputError
from coevolve.formatting import one_line, plural
from coevolve.registry import REFERENCE
from coevolve.runs.config import flattened
from coevolve.views.score_table import Split
from coevolve_reproductions.run_tables.recorded_run import RecordedRun
from coevolve_reproductions.tables.table import Column, mean_and_sd

ORDER = ("full", "naive", "random-resample", "random-estimate", "task-coevolve")
"""The protocols of the paper, in the order of its tables; others follow."""
BENCHMARK = Column(name="benchmark", heading="Benchmark")
MODEL = Column(name="model", heading="Model")
METHOD = Column(name="method", heading="Method")
FRACTION = Column(name="fraction", heading="ρ (%)", kind="score", digits=0)
RUNS = Column(name="n", heading="n", kind="count")
COMMON = ("benchmark", "model", "fraction")
"""Columns that go to the title of a table if all rows have the same value."""
SECTIONS = ("benchmark", "model")
"""Columns whose values are sections of a table if it has several."""
_NAMED = 6
"""Candidates that a command names."""
UNFINISHED = "Unfinished runs, whose figures may change; to resume them"
UNSCORED = "Scores that are not recorded are - or left out of means; to pay for them"
"""What the commands are for that complete a table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunGroup:
    """Runs that differ only by seed.

    Args:
        runs: The runs.
        benchmark: The name of their benchmark, unlike that of other tasks in the table.
        model: The name of their model; empty if no run of the table has one.
        apart: The settings that set it apart from groups of the same protocol, by key.
    """

    runs: tuple[RecordedRun, ...]
    benchmark: str
    model: str
    apart: Mapping[str, str]

    @property
    def first(self) -> RecordedRun:
        """One of the runs, for what all have in common."""
        return self.runs[0]

    @property
    def label(self) -> str:
        """The protocol, and what sets the group apart."""
        return self.label_without()

    def label_without(self, *keys: str) -> str:
        """The label without some settings."""
        shown = (f"{key} {value}" for key, value in self.apart.items() if key not in keys)
        return ", ".join([self.first.protocol.name, *shown])

    @property
    def row(self) -> dict[str, Any]:
        """The cells that say which group it is."""
        first = self.first
        return {
            "benchmark": self.benchmark,
            "model": self.model,
            "method": self.label,
            "protocol": first.protocol.name,
            "fraction": first.fraction,
            "estimator": first.estimator,
        }

    @property
    def order(self) -> tuple[Any, ...]:
        """Its place among groups of the same tasks and model: full search, then by ρ."""
        name, fraction = self.first.protocol.name, self.first.fraction
        place = ORDER.index(name) if name in ORDER else len(ORDER)
        share = math.inf if fraction is None else fraction
        return not self.first.full, share, place, self.label

    def means(
        self, name: str, value: Callable[[RecordedRun], float | None]
    ) -> dict[str, float | None]:
        """Mean and SD over the runs where a value is known."""
        return mean_and_sd(name, [value(run) for run in self.runs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A score that is not recorded; without a candidate, an unfinished run."""

    folder: Path
    candidate: str | None = None
    split: Split = "validation"


@dataclass(kw_only=True, eq=False)
class RunGroups:
    """All groups of a table, and what it lacks; tables add to `gaps` and `notes`."""

    groups: tuple[RunGroup, ...]
    gaps: dict[Gap, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, runs: Sequence[RecordedRun]) -> "RunGroups":
        """The runs by everything but their seeds."""
        parts: dict[str, list[RecordedRun]] = {}
        for run in runs:
            parts.setdefault(_text(run.key), []).append(run)
        firsts = [some[0] for some in parts.values()]
        benchmarks, models = _benchmarks(firsts), {run.model for run in firsts}
        made = [
            RunGroup(
                runs=tuple(some),
                benchmark=benchmarks[_text(some[0].benchmark_key)],
                model=some[0].model or ("no model" if len(models) > 1 else ""),
                apart=settings_apart(some[0], firsts),
            )
            for some in parts.values()
        ]
        ordered = sorted(made, key=lambda one: (one.benchmark, one.model, *one.order))
        found = cls(groups=tuple(ordered))
        for group in found.groups:
            found._note_seeds(group)
        return found

    def _note_seeds(self, group: RunGroup) -> None:
        seeds = [run.seed for run in group.runs]
        if len(set(seeds)) < len(seeds):
            twice = next(seed for seed in seeds if seeds.count(seed) > 1)
            shown = plural(seeds.count(twice), "run")
            self.notes.append(f"{shown} of {group.label} have the same seed, {twice}.")

    def sections(self) -> Iterator[tuple[RunGroup, ...]]:
        """The groups by benchmark and model."""
        found: dict[tuple[str, str], list[RunGroup]] = {}
        for group in self.groups:
            found.setdefault((group.benchmark, group.model), []).append(group)
        yield from map(tuple, found.values())

    @property
    def models(self) -> Column:
        """The column of models; it shows them without services and modules where it can."""
        names = {group.model for group in self.groups}
        labels = {name: short_model(name, names) for name in names}
        return replace(MODEL, labels=labels)

    @property
    def spare(self) -> tuple[str, ...]:
        """The column of ρ, if rows can be told apart without it: no method has several."""
        names = [(group.benchmark, group.model, group.label) for group in self.groups]
        return (FRACTION.name,) if len({*names}) == len(names) else ()

    @property
    def runs(self) -> Iterator[RecordedRun]:
        """Every run."""
        for group in self.groups:
            yield from group.runs

    def one_benchmark(self, table: str) -> RecordedRun:
        """A run, if all are of the same benchmark.

        Raises:
            InputError: They are not.
        """
        first = self.groups[0].first
        for run in self.runs:
            if run.benchmark_key != first.benchmark_key:
                raise InputError(
                    f"the table {table} needs runs of one benchmark, but {first.folder} "
                    f"({first.benchmark}) and {run.folder} ({run.benchmark}) have different "
                    "tasks or settings; make a table for each."
                )
        return first

    def lack(self, run: RecordedRun, candidate: str | None, split: Split) -> None:
        """Note that a score is not recorded; without a candidate, that the run has no winner."""
        if run.state.ended is None:
            self.gaps[Gap(folder=run.folder)] = None
        elif candidate is not None:
            self.gaps[Gap(folder=run.folder, candidate=candidate, split=split)] = None
        elif (said := f"{run.folder} ended without a winner.") not in self.notes:
            self.notes.append(said)

    def final(self, run: RecordedRun, candidate: str | None = None) -> float | None:
        """The score of a candidate, by default the winner, on the sealed test or every task."""
        return self.known(run, run.final, candidate, "validation" if run.test is None else "test")

    def scored(self, run: RecordedRun, candidate: str | None = None) -> float | None:
        """The score of a candidate, by default the winner, on every validation task."""
        return self.known(run, run.scored, candidate, "validation")

    def known(
        self,
        run: RecordedRun,
        score: Callable[[str], float | None],
        candidate: str | None,
        split: Split,
    ) -> float | None:
        """A score of a candidate, by default the winner; a gap is noted if it is unknown."""
        name = candidate or run.winner
        value = None if name is None else score(name)
        if value is None:
            self.lack(run, name, split)
        return value

    def commands(self) -> list[str]:
        """The commands that pay for what is missing, one per run and split."""
        return [*self._resume(), *self._rescore()]

    def _resume(self) -> list[str]:
        folders = dict.fromkeys(gap.folder for gap in self.gaps if gap.candidate is None)
        return [f"coevolve resume {shlex.quote(str(folder))}" for folder in folders]

    def _rescore(self) -> list[str]:
        found = []
        for (folder, split), names in self.payable().items():
            place = shlex.quote(str(folder))
            if split == "validation" and len(names) > _NAMED:
                found.append(f"coevolve analyse {place} --table accuracy --rescore all")
                continue
            option = " --split test" if split == "test" else ""
            words = " ".join(map(shlex.quote, names))
            found.append(f"coevolve rescore {words} {place}{option}")
        return found

    def payable(self) -> dict[tuple[Path, Split], list[str]]:
        """The candidates to score, by run and split."""
        found: dict[tuple[Path, Split], list[str]] = {}
        for gap in self.gaps:
            if gap.candidate is not None:
                found.setdefault((gap.folder, gap.split), []).append(gap.candidate)
        return found

    def steps(self) -> dict[str, list[str]]:
        """The same commands under what they are for."""
        found = {UNFINISHED: self._resume(), UNSCORED: self._rescore()}
        return {purpose: commands for purpose, commands in found.items() if commands}

    def note(self, *sentences: str) -> str:
        """The note of a table: how to read it, and what is unusual about the runs."""
        return " ".join(filter(None, (*sentences, *self.notes)))


def short_model(model: str, models: Collection[str]) -> str:
    """The name without its service or module, unless another model has the same.

    >>> short_model("openai/gpt-5.6-luna", ["openai/gpt-5.6-luna", "deepseek/deepseek-v4-flash"])
    'gpt-5.6-luna'
    """

    def last(name: str) -> str:
        return name.rpartition(":" if REFERENCE.match(name) else "/")[2]

    same = [name for name in models if last(name) == last(model)]
    return last(model) if len(same) == 1 else model


def _text(key: object) -> str:
    return json.dumps(key, sort_keys=True)


def _benchmarks(runs: Iterable[RecordedRun]) -> dict[str, str]:
    """A name for each benchmark; equal names get the settings or numbers that tell them apart."""
    known = {_text(run.benchmark_key): run for run in runs}
    named: dict[str, list[str]] = {}
    for key, run in known.items():
        alike = [one for one in known.values() if one.benchmark == run.benchmark]
        told = [f"{name} {value}" for name, value in _told_apart(run, alike).items()]
        named.setdefault(", ".join([run.benchmark, *told]), []).append(key)
    return {
        key: name if number == 1 else f"{name} ({number})"
        for name, keys in named.items()
        for number, key in enumerate(keys, start=1)
    }


def _told_apart(run: RecordedRun, alike: Sequence[RecordedRun]) -> dict[str, str]:
    """The settings of a benchmark that others of the same name have otherwise; else its tasks."""
    mine = flattened(run.benchmark_key["benchmark"] or {})
    others = [flattened(one.benchmark_key["benchmark"] or {}) for one in alike]
    names = list(dict.fromkeys(name for one in (mine, *others) for name in one))
    apart = [name for name in names if any(one.get(name) != mine.get(name) for one in others)]
    if apart:
        return {name: _plain(mine[name]) if name in mine else "unset" for name in apart}
    sizes = {len(one.pool) for one in alike}
    return {"tasks": str(len(run.pool))} if len(sizes) > 1 else {}


def settings_apart(run: RecordedRun, runs: Iterable[RecordedRun]) -> dict[str, str]:
    """The settings in which a run differs from others with the same protocol, ρ, tasks and model.

    Settings of protocols have the keys and values that a TOML file has.
    """
    alike = [
        other
        for other in runs
        if other is not run
        and (other.protocol.name, other.fraction, other.model)
        == (run.protocol.name, run.fraction, run.model)
        and other.benchmark_key == run.benchmark_key
    ]
    found: dict[str, str] = {}
    for other in alike:
        apart = dict(_parts_apart(run, other)) | dict(_rest_apart(run, other))
        if not apart:  # a part that has no setting, such as one of a user's own
            mine, theirs = flattened(run.key["protocol"]), flattened(other.key["protocol"])
            apart = {name: _plain(mine[name]) for name in mine if theirs.get(name) != mine[name]}
        found |= apart
    return dict(sorted(found.items()))


def _parts_apart(run: RecordedRun, other: RecordedRun) -> Iterator[tuple[str, str]]:
    """Parts of the protocol that differ, and fields of parts that both have."""
    theirs = settings_of(other.protocol)
    mine = settings_of(run.protocol)
    for key, setting in mine.items():
        same_part = theirs[setting.part].value == mine[setting.part].value
        known = key == setting.part or (same_part and key in theirs)
        if known and theirs[key].value != setting.value:
            yield key, _plain(setting.value)


def _rest_apart(run: RecordedRun, other: RecordedRun) -> Iterator[tuple[str, str]]:
    """What differs outside of the protocol; settings of the search have their own keys."""
    mine, theirs = _rest(run), _rest(other)
    for name, value in mine.items():
        if theirs.get(name) != value:
            yield name.removeprefix("search."), _plain(value)


def _rest(run: RecordedRun) -> dict[str, Any]:
    names = ("search", "proposer", "model")
    found = flattened({name: run.key[name] for name in names if run.key[name] is not None})
    return {**found, "starts": "+".join(address[:6] for address in run.key["starts"])}


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return one_line(text, 40)
