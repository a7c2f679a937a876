"""Task environments without Docker: start, commands, files, stop, memory; one and several at once.

Environments use the root made of the machine's own programs. Run as
`make bench-harbor_environment`, as root; `--quick` measures less and records nothing.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import record

from coevolve.benchmarks.harbor.namespace_limits import NamespaceLimits
from coevolve.benchmarks.harbor.namespace_support import why_unavailable
from coevolve.benchmarks.harbor.root_folders import host_root
from coevolve.benchmarks.harbor.task_namespace import NamespacePlan, TaskNamespace

COUNTS = (1, 2, 4, 10)
UPLOAD_MB = 20
COMMANDS = 20


def megabytes(pid: int) -> float:
    """Memory of a process; pages shared by several processes count in proportion."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no Pss")


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{one}/task/{one}/children").read_text()
            found += [int(child) for child in text.split()]
    return found


@contextlib.asynccontextmanager
async def timed(times: dict[str, list[float]], name: str) -> AsyncIterator[None]:
    """Add the seconds of the body to a list."""
    begun = time.perf_counter()
    yield
    times.setdefault(name, []).append(time.perf_counter() - begun)


async def life(folder: Path, upload: Path, times: dict[str, list[float]]) -> None:
    """One environment from start to stop."""
    limits = NamespaceLimits(memory_mb=1024, cpus=1, disk_mb=10_240)
    plan = NamespacePlan(trees=host_root(folder / "roots").trees(), limits=limits)
    one = TaskNamespace(plan, folder / "environments")
    async with timed(times, "start s"):
        await one.start()
    try:
        for _ in range(COMMANDS):
            async with timed(times, "command s"):
                await one.exec(("bash", "-c", "true"))
        async with timed(times, f"upload of {UPLOAD_MB} MB s"):
            await one.put_file(upload, "/upload")
        async with timed(times, f"download of {UPLOAD_MB} MB s"):
            await one.get_file("/upload", folder / f"{one.name}.out")
        (folder / f"{one.name}.out").unlink()
        own = [pid for pid in descendants(os.getpid())[1:] if _keeps(pid, one.name)]
        times.setdefault("MB", []).append(sum(megabytes(pid) for pid in own))
    finally:
        async with timed(times, "stop s"):
            await one.stop()


def _keeps(pid: int, name: str) -> bool:
    """Whether a process belongs to an environment, by its control group or its lock."""
    with contextlib.suppress(OSError):
        if name in Path(f"/proc/{pid}/cgroup").read_text():
            return True
        links = (os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir())  # noqa: PTH115
        return any(f"{name}/lock" in link for link in links)
    return False


async def measure(count: int, lives: int, folder: Path, upload: Path) -> dict[str, Any]:
    """Several environments at once, one after the other in each place."""
    times: dict[str, list[float]] = {}

    async def place() -> None:
        for _ in range(lives):
            await life(folder, upload, times)

    begun = time.perf_counter()
    await asyncio.gather(*(place() for _ in range(count)))
    minutes = (time.perf_counter() - begun) / 60
    row: dict[str, Any] = {"at once": count}
    for name, found in times.items():
        digits = 1 if name == "MB" else 3
        row[name] = f"{statistics.median(found):.{digits}f}"
    return {**row, "environments per minute": f"{count * lives / minutes:.0f}"}


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="once, and nothing recorded")
    options = parser.parse_args()
    if reason := why_unavailable():
        print(f"not measured: {reason}")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        upload = folder / "upload"
        upload.write_bytes(os.urandom(UPLOAD_MB << 20))
        lives = 1 if options.quick else 5
        asyncio.run(life(folder, upload, {}))  # the first use makes the root
        rows = [asyncio.run(measure(count, lives, folder, upload)) for count in COUNTS]
    record.show("Task environments without Docker", rows)
    if not options.quick:
        record.save("harbor_environment", {"environments": rows})


if __name__ == "__main__":
    main()
