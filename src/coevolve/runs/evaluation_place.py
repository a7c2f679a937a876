"""Where evaluations are stored that do not belong to a run: one journal for each way to score."""

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import Benchmark
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import CoevolveError, ConfigError, InputError
from coevolve.runs.building import build_benchmark, build_rules
from coevolve.runs.config import RunConfig
from coevolve.runs.fingerprint import EVALUATIONS, fingerprint
from coevolve.runs.rescoring import Listen, requesting_in, silent
from coevolve.runs.session import BY_OPTIMIZE, read_state, recorded_config, test_pool
from coevolve.search.acceptance import clean
from coevolve.search.budget import SCHEMA, Settings
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.requesting import Requesting
from coevolve.search.run_state import EVALUATION, RunState
from coevolve.store import RunStore
from coevolve.views.score_table import Split, is_requested

_LONGEST = 24


@dataclass(frozen=True, kw_only=True)
class EvaluationPlace:
    """The evaluations of a benchmark with a model: their journal, and how they run.

    Another folder is used if anything differs that can change a score. So outcomes of different
    benchmarks or models never mix, and what is recorded is found again.
    """

    config: RunConfig
    base: Path
    benchmark: Benchmark
    given: str = ""

    @property
    def label(self) -> str:
        """The model as the user has given it, or its name; empty without a model."""
        return self.given or self.model

    @property
    def model(self) -> str:
        """The name of the model; empty without one."""
        return "" if self.config.model is None else str(self.config.model.name)

    @cached_property
    def folder(self) -> Path:
        """The folder of the journal; it need not exist yet."""
        parts = [self.config.run.name, *filter(None, [self.model.rpartition("/")[2]])]
        text = json.dumps(self._decides(), sort_keys=True)
        key = blake2b(text.encode(), digest_size=4).hexdigest()
        name = "-".join([*(clean(part)[:_LONGEST] for part in parts), key])
        versions = (f"{name}-{number}" for number in itertools.count(2))
        places = (self.base / EVALUATIONS / one for one in itertools.chain([name], versions))
        return next(place for place in places if self._fits(place))

    def _decides(self) -> dict[str, Any]:
        """What can change a score, apart from files: these have versions."""
        return _decides(self.config, self.benchmark.pool, test_pool(self.benchmark))

    def _fits(self, place: Path) -> bool:
        """Whether a folder is free, or has evaluations with the same files and data."""
        if not (place / "run.db").exists():
            return True
        with RunStore.read(place) as store:
            version = next(store.events(1, 2), None)
        return version is None or version["parts"] == self._version(version["parts"])

    def _version(self, known: Mapping[str, str] | None = None) -> dict[str, str]:
        return fingerprint(self.config, self.base, self.benchmark, known=known)

    def is_that_of(self, run: Path) -> bool:
        """Whether a run scores in the same way, so that its journal can have evaluations.

        A run does not if its scores mix versions of the benchmark.
        """
        state = read_state(run)
        mixed = state.fingerprint is None or bool(state.changes)
        if mixed or state.evaluation or BY_OPTIMIZE in state.config:
            return False
        try:
            config, base = recorded_config({"config": state.config}, run)
        except ConfigError:
            return False  # the folder of the run was moved here from another project
        test = None if state.test is None else state.test.pool
        if base != self.base.resolve() or self._decides() != _decides(
            config, state.selector.pool, test
        ):
            return False
        known = state.fingerprint
        return known == fingerprint(config, base, self.benchmark, known=known)

    def has(self, address: str, split: Split, tasks: Sequence[str], trials: int) -> bool:
        """Whether all outcomes of a harness on some tasks are recorded here."""
        if not (self.folder / "run.db").exists():
            return False
        state = read_state(self.folder)
        names = [n for n, one in state.candidates.items() if one.candidate.address == address]
        return any(is_requested(state, name, split, tasks, trials) for name in names)

    @contextmanager
    def session(
        self, *, workers: int | None = None, listen: Listen = silent
    ) -> Iterator[Requesting]:
        """The evaluation, which is created if it does not exist.

        No other process can write it until the end of the `with` block.
        """
        folder = self.folder
        make = RunStore.open if (folder / "run.db").exists() else RunStore.create
        with make(folder) as store:
            if not store.count:
                version = {"parts": self._version(), "changed": []}
                opening = self._opening(store.folder)
                store.append([("opened", opening), ("fingerprinted", version)])
            benchmark = build_benchmark(self.config, self.base, folder=store.folder)
            yield requesting_in(
                store, self.config, self.base, benchmark, workers=workers, listen=listen
            )

    def _opening(self, folder: Path) -> Mapping[str, Any]:
        """The first event: no starting harness, and no search."""
        project = os.path.relpath(self.base.resolve(), folder.resolve())
        test = test_pool(self.benchmark)
        return {
            "schema": SCHEMA,
            "name": folder.name,
            "settings": Settings(rounds=1, seed=self.config.run.seed).to_json(),
            "selector": Selector(self.benchmark.pool, protocol="full").events[0],
            "starts": [],
            "test": None if test is None else test.to_json(),
            "config": {EVALUATION: self.config.to_json(), "project": project},
        }

    def leaks(self, name: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
        """The places where a harness mentions tasks it must not know.

        Raises:
            InputError: There are some, and the configuration refuses them.
        """
        rules = build_rules(self.config, self.benchmark, None)
        found = rules.leaks(files)
        if refused := rules.refusal(found):
            raise InputError(f"harness {name!r} cannot be evaluated: {refused.rstrip('.')}.")
        return found

    def tested(self) -> set[str]:
        """The addresses of the harnesses that ran the sealed test, in all evaluations here.

        Starting harnesses do not count: they were not chosen by their scores.
        """
        test = test_pool(self.benchmark)
        found: set[str] = set()
        for state in evaluations(self.base):
            if test and state.test and state.test.pool.tasks == test.tasks:
                found |= {state.candidates[n].candidate.address for n in state.tested}
        return found - self.starts()

    def starts(self) -> set[str]:
        """The addresses of the starting harnesses of the benchmark."""
        return {Candidate.of(f, name=n).address for n, f in self.benchmark.starts.items()}


def _decides(config: RunConfig, pool: Pool, test: Pool | None) -> dict[str, Any]:
    """What can change a score, apart from files."""
    model = config.model and config.model.model_dump(
        mode="json", exclude=set(config.model.unscored)
    )
    return {
        "benchmark": config.benchmark.model_dump(
            mode="json", exclude=set(config.benchmark.unscored)
        ),
        "model": model,
        "isolation": config.isolation.model_dump(mode="json"),
        "seed": config.run.seed,
        "pool": pool.to_json(),
        "test": None if test is None else test.to_json(),
    }


def evaluations(base: Path) -> Iterator[RunState]:
    """The evaluations in a project that can be read; `coevolve doctor` reports on the others."""
    for journal in sorted((base / EVALUATIONS).glob("*/run.db")):
        try:
            with RunStore.read(journal.parent) as store:
                state = fold(store.skim()) if store.count else None
        except CoevolveError:
            continue
        if state is not None:
            yield state
