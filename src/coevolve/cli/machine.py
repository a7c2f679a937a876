"""Whether this machine is fit for runs."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from coevolve.executors.isolation import PlainProcess, find_isolation
from coevolve.executors.isolation.detection import why_not_bubblewrap
from coevolve.findings import Finding, failed, noted, passed
from coevolve.runs.building import workers as planned_workers
from coevolve.runs.config import RunConfig

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
    """Where candidate code would run, and what that does not protect from."""
    kind = "auto" if config is None else config.isolation.kind
    why_not = why_not_bubblewrap()
    if kind == "bwrap" and why_not:
        yield failed(
            "isolation",
            f"bwrap is asked for and does not work: {why_not}",
            "Install bubblewrap and allow user namespaces (docs/isolation.md), or set "
            "isolation.kind = 'process' for candidates you trust.",
        )
        return
    isolation = find_isolation(kind)
    if isolation.name != PlainProcess().name:
        yield passed("isolation", f"{isolation.name} works. {' '.join(isolation.protects)}")
        return
    why = "it is asked for" if kind == "process" else f"bwrap does not work: {why_not}"
    yield noted(
        "isolation",
        f"candidates run as plain processes, for {why}",
        f"A hostile candidate is held back less. {' '.join(isolation.exposes)}",
    )


def check_access(config: RunConfig | None) -> Iterator[Finding]:
    """The key that the configuration names."""
    model = None if config is None else config.model
    if model is None or model.key is None or model.replay is not None:
        # A proposer's key has lines of its own.
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
        return noted("memory", "cannot be told on this system")
    wanted = 0.0 if config is None else workers * config.isolation.memory_mb / 1e3
    if wanted > free:
        return noted(
            "memory",
            f"{free:.1f} GB are free, and {workers} candidates at once may use {wanted:.1f} GB",
            "Lower isolation.memory_mb or executor.workers, if candidates come near the limit.",
        )
    return passed("memory", f"{free:.1f} GB are free")


def available_memory() -> float | None:
    """Free memory in GB, if the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 / _GB if found else None


def _disk(folder: Path) -> Finding:
    place = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(place).free / _GB
    text = f"{free:.1f} GB are free in {place.resolve()}"
    if not os.access(place, os.W_OK):
        return failed("disk", f"{place.resolve()} cannot be written", "Give this user the right.")
    if free < _LITTLE_DISK:
        return failed("disk", text, "Make room: a run stops when the disk is full.")
    return noted("disk", text, "Traces take room.") if free < _SOME_DISK else passed("disk", text)
