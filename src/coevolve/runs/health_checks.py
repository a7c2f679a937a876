"""Checks of the machine, a project and a run, for `coevolve doctor`."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from coevolve.benchmarks.base import leak_scan_of
from coevolve.benchmarks.conformance import Finding, check_benchmark, failed, noted, passed
from coevolve.errors import CoevolveError, ConfigError, StopRun
from coevolve.executors.isolation import PlainProcess, find_isolation
from coevolve.executors.isolation.detection import why_not_bubblewrap
from coevolve.models.embedded import embedded_line
from coevolve.models.model_client import StubModel
from coevolve.models.model_errors import NotRecorded
from coevolve.models.provider import ModelRequest
from coevolve.proposers.command import examine
from coevolve.runs.building import build_benchmark
from coevolve.runs.config import RunConfig
from coevolve.runs.model import build_provider
from coevolve.runs.model import check_model as usable_model
from coevolve.runs.model import workers as planned_workers
from coevolve.runs.model_settings import ModelSettings
from coevolve.runs.proposer import agent_of, build_proposer, check_ready
from coevolve.runs.proposer_settings import (
    CommandProposerSettings,
    FunctionProposerSettings,
    LLMProposerSettings,
    OwnProposerSettings,
)
from coevolve.search.effects import fold
from coevolve.store import RunStore, owner, verify
from coevolve.views.formatting import plural

_READERS = (
    CommandProposerSettings,
    FunctionProposerSettings,
    LLMProposerSettings,
    OwnProposerSettings,
)
"""Proposers that read traces, and so may write the text of tasks into candidates."""
_GB = 1e9
_LITTLE_DISK = 0.2
_SOME_DISK = 2.0
_OLDEST = (3, 12)


def check_machine(folder: Path, config: RunConfig | None) -> Iterator[Finding]:
    """Python, cores, memory and disk."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= _OLDEST:
        yield passed("python", f"{version}, {sys.executable}")
    else:
        yield failed("python", f"{version} is too old", "Use Python 3.12 or newer.")
    cores = len(os.sched_getaffinity(0))
    workers = cores if config is None else planned_workers(config)
    yield passed("cores", f"{cores}, for {workers} workers")
    yield _memory(workers, config)
    yield _disk(folder)


def check_isolation(config: RunConfig | None) -> Iterator[Finding]:
    """How candidate code is isolated, and what that does not protect from."""
    kind = "auto" if config is None else config.isolation.kind
    why_not = why_not_bubblewrap()
    if kind == "bwrap" and why_not:
        yield failed(
            "isolation",
            f"isolation.kind is 'bwrap', which does not work here: {why_not}",
            "Install bubblewrap and allow user namespaces (docs/isolation.md), or set "
            "isolation.kind = 'process' for candidates you trust.",
        )
        return
    isolation = find_isolation(kind)
    if isolation.name != PlainProcess().name:
        yield passed("isolation", f"{isolation.name} works. {' '.join(isolation.protects)}")
        return
    why = "isolation.kind is 'process'" if kind == "process" else f"bwrap does not work: {why_not}"
    yield noted(
        "isolation",
        f"candidates run as plain processes because {why}",
        f"This gives less protection from a hostile candidate. {' '.join(isolation.exposes)}",
    )


def check_access(config: RunConfig | None) -> Iterator[Finding]:
    """Whether the key that the configuration names is set."""
    model = None if config is None else config.model
    if model is None or model.key is None or model.replay is not None:
        # The key of a proposer is checked with the proposer.
        if config is None or config.proposer.kind not in ("llm", "command"):
            yield passed("keys", "no key needed")
    elif unset_key(model):
        name = model.key if model.key.isupper() else "that model.key names"  # or is it a key?
        yield failed("keys", f"the environment variable {name} is not set", "Set it to the key.")
    else:
        yield passed("keys", f"{model.key} is set")
    if model is None:
        yield passed("model", "none needed")


def unset_key(model: ModelSettings) -> bool:
    """Whether the model needs a key that is not set."""
    return model.key is not None and model.replay is None and not os.environ.get(model.key)


