"""Runs on disk: opening one from a TOML file, resuming it, reading its state."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import Benchmark, make_pool
from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.protocols import protocol_from_json
from coevolve.core.selector import Selector
from coevolve.errors import (
    CoevolveError,
    ConfigError,
    EventError,
    HistoryError,
    StateError,
    StopRun,
)
from coevolve.formatting import visible
from coevolve.past_results import PastResults, read_past
from coevolve.proposers.proposer_settings import check_ready, closed, probed
from coevolve.runs.building import (
    build_benchmark,
    build_executor,
    build_proposer,
    build_rules,
    check_model,
    priced,
    sweep,
)
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.config_overrides import Override
from coevolve.runs.extension import extend
from coevolve.runs.fingerprint import fingerprint
from coevolve.runs.table_order import in_order, orders_of
from coevolve.search.benchmark_version import check_version
from coevolve.search.budget import Settings
from coevolve.search.candidate import Files
from coevolve.search.effects import fold
from coevolve.search.journal import Recorder
from coevolve.search.loop import Search, check_opening, import_past, open_run
from coevolve.search.past_outcomes import Import, Importing, PastOutcomes
from coevolve.search.proposal import Proposer, Repairer
from coevolve.search.run_state import EVALUATION, RunState
from coevolve.search.trials import Executor
from coevolve.store import RunStore, owner

OVERRIDES = "overrides"
"""The key of a recorded configuration with the values that options or a matrix gave it."""
_ABOUT = ("given", "file", "named", "seeded", OVERRIDES, "orders")
"""Keys of a recorded configuration that are not tables.

They say which keys were set, in which file, what options gave (the run's name and seed, and other
values than those in the file), and the order of tables.
"""
ERRORS = "errors.log"
"""The file of a run folder with the tracebacks of errors that stopped the run."""
FIRST_DEFAULT = "task-coevolve"
"""The protocol of a recorded configuration that names none."""
BY_OPTIMIZE = "optimize"
"""The only key of a recorded configuration if `coevolve.optimize` started the run."""


def run_folder(path: Path, config: RunConfig | None = None) -> Path:
    """The folder of the run that a TOML file describes."""
    config = read_config(path) if config is None else config
    return path.parent / config.run.folder / config.run.name


def create_run(
    path: Path,
    *,
    name: str | None = None,
    seed: int | None = None,
    overrides: Sequence[Override] = (),
    past: PastResults | None = None,
    skip_unknown: bool = False,
) -> Path:
    """Open the run that a TOML file describes, and return its folder.

    Nothing is evaluated yet; `session` does that. A folder without events, left by an interrupted
    first attempt, is used again.

    Args:
        path: The TOML file.
        name: The name of the run, if it is not that of the file.
        seed: The seed of the run, if it is not that of the file.
        overrides: Other values in place of those in the file.
        past: Past results to begin with, besides those that the file names.
        skip_unknown: Whether to leave out rows of `past` whose tasks are unknown.
    """
    config = read_config(path, name=name, seed=seed, overrides=overrides)
    folder = run_folder(path, config)
    about = {
        "file": path.name,
        "named": name is not None,
        "seeded": seed is not None,
        OVERRIDES: [one.to_json() for one in overrides],
    }
    open_folder(folder, config, path.parent, about=about, past=past, skip_unknown=skip_unknown)
    return folder


def open_folder(
    folder: Path,
    config: RunConfig,
    base: Path,
    *,
    about: Mapping[str, Any] | None = None,
    past: PastResults | None = None,
    skip_unknown: bool = False,
) -> None:
    """Open the run of a configuration, with paths relative to `base`, in a folder.

    `about` is recorded with the configuration.
    """
    given, base = config.given_keys(), base.resolve()
    opening = check_new_run(config, base, past=past, skip_unknown=skip_unknown)
    probe, recorded = _probed(opening.proposer), opening.config.to_json()
    with _empty_store(folder) as store:
        open_run(
            store,
            name=config.run.name,
            settings=opening.settings,
            selector=opening.selector,
            starts=opening.starts,
            test=opening.test,
            config={
                **recorded,
                "project": os.path.relpath(base, folder.resolve()),
                "given": given,
                "orders": orders_of(recorded),
                **(about or {}),
            },
            imports=opening.imports,
            probe=probe,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a new run is opened with: its configuration with prices, and what was built from it."""

    config: RunConfig
    settings: Settings
    selector: Selector
    starts: Mapping[str, Files]
    test: Pool | None
    imports: Sequence[Mapping[str, Any]]
    proposer: Proposer


