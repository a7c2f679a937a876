"""Checks of the machine, a project and a run, for `coevolve doctor`."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from coevolve.benchmarks.base import Benchmark, leak_scan_of
from coevolve.benchmarks.harbor.environment_checks import check_environments
from coevolve.errors import CoevolveError, ConfigError, StopRun
from coevolve.executors.benchmark_needs import Needs, needs_of
from coevolve.executors.isolation import Limits, find_isolation
from coevolve.executors.isolation.cgroups import why_no_groups
from coevolve.executors.isolation.detection import why_not_bubblewrap
from coevolve.executors.isolation.plain_process import AS_ROOT
from coevolve.findings import Finding, failed, noted, passed
from coevolve.formatting import plural
from coevolve.models.embedded import embedded_line
from coevolve.registry import described
from coevolve.runs.building import build_benchmark
from coevolve.runs.building import check_model as usable_model
from coevolve.runs.building import workers as planned_workers
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.config_overrides import Override
from coevolve.runs.fingerprint import fingerprint
from coevolve.runs.session import (
    config_of_run,
    find_protocol,
    is_evaluation,
    new_selector,
    past_of,
    run_folder,
    started_by_optimize,
    test_pool,
)
from coevolve.search.effects import fold
from coevolve.search.loop import check_opening
from coevolve.settings import Context
from coevolve.store import RunStore, owner, verify
from coevolve.testing import check_benchmark

_GB = 1e9
_LITTLE_DISK = 0.2
_SOME_DISK = 2.0
_OLDEST = (3, 12)


def check_all(
    target: Path | None = None, *, overrides: Sequence[Override] = ()
) -> Iterator[Finding]:
    """Every check of the machine, and of a project (a TOML file) or a run (its folder).

    `overrides` are other values in place of those in the file.
    """
    config, base, folder = None, Path(), None
    if target is not None and target.suffix == ".toml":
        try:
            config, base = read_config(target, overrides=overrides), target.parent
        except CoevolveError as error:
            yield failed("configuration", str(error), "Correct the file and check again.")
        else:
            yield passed("configuration", str(target))
            known = run_folder(target, config)
            folder = known if (known / "run.db").exists() else None
    elif target is not None:
        folder = target
        try:
            config, base = config_of_run(folder) or (None, base)
        except CoevolveError as error:
            if started_by_optimize(folder):
                yield passed("configuration", "none; coevolve.optimize started the run")
            elif is_evaluation(folder):
                yield passed("configuration", "none; it is an evaluation, not a run")
            else:
                yield failed("configuration", str(error))
    yield from check_machine(folder or base, config)
    yield from check_isolation(config)
    yield from check_groups()
    yield from check_access(config)
    if config is not None:
        yield from config.executor.examine(Context(config=config, base=base))
    if target is None:
        yield from check_embedded()
        yield from check_environments()
    if folder is not None:
        yield from check_run(folder)
    if config is not None:
        yield from check_model(config, base)
        yield from check_project(config, base, new=folder is None)


def check_machine(folder: Path, config: RunConfig | None) -> Iterator[Finding]:
    """Python, cores, memory and disk."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= _OLDEST:
        yield passed("python", f"{version}, {sys.executable}")
    else:
        yield failed("python", f"{version} is too old", "Use Python 3.12 or newer.")
    cores = len(os.sched_getaffinity(0))
    here = config is None or not config.executor.elsewhere
    workers = planned_workers(config) if config is not None and here else cores
    use = f", for {plural(workers, 'worker')}" if here else "; trials run in a cluster"
    yield passed("cores", f"{cores}{use}")
    yield _memory(workers, config if here else None)
    yield _disk(folder)


def check_isolation(config: RunConfig | None) -> Iterator[Finding]:
    """How candidate code is isolated, and what that does not protect from."""
    kind = "auto" if config is None else config.isolation.kind
    try:
        isolation = find_isolation(kind)
    except StopRun as error:
        yield failed("isolation", str(error))
        return
    if isolation.name == "bwrap":
        yield passed("isolation", f"{isolation.name} works. {' '.join(isolation.protects)}")
        return
    why_not = f"bwrap does not work: {why_not_bubblewrap()}"
    why = why_not if kind == "auto" else f"isolation.kind is {kind!r}"
    how = "as root" if isolation.name == AS_ROOT else "as plain processes"
    yield noted(
        "isolation",
        f"candidates run {how} because {why}",
        f"This gives less protection from a hostile candidate. {' '.join(isolation.exposes)}",
    )


def check_groups() -> Iterator[Finding]:
    """Whether the limits on memory and processes hold for a sandbox as a whole."""
    if why := why_no_groups():
        yield noted(
            "control groups",
            f"not used, because {why}; the limits of a sandbox as a whole are checked twenty "
            "times a second, and kernel memory is not limited",
            "To limit both strictly: systemd-run --user --scope -p Delegate=yes coevolve run ...",
        )
    else:
        yield passed("control groups", "limit memory and processes of each sandbox as a whole")


def check_access(config: RunConfig | None) -> Iterator[Finding]:
    """Whether the key that the configuration names is set."""
    model = None if config is None else config.model
    if model is None or model.key is None or model.replay is not None:
        # The key of a proposer is checked with the proposer.
        if config is None or not config.proposer.has_keys:
            yield passed("keys", "no key needed")
    elif model.unset_key:
        name = model.key if model.key.isupper() else "that model.key names"  # or is it a key?
        yield failed("keys", f"the environment variable {name} is not set", "Set it to the key.")
    else:
        yield passed("keys", f"{model.key} is set")
    if model is None:
        yield passed("model", "none needed")


