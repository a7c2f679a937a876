"""Whether a project and a run are in good order."""

from collections.abc import Iterator
from pathlib import Path

from coevolve.benchmarks.base import leak_scan_of
from coevolve.cli.words import plural
from coevolve.errors import CoevolveError, StopRun
from coevolve.findings import Finding, failed, noted, passed
from coevolve.models.embedded import embedded_line
from coevolve.models.model_client import StubModel
from coevolve.runs.building import build_benchmark
from coevolve.runs.building import check_model as usable_model
from coevolve.runs.config import RunConfig
from coevolve.runs.session import find_protocol, recorded_config
from coevolve.search.effects import fold
from coevolve.settings import Context
from coevolve.store import RunStore, owner, verify
from coevolve.testing import check_benchmark


def check_embedded() -> Iterator[Finding]:
    """Whether the embedded model is there, which only some projects need."""
    there, line = embedded_line()
    yield passed("embedded model", line) if there else noted("embedded model", line)


def check_model(config: RunConfig, base: Path) -> Iterator[Finding]:
    """Whether the model of a project answers: a service is asked for one word."""
    model = config.model
    if model is None or model.unset_key:
        return  # a key has a line of its own
    try:
        usable_model(config, base)
    except CoevolveError as error:
        yield failed("model", str(error))
    else:
        yield from model.examine("model", base)


def check_project(config: RunConfig, base: Path) -> Iterator[Finding]:
    """The proposer is ready, and the benchmark keeps to what the engine relies on."""
    yield from config.proposer.examine(Context(config=config, base=base))
    try:
        # No money is spent on finding out whether all is well.
        benchmark = build_benchmark(config, base, StubModel() if config.model else None)
        for found in check_benchmark(
            benchmark, isolation=config.isolation.kind, limits=config.isolation.limits()
        ):
            about = f"benchmark, {found.about}"
            yield Finding(kind=found.kind, about=about, detail=found.detail, advice=found.advice)
        if config.proposer.reads_traces and leak_scan_of(benchmark) is None:
            yield noted(
                "leaks",
                "candidates are not searched for tasks that they know by heart, since the "
                "benchmark does not say what its tasks ask.",
                "Give it `secrets`: docs/benchmark.md.",
            )
    except StopRun as stop:
        yield failed("benchmark", f"not tried out: {stop}")
    except CoevolveError as error:
        yield failed("benchmark", str(error))


def check_run(folder: Path) -> Iterator[Finding]:
    """The journal is intact, the candidates' files are there, and what the run waits for."""
    health = verify(folder)
    if health.damage is not None:
        recorded = "?" if health.events is None else f"{health.events:,}"
        yield failed(
            "journal",
            f"damaged: the first {health.intact:,} of {recorded} events are intact. "
            f"{health.damage}",
            f"`coevolve doctor --repair {folder}` keeps these and puts the damaged file aside.",
        )
        return
    yield passed("journal", f"all {health.intact:,} events are intact")
    if not health.intact:
        yield noted("run", "it was never opened", "`coevolve run FILE.toml` takes it over.")
        return
    with RunStore.read(folder) as store:
        find_protocol(store)
        yield from _contents(store)


def _contents(store: RunStore) -> Iterator[Finding]:
    state = fold(store.events())
    lacking = []
    for name, entry in state.entries.items():
        for path, address in entry.candidate.files.items():
            try:
                store.get(address)
            except CoevolveError as error:
                lacking.append(f"{path} of {name}: {error}")
    if lacking:
        yield failed(
            "candidates",
            f"{plural(len(lacking), 'file')} cannot be read, {lacking[0]}",
            "Bring the folder blobs/ of the run back from a copy.",
        )
    else:
        yield passed("candidates", f"all files of {plural(len(state.entries), 'candidate')}")
    if (holder := owner(store.folder)) is not None:
        yield noted("run", f"at work: {holder}")
    elif state.ended is not None:
        yield passed("run", f"ended: {state.ended['why']}")
    else:
        why = "" if state.stopped is None else f", stopped: {state.stopped['why']}"
        yield noted("run", f"not over{why}", f"`coevolve resume {store.folder}` goes on with it.")


def config_of_run(folder: Path) -> tuple[RunConfig, Path] | None:
    """The configuration of a run, if its first event can be read."""
    try:
        with RunStore.read(folder) as store:
            first = next(store.events(until=1), None)
    except CoevolveError:
        return None  # what is wrong is said by `check_run`
    return None if first is None else recorded_config(first, folder)