def _memory(workers: int, config: RunConfig | None) -> Finding:
    free = available_memory()
    if free is None:
        return noted("memory", "the free memory is unknown on this system")
    wanted = 0.0 if config is None else workers * config.isolation.memory_mb / 1e3
    if wanted > free:
        return noted(
            "memory",
            f"{free:.1f} GB free; {workers} candidates at once may use {wanted:.1f} GB",
            "Lower isolation.memory_mb or executor.workers if candidates need that much.",
        )
    return passed("memory", f"{free:.1f} GB free")


def available_memory() -> float | None:
    """Free memory in GB, or None where it is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 / _GB if found else None


def _disk(folder: Path) -> Finding:
    place = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(place).free / _GB
    text = f"{free:.1f} GB free in {place.resolve()}"
    if not os.access(place, os.W_OK):
        return failed("disk", f"{place.resolve()} is not writable", "Give this user write access.")
    if free < _LITTLE_DISK:
        return failed("disk", text, "Free some space: a run stops when the disk is full.")
    return noted("disk", text, "Traces need space.") if free < _SOME_DISK else passed("disk", text)


def check_embedded() -> Iterator[Finding]:
    """Whether the embedded model is installed, which only some projects need."""
    there, line = embedded_line()
    yield passed("embedded model", line) if there else noted("embedded model", line)


def check_model(config: RunConfig, base: Path) -> Iterator[Finding]:
    """Whether the model of a project answers; a service is asked for one word."""
    model = config.model
    if model is None or unset_key(model):
        return  # `check_access` reports the key
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
        yield passed(about, f"{model.name} answered in {seconds:.1f} s (first call)")


async def _ask_once(model: ModelSettings, base: Path) -> float:
    """Seconds until the model answered."""
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
    """Whether the proposer can be built, and whether its agent or its model is ready."""
    table = config.proposer
    try:
        made = build_proposer(config, base)
        if not isinstance(table, CommandProposerSettings):  # `examine` checks an agent
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
    """Whether the proposer is ready, and whether the benchmark conforms."""
    yield from check_proposer(config, base)
    try:
        # A stub of the model: a check costs no money.
        benchmark = build_benchmark(config, base, StubModel() if config.model else None)
        for found in check_benchmark(
            benchmark, isolation=config.isolation.kind, limits=config.isolation.limits()
        ):
            about = f"benchmark, {found.about}"
            yield Finding(kind=found.kind, about=about, detail=found.detail, advice=found.advice)
        if isinstance(config.proposer, _READERS) and leak_scan_of(benchmark) is None:
            yield noted(
                "leaks",
                "candidates are not scanned for memorised tasks, because the benchmark has no "
                "`secrets`",
                "Add them: docs/benchmark.md.",
            )
    except StopRun as stop:
        yield failed("benchmark", f"not tested: {stop}")
    except CoevolveError as error:
        yield failed("benchmark", str(error))


def check_run(folder: Path) -> Iterator[Finding]:
    """Whether the journal and the candidates' files are intact, and whether the run has ended."""
    health = verify(folder)
    if health.damage is not None:
        recorded = "?" if health.events is None else f"{health.events:,}"
        yield failed(
            "journal",
            f"damaged: the first {health.intact:,} of {recorded} events are intact. "
            f"{health.damage}",
            f"`coevolve doctor --repair {folder}` keeps these and backs up the damaged file.",
        )
        return
    yield passed("journal", f"all {health.intact:,} events are intact")
    if not health.intact:
        yield noted("run", "it was never started", "Start it with `coevolve run FILE.toml`.")
        return
    with RunStore.read(folder) as store:
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
            f"{plural(len(lacking), 'file')} cannot be read: {lacking[0]}",
            "Restore the folder blobs/ of the run from a backup.",
        )
    else:
        yield passed("candidates", f"all files of {plural(len(state.entries), 'candidate')}")
    if (holder := owner(store.folder)) is not None:
        yield noted("run", f"running: {holder}")
    elif state.ended is not None:
        yield passed("run", f"ended: {state.ended['why']}")
    else:
        why = "" if state.stopped is None else f": stopped, {state.stopped['why']}"
        yield noted("run", f"not finished{why}", f"Resume it: coevolve resume {store.folder}")
