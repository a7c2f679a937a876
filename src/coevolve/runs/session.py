"""Runs on disk: opening one from a TOML file, going on with it, looking at it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import Benchmark, make_pool, services_of
from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError
from coevolve.executors.local import LocalExecutor
from coevolve.models.gateway import Gateway
from coevolve.runs.building import benchmark_spec, build_benchmark
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.model import ModelledExecutor, build_gateway, check_model, priced, workers
from coevolve.runs.proposer import build_proposer, build_rules, check_ready, proposal_seconds
from coevolve.search.effects import fold
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Repairer
from coevolve.search.run_state import RunState
from coevolve.search.trials import Executor
from coevolve.store import RunStore


def run_folder(path: Path, config: RunConfig | None = None) -> Path:
    """The folder of the run that a TOML file describes."""
    config = read_config(path) if config is None else config
    return path.parent / config.run.folder / config.run.name


def create_run(path: Path) -> Path:
    """Open the run that a TOML file describes, and return its folder.

    Nothing is evaluated yet; `session` does that. A folder whose run was never opened, because
    the first try was interrupted, is taken over.
    """
    config = priced(read_config(path))
    base = path.parent.resolve()
    folder = run_folder(path, config)
    benchmark = build_benchmark(config, base)
    proposer = build_proposer(config, base)
    check_ready(proposer)
    check_model(config, base)
    build_rules(config, benchmark, None)
    selector = new_selector(config, benchmark.pool)
    with _empty_store(folder) as store:
        recorded = {**config.to_json(), "project": os.path.relpath(base, folder.resolve())}
        open_run(
            store,
            name=config.run.name,
            settings=replace(config.settings(), repair=isinstance(proposer, Repairer)),
            selector=selector,
            starts=benchmark.starts,
            test=test_pool(benchmark),
            config=recorded,
        )
    return folder


@contextmanager
def session(
    folder: Path,
    *,
    listen: Callable[[Event], None] = lambda event: None,
    around: Callable[[LocalExecutor], Executor] = lambda executor: executor,
) -> Iterator[Search]:
    """A run to go on with: its journal, executor and proposer, as its first event says.

    The run is this process's alone until the end of the `with` block.

    Args:
        folder: The folder of the run.
        listen: Called with every event after it had its effect.
        around: What to put around the executor, such as a `FaultyExecutor` for a drill.
    """
    with RunStore.open(folder.resolve()) as store:
        config, base = recorded_config(_opened(store), folder)
        benchmark = build_benchmark(config, base)
        _check_unchanged(_opened(store), benchmark)
        gateway = _gateway(config, base, store)
        executor = LocalExecutor(
            benchmark_spec(config, base),
            contents=store,
            workers=workers(config),
            isolation=config.isolation.kind,
            limits=config.isolation.limits(),
            trial_seconds=config.executor.seconds,
            prepare_seconds=config.executor.prepare_seconds,
            services={**services_of(benchmark), **(gateway.services() if gateway else {})},
        )
        inner = around(executor)
        yield Search(
            store,
            inner if gateway is None else ModelledExecutor(inner, gateway),
            build_proposer(config, base, folder=store.folder),
            listen=listen,
            proposal_seconds=proposal_seconds(config),
            rules=build_rules(config, benchmark, gateway),
        )


def _gateway(config: RunConfig, base: Path, store: RunStore) -> Gateway | None:
    if config.model is None:
        return None
    spent = fold(store.skim()).evaluating
    return build_gateway(
        config.model,
        base=base,
        folder=store.folder,
        budget=config.budget,
        spent=spent,
        seed=config.run.seed,
    )


def read_state(folder: Path) -> RunState:
    """The state of a run as of now, also while another process works on it."""
    with RunStore.read(folder) as store:
        return fold(store.skim())


def recorded_config(opened: Event, folder: Path) -> tuple[RunConfig, Path]:
    """The configuration a run was opened with, and the folder its paths start from."""
    recorded: dict[str, Any] = dict(opened["config"])
    base = (folder / recorded.pop("project", ".")).resolve()
    return RunConfig.from_json(recorded, source=f"the configuration of {folder}"), base


def test_pool(benchmark: Benchmark) -> Pool | None:
    """The sealed test tasks of a benchmark, if it has any."""
    tasks = getattr(benchmark, "test_tasks", ())
    return make_pool(tasks) if tasks else None


def new_selector(config: RunConfig, pool: Pool) -> Selector:
    """The selector of a configuration, before anything was told."""
    search = config.search
    return Selector(
        pool,
        fraction=search.fraction,
        protocol=search.rule(),
        seed=config.run.seed,
        trials=search.trials,
        draw_per=search.draw_per,
        confidence=search.confidence,
    )


@contextmanager
def _empty_store(folder: Path) -> Iterator[RunStore]:
    """A new store, or one that was made before and has no event yet."""
    if (folder / "run.db").exists():
        with RunStore.open(folder) as store:
            if store.count:
                raise ConfigError(
                    f"{folder} holds a run already. Go on with `coevolve resume {folder}`, or "
                    "give the new run another name."
                )
            yield store
    else:
        with RunStore.create(folder) as store:
            yield store


def _opened(store: RunStore) -> Event:
    first = next(store.events(until=1), None)
    if first is None:
        raise ConfigError(f"the run in {store.folder} was never opened; use `coevolve run`.")
    return first


def _check_unchanged(opened: Event, benchmark: Benchmark) -> None:
    """Refuse to go on with other tasks than the run began with."""
    test = test_pool(benchmark)
    now = {"pool": benchmark.pool.to_json(), "test": None if test is None else test.to_json()}
    if now != {"pool": opened["selector"]["pool"], "test": opened["test"]}:
        raise ConfigError(
            "the benchmark has other tasks than when the run began, so that its estimates would "
            "mean something else; bring the tasks back, or start a new run."
        )
