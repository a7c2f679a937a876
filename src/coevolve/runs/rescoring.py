"""Evaluates candidates of a run on every task, before or after its end, in its own journal."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from coevolve.benchmarks.base import Benchmark
from coevolve.core.events import Event
from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError
from coevolve.runs.building import build_benchmark, build_executor, sweep
from coevolve.runs.config import RunConfig
from coevolve.runs.fingerprint import fingerprint
from coevolve.runs.session import (
    check_home,
    check_unchanged,
    opening_of,
    read_state,
    recorded_config,
)
from coevolve.search.requesting import Requesting, check_request, pool_of
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from coevolve.views.report import sealed_warning
from coevolve.views.score_table import (
    Scored,
    ScoreTable,
    Split,
    is_recorded,
    kind_of,
    score_rows,
    scored,
)
from coevolve.views.spend import has_prices

Listen = Callable[[Event], None]


def silent(event: Event) -> None:
    """Ignore an event."""


async def rescore(
    folder: Path,
    candidates: Sequence[str],
    *,
    split: Split = "validation",
    workers: int | None = None,
    accept_change: bool = False,
    listen: Listen = silent,
) -> ScoreTable:
    """Candidates of a run, evaluated on every task with its own benchmark and model.

    Outcomes that the run has recorded are not evaluated again: those of starting harnesses, and
    those of an earlier, possibly interrupted, call.

    Raises:
        InputError: A candidate is unknown, or the benchmark has no sealed test.
        OwnedError: Another process works on the run.
        ChangedBenchmarkError: The benchmark has changed since the last session, and the change is
            not accepted; nothing is recorded.
        StopRun: The operator must act before the evaluation can continue.
    """
    state = check_rescore(folder, candidates, split, workers)
    names = {name: name for name in candidates}
    found = await rescored(
        folder, names, split, workers=workers, accept_change=accept_change, listen=listen
    )
    confidence = (state.config.get("search") or {}).get("confidence", 0.95)
    model = (state.config.get("model") or {}).get("name", "")
    pool, priced = pool_of(state, split), has_prices(state)
    rows = score_rows(model, found, pool, confidence=confidence, priced=priced)
    warning = sealed_warning(len(read_state(folder).tested)) if split == "test" else ""
    return ScoreTable(
        rows=tuple(rows),
        split=split,
        tasks=len(pool_of(state, split)),
        trials=state.trials,
        confidence=confidence,
        warnings=(warning,) if warning else (),
    )


def check_number(name: str, number: int | None, most: float = math.inf) -> None:
    """Refuse a number that is not a whole one from 1 to `most`."""
    if number is not None and not is_whole(number, least=1):
        raise InputError(f"{name} must be a whole number of at least 1, got {number!r}.")
    if number is not None and number > most:
        raise InputError(f"{name} must be at most {most:,}, got {number!r}.")


def check_rescore(
    folder: Path, candidates: Sequence[str], split: Split, workers: int | None = None
) -> RunState:
    """The state of a run whose candidates can be rescored, before anything is evaluated."""
    state = read_state(folder)
    if state.evaluation:
        raise InputError(f"{folder} is an evaluation, not a run; use `coevolve evaluate`.")
    if not candidates:
        raise InputError("name one or more candidates of the run.")
    check_number("workers", workers)
    check_request(state, candidates, kind_of(split))
    return state


def sealed_uses(state: RunState, candidates: Sequence[str]) -> int:
    """How many generated candidates will have used the sealed test, with these."""
    new = [name for name in candidates if not state.candidates[name].start]
    return len({*state.tested, *new})


async def rescored(
    folder: Path,
    names: Mapping[str, str],
    split: Split,
    *,
    workers: int | None = None,
    accept_change: bool = False,
    listen: Listen = silent,
) -> list[Scored]:
    """What a run has recorded of candidates on every task; what is missing is evaluated first."""
    state = read_state(folder)
    open_ones = [name for name in names.values() if not is_recorded(state, name, split)]
    check_request(state, open_ones, kind_of(split))
    if open_ones:
        with rescoring(
            folder, workers=workers, accept_change=accept_change, listen=listen
        ) as requesting:
            try:
                await requesting.run(open_ones, kind_of(split))
            finally:
                await requesting.close()
    return recorded(folder, names, split)


def recorded(
    folder: Path,
    names: Mapping[str, str],
    split: Split,
    *,
    tasks: Sequence[str] | None = None,
    trials: int | None = None,
) -> list[Scored]:
    """What the journal in a folder has recorded of some candidates."""
    state = read_state(folder)
    with RunStore.read(folder) as store:
        return scored(state, store, names, split, folder=str(folder), tasks=tasks, trials=trials)


@contextmanager
def rescoring(
    folder: Path,
    *,
    workers: int | None = None,
    accept_change: bool = False,
    listen: Listen = silent,
) -> Iterator[Requesting]:
    """The candidates of a run, to evaluate them with its own benchmark and model.

    No other process can write the run until the end of the `with` block.

    Raises:
        ChangedBenchmarkError: The benchmark has changed, and the change is not accepted; nothing
            is recorded.
    """
    with RunStore.open(folder.resolve()) as store:
        opened = opening_of(store)
        config, base = recorded_config(opened, folder)
        check_home(opened, folder, config, base)
        benchmark = build_benchmark(config, base, folder=store.folder)
        check_unchanged(opened, benchmark)
        known = read_state(folder).fingerprint
        parts = fingerprint(config, base, benchmark, known=known)
        found = requesting_in(store, config, base, benchmark, workers=workers, listen=listen)
        found.settle(parts, accept=accept_change)
        yield found


def requesting_in(
    store: RunStore,
    config: RunConfig,
    base: Path,
    benchmark: Benchmark,
    *,
    workers: int | None,
    listen: Listen,
) -> Requesting:
    """The executor of a configuration, for evaluations that a store records.

    The budget of the configuration is that of the search, so it does not apply.
    """
    sweep(benchmark)
    gateway = None
    if config.model is not None:
        gateway = config.model.gateway(base=base, folder=store.folder, seed=config.run.seed)
    executor = build_executor(
        config,
        base,
        benchmark,
        contents=store,
        folder=store.folder,
        gateway=gateway,
        at_once=workers,
    )
    return Requesting(store, executor, listen=listen)
