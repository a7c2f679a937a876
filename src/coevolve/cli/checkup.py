"""Whether a project and a run are in good order."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from coevolve.benchmarks.base import leak_scan_of
from coevolve.benchmarks.conformance import Finding, check_benchmark, failed, noted, passed
from coevolve.cli.machine import unset_key
from coevolve.cli.words import plural
from coevolve.errors import CoevolveError, ConfigError, StopRun
from coevolve.models.embedded import embedded_line
from coevolve.models.model_client import StubModel
from coevolve.models.model_errors import NotRecorded
from coevolve.models.provider import ModelRequest
from coevolve.proposers.command import examine
from coevolve.runs.building import build_benchmark
from coevolve.runs.config import RunConfig
from coevolve.runs.model import build_provider
from coevolve.runs.model import check_model as usable_model
from coevolve.runs.model_settings import ModelSettings
from coevolve.runs.proposer import agent_of, build_proposer, check_ready
from coevolve.runs.proposer_settings import (
    CommandProposerSettings,
    FunctionProposerSettings,
    LLMProposerSettings,
    OwnProposerSettings,
)
from coevolve.runs.session import recorded_config
from coevolve.search.effects import fold
from coevolve.store import RunStore, owner, verify

_READERS = (
    CommandProposerSettings,
    FunctionProposerSettings,
    LLMProposerSettings,
    OwnProposerSettings,
)
"""Proposers that may read tasks in traces, and write them into candidates."""


def check_embedded() -> Iterator[Finding]:
    """Whether the embedded model is there, which only some projects need."""
    there, line = embedded_line()
    yield passed("embedded model", line) if there else noted("embedded model", line)


def check_model(config: RunConfig, base: Path) -> Iterator[Finding]:
    """Whether the model of a project answers: a service is asked for one word."""
    model = config.model
    if model is None or unset_key(model):
        return  # a key has a line of its own
    try:
        usable_model(config, base)
    except CoevolveError as error:
        yield failed("model", str(error))
    else:
        yield from _check_model("model", model, base)


def _check_model(about: str, model: ModelSettings, base: Path) -> Iterator[Finding]:
    if not model.hosted and model.replay is None:
        there, line = embedded_line()
        yield passed(about, line) if there else failed(about, line)
        return
    try:
        seconds = asyncio.run(_ask_once(model, base))
    except NotRecorded:
        yield passed(about, f"answers come from {model.replay}")
    except CoevolveError as error:
        yield failed(about, str(error))
    else:
        yield passed(about, f"{model.name} answers in {seconds:.1f} s, the first time")


async def _ask_once(model: ModelSettings, base: Path) -> float:
    """How many seconds the model takes to answer."""
    provider = build_provider(model, base)
    started = time.perf_counter()
    try:
        async with asyncio.timeout(model.seconds):
            await provider.complete(ModelRequest(prompt="Say yes.", max_tokens=16))
    except TimeoutError:
        raise ConfigError(f"{model.name} did not answer within {model.seconds:g} s.") from None
    else:
        return time.perf_counter() - started
    finally:
        await provider.close()


def check_proposer(config: RunConfig, base: Path) -> Iterator[Finding]:
    """The proposer can be built; its agent is here and confined, or its model answers."""
    table = config.proposer
    try:
        made = build_proposer(config, base)
        if not isinstance(table, CommandProposerSettings):  # which is looked at more closely
            check_ready(made)
        if isinstance(table, LLMProposerSettings):
            yield from _check_model("proposer's model", table.model, base)
            return
    except CoevolveError as error:
        yield failed("proposer", str(error))
        return
    if isinstance(table, CommandProposerSettings):
        readable = [base / path for path in table.readable]
        for found in examine(
            agent_of(table, base), isolation=table.isolation, readable=readable, keys=table.keys
        ):
            about = f"proposer, {found.about}"
            yield Finding(kind=found.kind, about=about, detail=found.detail, advice=found.advice)
    else:
        yield passed("proposer", f"{table.kind!r} is ready")


def check_project(config: RunConfig, base: Path) -> Iterator[Finding]:
    """The proposer is ready, and the benchmark keeps to what the engine relies on."""
    yield from check_proposer(config, base)
    try:
        # No money is spent on finding out whether all is well.
        benchmark = build_benchmark(config, base, StubModel() if config.model else None)
        for found in check_benchmark(
            benchmark, isolation=config.isolation.kind, limits=config.isolation.limits()
        ):
            about = f"benchmark, {found.about}"
            yield Finding(kind=found.kind, about=about, detail=found.detail, advice=found.advice)
        if isinstance(config.proposer, _READERS) and leak_scan_of(benchmark) is None:
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
        yield from _contents(store)


def _contents(store: RunStore) -> Iterator[Finding]:
    state = fold(store.events())
    lacking = []
    for name, entry in state.candidates.items():
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
        yield passed("candidates", f"all files of {plural(len(state.candidates), 'candidate')}")
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