def check_new_run(
    config: RunConfig,
    base: Path,
    *,
    past: PastResults | None = None,
    skip_unknown: bool = False,
) -> Opening:
    """Check everything that can be checked before there is a run; nothing is created.

    Arguments are as for `open_folder`.

    Raises:
        ConfigError: A run of this configuration cannot start here.
    """
    config, base = priced(config), base.resolve()
    benchmark = build_benchmark(config, base)
    proposer = build_proposer(config, base)
    check_ready(proposer)
    check_model(config, base)
    build_rules(config, benchmark, None)
    selector, test = new_selector(config, benchmark.pool), test_pool(benchmark)
    settings = replace(config.settings(), repair=isinstance(proposer, Repairer))
    imports = past_of(config, base, benchmark)
    if past is not None:
        importing = _importing(config, benchmark, imports)
        imports.append(importing.event(past, skip_unknown=skip_unknown))
    check_opening(settings, selector, benchmark.starts, test, imports)
    return Opening(
        config=config,
        settings=settings,
        selector=selector,
        starts=benchmark.starts,
        test=test,
        imports=imports,
        proposer=proposer,
    )


def _probed(proposer: Proposer) -> Usage | None:
    """What a request to the proposer's model cost; in a thread, because a loop may run here."""

    async def ask() -> Usage | None:
        used = await probed(proposer)
        await closed(proposer)
        return used

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(ask())).result()


@contextmanager
def session(
    folder: Path,
    *,
    listen: Callable[[Event], None] = lambda event: None,
    around: Callable[[Any], Executor] = lambda executor: executor,
    accept_change: bool = False,
    limits: Mapping[str, float | None] | None = None,
) -> Iterator[Search]:
    """A run to work on: its journal, executor and proposer, from its recorded configuration.

    No other process can write the run until the end of the `with` block.

    Args:
        folder: The folder of the run.
        listen: Called with every event, after its effect.
        around: Wraps the executor, for example in a `FaultyExecutor` for a drill.
        accept_change: Whether to continue if the benchmark has changed since the last session;
            the change is recorded.
        limits: New limits of the run, if it is extended.

    Raises:
        ChangedBenchmarkError: The benchmark has changed, and the change is not accepted; nothing
            is recorded.
    """
    with RunStore.open(folder.resolve()) as store, _logged(folder):
        opened = opening_of(store)
        config, base = recorded_config(opened, folder)
        check_home(opened, folder, config, base)
        benchmark = build_benchmark(config, base, folder=store.folder)
        check_unchanged(opened, benchmark)
        sweep(benchmark)
        recorder, gateway = Recorder(store), None
        state = recorder.state
        parts = fingerprint(config, base, benchmark, known=state.fingerprint)
        if state.ended is None or limits:
            check_version(state, parts, accept=accept_change)
        if limits:
            extend(recorder, limits)
        if config.model is not None:
            gateway = config.model.gateway(
                base=base,
                folder=store.folder,
                budget=state.settings.budget,
                spent=state.evaluating,
                seed=config.run.seed,
            )
        yield Search(
            store,
            build_executor(
                config,
                base,
                benchmark,
                contents=store,
                folder=store.folder,
                gateway=gateway,
                around=around,
            ),
            build_proposer(config, base, folder=store.folder),
            listen=listen,
            proposal_seconds=config.proposer.patience,
            rules=build_rules(config, benchmark, gateway),
            fingerprint=parts,
            accept_change=accept_change,
            state=state,
        )


@contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """Keep the traceback of an error that stops a run in a file of its folder."""
    try:
        yield
    except StopRun as stop:
        if not stop.details:
            raise
        log = folder / ERRORS
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{visible(str(stop))}\n{visible(stop.details).rstrip()}\n\n")
        text = f"{str(stop).rstrip()} The traceback is in {log}."
        raise StopRun(text, resumable=stop.resumable) from stop


def check_home(opened: Event, folder: Path, config: RunConfig, base: Path) -> None:
    """Refuse to continue a run that is not where its project is."""
    try:
        config.check_paths(base)
    except ConfigError as error:
        raise _moved(opened["config"], folder, base, error) from error


def _moved(
    recorded: Mapping[str, Any], folder: Path, base: Path, error: ConfigError
) -> ConfigError:
    """What to say about a recorded configuration that has an error."""
    file = recorded.get("file", "")
    if not file or (base / file).is_file():
        return error
    run = recorded["run"]
    return ConfigError(
        f"{folder} is not where its project is: {base} has no {file}. Move the run folder back to "
        f"{Path(run['folder'], run['name'])} in the folder of {file}, or copy the files of the "
        f"project to {base}. What is missing: {error}"
    )


@contextmanager
def discarded_if_refused(folder: Path) -> Iterator[None]:
    """Remove the folder of a new run that is refused before its first session.

    Nothing was evaluated then, and the same command can be repeated.
    """
    try:
        yield
    except CoevolveError:
        with RunStore.read(folder) as store:
            began = any(event["type"] == "session" for event in store.events())
        if not began and owner(folder) is None:
            shutil.rmtree(folder)
            with suppress(OSError):  # it has other runs
                folder.parent.rmdir()
        raise


def read_state(folder: Path) -> RunState:
    """The state of a run as of now, also while another process works on it."""
    find_protocol(folder)
    with RunStore.read(folder) as store:
        return fold(store.skim())


def find_protocol(folder: Path) -> None:
    """Load the project of a run if it defines the run's protocol, which every fold needs.

    Raises:
        ConfigError: The project does not define the protocol any more.
    """
    with RunStore.read(folder) as store:
        opened = next(store.events(until=1), None)
    if opened is None or "search" not in opened["config"]:
        return
    try:
        protocol_from_json(opened["selector"]["protocol"])
    except EventError:
        with redirect_stdout(sys.stderr):  # code of the project may print
            recorded_config(opened, folder)


def recorded_config(opened: Event, folder: Path) -> tuple[RunConfig, Path]:
    """The configuration a run was opened with, and the folder its paths are relative to.

    Raises:
        ConfigError: `coevolve.optimize` started the run, so it has no configuration; or it is an
            evaluation, not a run.
    """
    recorded: dict[str, Any] = dict(opened["config"])
    if BY_OPTIMIZE in recorded:
        raise ConfigError(
            f"the run in {folder} was started by coevolve.optimize, and its functions are not "
            f"stored; call optimize again with folder={str(folder)!r}."
        )
    if EVALUATION in recorded:
        raise ConfigError(
            f"{folder} is an evaluation, not a run; `coevolve evaluate` continues it."
        )
    base = (folder / recorded.pop("project", ".")).resolve()
    orders = recorded.get("orders", ())
    recorded = {key: value for key, value in recorded.items() if key not in _ABOUT}
    recorded = in_order(recorded, orders)
    recorded["search"] = {"protocol": FIRST_DEFAULT, **recorded["search"]}
    source = f"the configuration of {folder}"
    try:
        return RunConfig.from_json(recorded, source=source, folder=base), base
    except ConfigError as error:
        raise _moved(opened["config"], folder, base, error) from error


def config_of_run(folder: Path) -> tuple[RunConfig, Path] | None:
    """The configuration of a run and its base folder, or None if its journal cannot be read."""
    try:
        with RunStore.read(folder) as store:
            first = next(store.events(until=1), None)
    except CoevolveError:
        return None  # `coevolve doctor` reports what is wrong
    return None if first is None else recorded_config(first, folder)