def _memory(workers: int, config: RunConfig | None) -> Finding:
    free = available_memory()
    if free is None:
        return noted("memory", "the free memory is unknown on this system")
    each = Limits().memory_mb if config is None else config.isolation.limits(Needs()).memory_mb
    wanted = 0.0 if config is None else workers * each / 1e3
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
    """Whether the model of a project answers; a service gets a request for one word."""
    model = config.model
    if model is None or model.unset_key:
        return  # `check_access` reports the key
    try:
        usable_model(config, base)
    except CoevolveError as error:
        yield failed("model", str(error))
    else:
        yield from model.examine("model", base)


def check_project(config: RunConfig, base: Path, *, new: bool = True) -> Iterator[Finding]:
    """Whether the proposer is ready, and whether the benchmark conforms.

    Before the run is created (`new`), also whether its past results can be imported, and whether
    it would be refused.
    """
    yield from config.proposer.examine(Context(config=config, base=base))
    lacking = False
    for finding in config.benchmark.examine():
        lacking = lacking or finding.kind == "failed"
        yield finding
    if lacking:
        yield noted("benchmark", "not tested, because of what it lacks")
        return
    try:
        stub = config.benchmark.stub_model() if config.model else None
        benchmark = build_benchmark(config, base, stub)
    except CoevolveError as error:
        yield failed("benchmark", str(error))
        return
    yield from _guarded("benchmark", _conformance(config, benchmark), base)
    yield from _guarded("fingerprint", _fingerprint(config, base, benchmark), base)
    if new:
        yield from _guarded("history", _history(config, base, benchmark), base)
        yield from _guarded("run", _opening(config, base, benchmark), base)
    yield from _leaks(config, benchmark)


def _guarded(about: str, findings: Iterator[Finding], base: Path) -> Iterator[Finding]:
    """Findings, and one about an error that ends them: of the project, or of its code."""
    try:
        yield from findings
    except StopRun as stop:
        yield failed(about, f"not tested: {stop}")
    except CoevolveError as error:
        yield failed(about, str(error))
    except Exception as error:
        yield failed(about, described(error, base))


def _conformance(config: RunConfig, benchmark: Benchmark) -> Iterator[Finding]:
    """Whether the benchmark does what the engine relies on."""
    for found in check_benchmark(
        benchmark,
        isolation=config.isolation.kind,
        limits=config.isolation.limits(needs_of(benchmark)),
    ):
        about = f"benchmark, {found.about}"
        yield Finding(kind=found.kind, about=about, detail=found.detail, advice=found.advice)


def _fingerprint(config: RunConfig, base: Path, benchmark: Benchmark) -> Iterator[Finding]:
    """Whether the files and data of the benchmark can be hashed."""
    parts = fingerprint(config, base, benchmark)
    yield passed("fingerprint", f"{plural(len(parts), 'part')} that can alter scores")


def _leaks(config: RunConfig, benchmark: Benchmark) -> Iterator[Finding]:
    """Whether candidates are scanned, where proposers read traces."""
    try:
        scanned = leak_scan_of(benchmark) is not None
    except CoevolveError:
        return  # `check_benchmark` reports it
    if config.proposer.reads_traces and not scanned:
        yield noted(
            "leaks",
            "candidates are not scanned for memorised tasks, because the benchmark has no "
            "`secrets`",
            "Add them: docs/benchmark.md.",
        )


def _history(config: RunConfig, base: Path, benchmark: Benchmark) -> Iterator[Finding]:
    """Whether the past results that a project names can be imported into a new run."""
    for event in past_of(config, base, benchmark):
        yield passed("history", f"{config.search.history}, {plural(event['rows'], 'row')}")


def _opening(config: RunConfig, base: Path, benchmark: Benchmark) -> Iterator[Finding]:
    """Why a new run would be refused, as where its budget is too small for Phase 0."""
    try:
        imports = past_of(config, base, benchmark)
    except CoevolveError:
        return  # `_history` reports it
    try:
        selector, test = new_selector(config, benchmark.pool), test_pool(benchmark)
        check_opening(config.settings(), selector, benchmark.starts, test, imports)
    except ConfigError as error:
        yield failed("run", f"it cannot start: {error}")


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
    find_protocol(folder)
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
            f"{plural(len(lacking), 'file')} cannot be read: {lacking[0]}",
            "Restore the folder blobs/ of the run from a backup.",
        )
    else:
        yield passed("candidates", f"all files of {plural(len(state.candidates), 'candidate')}")
    if (holder := owner(store.folder)) is not None:
        yield noted("run", f"running: {holder}")
    elif state.evaluation:
        yield passed("run", "it is an evaluation; `coevolve evaluate` adds to it")
    elif state.ended is not None:
        yield passed("run", f"ended: {state.ended['why']}")
    elif not state.sessions:
        yield noted("run", "not started", f"Start it: coevolve resume {store.folder}")
    else:
        why = "" if state.stopped is None else f": stopped, {state.stopped['why']}"
        yield noted("run", f"not finished{why}", f"Resume it: coevolve resume {store.folder}")
