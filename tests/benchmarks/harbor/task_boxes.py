"""Running task environments for tests, with calls that wait."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks.harbor.namespace_limits import NamespaceLimits, group_parents
from coevolve.benchmarks.harbor.namespace_support import why_unavailable
from coevolve.benchmarks.harbor.root_folders import host_root
from coevolve.benchmarks.harbor.task_namespace import PATH, NamespacePlan, TaskNamespace

needs_namespaces = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "-")


class Box:
    """A running environment on the machine's own programs."""

    def __init__(self, namespace: TaskNamespace, runner: asyncio.Runner) -> None:
        self.namespace = namespace
        self.runner = runner

    def wait[T](self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def run(self, command: str, **more: Any) -> tuple[int, str]:
        """Exit status and output of a command."""
        more.setdefault("env", {"PATH": PATH, "LANG": "C.UTF-8"})
        done = self.wait(self.namespace.exec(("bash", "-c", command), **more))
        return done.code, done.output

    def says(self, command: str, **more: Any) -> str:
        """The output of a command that must succeed."""
        code, output = self.run(command, **more)
        assert code == 0, output
        return output.strip()


@contextlib.contextmanager
def box(
    folder: Path, *, limits: NamespaceLimits | None = None, output_mb: int = 16, **more: Any
) -> Iterator[Box]:
    """An environment that is stopped at the end."""
    root = host_root(folder / "roots")
    plan = NamespacePlan(trees=root.trees(), limits=limits or NamespaceLimits(), **more)
    namespace = TaskNamespace(
        plan, folder / "environments", output_bytes=output_mb << 20, transfer_bytes=64 << 20
    )
    with asyncio.Runner() as runner:
        runner.run(namespace.start())
        try:
            yield Box(namespace, runner)
        finally:
            runner.run(namespace.stop())


def processes_with(text: str) -> list[int]:
    """Processes of the machine with a text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def groups_of(name: str) -> list[Path]:
    """The control groups of an environment."""
    return [path for parent in group_parents().values() for path in parent.glob(name)]


def mounts_of(folder: Path) -> list[str]:
    """Mounts in our mount namespace that are below a folder."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if str(folder) in line]


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
