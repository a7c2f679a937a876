"""Runs that differ only by seed, and what is not recorded of them."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coevolve.errors import InputError
from coevolve.formatting import one_line, plural
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
_SHOWN = 6
"""Commands that a note lists, and candidates that a command names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunGroup:
    """Runs that differ only by seed; `label` is the protocol, and what sets the group apart."""

    label: str
    runs: tuple[RecordedRun, ...]

    @property
    def first(self) -> RecordedRun:
        """One of the runs, for what all have in common."""
        return self.runs[0]

    @property
    def row(self) -> dict[str, Any]:
        """The cells that say which group it is."""
        first = self.first
        return {
            "benchmark": first.benchmark,
            "model": first.model,
            "method": self.label,
            "protocol": first.protocol.name,
            "fraction": first.fraction,
        }

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
            parts.setdefault(json.dumps(run.key, sort_keys=True), []).append(run)
        keyed = [(run[0].key, tuple(run)) for run in parts.values()]
        made = [RunGroup(label=_label(key, some, keyed), runs=some) for key, some in keyed]
        found = cls(groups=tuple(sorted(made, key=_order)))
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
        found: dict[str, list[RunGroup]] = {}
        for group in self.groups:
            key = json.dumps([group.first.benchmark_key, group.first.model], sort_keys=True)
            found.setdefault(key, []).append(group)
        yield from map(tuple, found.values())

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
            if split == "validation" and len(names) > _SHOWN:
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

    def note(self, *sentences: str) -> str:
        """The note of a table: how to read it, then what is missing and how to get it."""
        missing = (
            ("Unfinished runs, whose figures may change; to resume them:", self._resume()),
            (
                "Scores that are not recorded are - or left out of means; to pay for them:",
                self._rescore(),
            ),
        )
        said = (f"{before} {_listed(found)}." for before, found in missing if found)
        return " ".join(filter(None, (*sentences, *self.notes, *said)))


def _listed(commands: Sequence[str]) -> str:
    lines = [one_line(command) for command in commands[:_SHOWN]]
    if more := len(commands) - len(lines):
        lines.append(f"and {more} more (--format json lists all)")
    return "; ".join(lines)


def _label(
    key: dict[str, Any],
    runs: tuple[RecordedRun, ...],
    keyed: Iterable[tuple[dict[str, Any], tuple[RecordedRun, ...]]],
) -> str:
    """The protocol, and settings that set a group apart from others with the same protocol."""
    first = runs[0]
    mine = flattened(_settings(key))
    alike = [
        flattened(_settings(other))
        for other, theirs in keyed
        if other is not key
        and (theirs[0].protocol.name, theirs[0].fraction, theirs[0].model)
        == (first.protocol.name, first.fraction, first.model)
        and theirs[0].benchmark_key == first.benchmark_key
    ]
    apart = sorted(name for name in mine if any(other.get(name) != mine[name] for other in alike))
    shown = (f"{name.removesuffix('.part')}={_plain(mine[name])}" for name in apart)
    return ", ".join([first.protocol.name, *shown])


def _settings(key: dict[str, Any]) -> dict[str, Any]:
    names = ("protocol", "search", "proposer", "model", "starts")
    found = {name: key[name] for name in names if key[name] is not None}
    return {**{k: v for k, v in found.items() if k != "protocol"}, **found["protocol"]}


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return one_line(text, 40)


def _order(group: RunGroup) -> tuple[Any, ...]:
    name, first = group.first.protocol.name, group.first
    place = ORDER.index(name) if name in ORDER else len(ORDER)
    fraction = first.fraction or 0.0
    return first.benchmark, first.model, not first.full, fraction, place, group.label