def started_by_optimize(folder: Path) -> bool:
    """Whether `coevolve.optimize` started a run, which then has no configuration."""
    with RunStore.read(folder) as store:
        first = next(store.events(until=1), None)
    return first is not None and BY_OPTIMIZE in first["config"]


def is_evaluation(folder: Path) -> bool:
    """Whether a journal is that of an evaluation, not of a run."""
    with RunStore.read(folder) as store:
        first = next(store.events(until=1), None)
    return first is not None and EVALUATION in first["config"]


def read_opening(folder: Path) -> tuple[str, bool]:
    """The name of a run, and whether the journal is that of an evaluation instead."""
    with RunStore.read(folder) as store:
        opened = opening_of(store)
    return str(opened["name"]), EVALUATION in opened["config"]


def test_pool(benchmark: Benchmark) -> Pool | None:
    """The sealed test tasks of a benchmark, if it has any."""
    tasks = getattr(benchmark, "test_tasks", ())
    return make_pool(tasks) if tasks else None


def new_selector(config: RunConfig, pool: Pool) -> Selector:
    """A new selector, as the configuration describes it."""
    search = config.search
    return Selector(
        pool,
        fraction=search.fraction,
        protocol=search.new_rule(),
        seed=config.run.seed,
        trials=search.trials,
        draw_per=search.draw_per,
        confidence=search.confidence,
    )


def past_of(config: RunConfig, base: Path, benchmark: Benchmark) -> list[dict[str, Any]]:
    """The event of the past results that a configuration names, if any; nothing is recorded.

    Raises:
        ConfigError: They cannot be read, or do not fit the benchmark.
    """
    if config.search.history is None:
        return []
    try:
        return [_importing(config, benchmark).event(read_past(base / config.search.history))]
    except (HistoryError, StateError) as error:
        raise ConfigError(f"'search.history': {error}") from error


def _importing(
    config: RunConfig, benchmark: Benchmark, before: Sequence[Mapping[str, Any]] = ()
) -> Importing:
    """What makes the event of an import into a new run, after others."""
    past = PastOutcomes()
    for number, event in enumerate(before, start=1):
        past.take({**event, "seq": number}, benchmark.pool)
    return Importing(
        pool=benchmark.pool,
        test=test_pool(benchmark),
        starts=list(benchmark.starts),
        trials=config.search.trials,
        past=past,
    )


def import_into(folder: Path, results: PastResults, *, skip_unknown: bool = False) -> Import:
    """Record past results in the run of a folder, in one transaction.

    If anything is wrong, or the process ends before it returns, the run is as before.

    Args:
        folder: The folder of the run.
        results: What `read_past` has read.
        skip_unknown: Whether to leave out rows of tasks that the run does not have.
    """
    find_protocol(folder)
    with RunStore.open(folder.resolve()) as store:
        return import_past(Recorder(store), results, skip_unknown=skip_unknown)


@contextmanager
def _empty_store(folder: Path) -> Iterator[RunStore]:
    """A new store, or an existing one without any event."""
    if (folder / "run.db").exists():
        with RunStore.open(folder) as store:
            if store.count:
                raise ConfigError(
                    f"{folder} already has a run; resume it with `coevolve resume {folder}`, or "
                    "give the new run another name."
                )
            yield store
    else:
        with RunStore.create(folder) as store:
            yield store


def opening_of(store: RunStore) -> Event:
    """The first event of a run."""
    first = next(store.events(until=1), None)
    if first is None:
        raise ConfigError(f"the run in {store.folder} has not started; use `coevolve run`.")
    return first


def check_unchanged(opened: Event, benchmark: Benchmark) -> None:
    """Refuse to resume a run whose tasks have changed."""
    test = test_pool(benchmark)
    now = {"pool": benchmark.pool.to_json(), "test": None if test is None else test.to_json()}
    if now != {"pool": opened["selector"]["pool"], "test": opened["test"]}:
        raise ConfigError(
            "the tasks of the benchmark have changed since the run began, so its estimates would "
            "not be comparable; restore the tasks, or start a new run."
        )
