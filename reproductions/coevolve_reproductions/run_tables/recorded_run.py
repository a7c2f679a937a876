"""A run of the engine as the tables read it: its protocol, its winner, and recorded scores."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coevolve.core.allocation import WholePool
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector import Selector
from coevolve.errors import CoevolveError, InputError
from coevolve.models.model_settings import ModelSettings
from coevolve.runs.session import is_evaluation
from coevolve.search.run_state import RunState
from coevolve.views.report import rescored, tested
from coevolve.views.spend import has_prices
from coevolve_reproductions.tables.engine_run import JOURNAL, read_run, search_of_run
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.swap import ESTIMATORS


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedRun:
    """A run folder. Scores are None while they are not recorded."""

    folder: Path
    state: RunState

    @cached_property
    def search(self) -> Search:
        """The search, with its draws and estimates."""
        return search_of_run(self.folder, self.state)

    @property
    def protocol(self) -> SearchProtocol:
        """The protocol with its parts, as recorded."""
        return self.state.selector.protocol

    @property
    def full(self) -> bool:
        """Whether it evaluates every candidate on every task."""
        return isinstance(self.protocol.allocation, WholePool)

    @property
    def fraction(self) -> float | None:
        """ρ; 1 for full search, None if the protocol has none."""
        found = 1.0 if self.full else getattr(self.protocol.allocation, "fraction", None)
        return None if found is None else float(found)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.state.settings.seed

    @property
    def model(self) -> str:
        """The name of the model; empty without one."""
        return str((self.state.config.get("model") or {}).get("name", ""))

    @property
    def benchmark(self) -> str:
        """What the benchmark is called: its data set, its sets, its file, or its kind."""
        given: dict[str, Any] = self.state.config.get("benchmark") or {"kind": "optimize"}
        named = (given.get(key) for key in ("dataset", "sets", "file", "kind"))
        found = next(value for value in named if value)
        return "+".join(map(str, found)) if isinstance(found, list) else str(found)

    @property
    def pool(self) -> Pool:
        """The validation tasks."""
        return self.state.selector.pool

    @property
    def test(self) -> Selector | None:
        """The sealed test, if the benchmark has one."""
        return self.state.test

    @property
    def winner(self) -> str | None:
        """The chosen candidate; None before the choice."""
        chosen = self.state.chosen
        return None if chosen is None or not chosen["candidate"] else str(chosen["candidate"])

    @property
    def priced(self) -> bool:
        """Whether the dollars that it records are what its model costs."""
        return has_prices(self.state)

    @cached_property
    def benchmark_key(self) -> dict[str, Any]:
        """What two runs of the same benchmark have in common."""
        return {
            "benchmark": self.state.config.get("benchmark"),
            "pool": self.pool.to_json(),
            "test": None if self.test is None else self.test.pool.to_json(),
        }

    @cached_property
    def key(self) -> dict[str, Any]:
        """What two runs have in common that differ only by seed."""
        state, model = self.state, self.state.config.get("model")
        settings = state.settings
        starts = [state.candidates[name].candidate.address for name in state.starts]
        search: dict[str, Any] = state.config.get("search") or {}
        return {
            "protocol": self.protocol.to_json(),
            "search": {
                "rounds": settings.rounds,
                "candidates": settings.candidates,
                "overlap": settings.overlap,
                "trials": state.trials,
                "draw_per": search.get("draw_per", "round"),
                "history": search.get("history"),
            },
            "proposer": state.config.get("proposer"),
            "model": model and {k: v for k, v in model.items() if k not in ModelSettings.unscored},
            "starts": starts,
            **self.benchmark_key,
        }

    @property
    def estimator(self) -> str:
        """The name of the estimator that guided the search; empty before the first draw."""
        used = self.search.state.estimator
        return next((n for n, one in ESTIMATORS.items() if type(one) is type(used)), "")

    @cached_property
    def per_round(self) -> tuple[tuple[int, int], ...]:
        """Least and most tasks of each pool that a candidate was drawn at first."""
        drawn = []
        for batches in self.search.state.batches.values():
            tasks = set(batches[0].assignment.tasks)
            drawn.append(
                [
                    sum(self.pool.tasks[at] in tasks for at in self.pool.members(name).tolist())
                    for name in self.pool.names
                ]
            )
        return tuple((min(column), max(column)) for column in zip(*drawn, strict=True))

    def tested(self, name: str) -> float | None:
        """The score of a candidate on the sealed test."""
        return tested(self.state, name)

    def tested_pools(self, name: str) -> dict[str, float]:
        """The score of a candidate on each pool of the sealed test, where it is recorded."""
        return pool_scores(self.test, name)

    def scored(self, name: str) -> float | None:
        """The score of a candidate on every validation task."""
        value = rescored(self.state, name)
        if value is not None:
            return value
        found = self.state.estimate(name)
        return found.value if found is not None and found.exact else None

    def final(self, name: str) -> float | None:
        """The score that tables report: on the sealed test, or on every task without one."""
        return self.scored(name) if self.test is None else self.tested(name)


def pool_scores(selector: Selector | None, name: str) -> dict[str, float]:
    """The scores of a harness by pool; empty if it was not told in full."""
    return {} if selector is None or name not in selector.starts else selector.pool_scores(name)


def read_runs(paths: Sequence[Path]) -> list[RecordedRun]:
    """The runs in run folders and in folders of runs, each once.

    Raises:
        InputError: A path is neither, or has an evaluation instead of a run.
        CoevolveError: The journal of a run cannot be read; the message names its folder.
    """
    folders = {folder.resolve(): folder for path in paths for folder in run_folders(path)}
    if not folders:
        raise InputError("name one or more run folders, or folders of runs.")
    found = []
    for folder in folders.values():
        try:
            found.append(RecordedRun(folder=folder, state=read_run(folder)))
        except CoevolveError as error:
            if str(folder) in str(error):
                raise
            raise InputError(f"{folder}: {error}") from error
    return found


def run_folders(path: Path) -> list[Path]:
    """The run folder of a path, or all runs inside of it; evaluations are left out.

    Raises:
        InputError: There is none.
    """
    if (path / JOURNAL).is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path} is not a run folder or a folder of runs.")
    found = [folder for folder in _journals(path) if not is_evaluation(folder)]
    if not found:
        raise InputError(
            f"{path} has no run; RUN is a run folder or a folder of runs, such as runs."
        )
    return found


def _journals(path: Path) -> Iterable[Path]:
    """The folders below a path that have a journal, in order of name."""
    for place, folders, files in os.walk(path):
        if JOURNAL in files:
            folders.clear()  # a run folder has no runs in it
            yield Path(place)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
