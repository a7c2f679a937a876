"""Looks at all processes of a sandbox from time to time while a call is under way."""

import time

from coevolve.executors.isolation.base import Launch
from coevolve.executors.isolation.faults import HarnessFault
from coevolve.executors.isolation.limits import MEGABYTE, Limits
from coevolve.executors.isolation.processes import (
    Use,
    members,
    private_files,
    proportional_memory,
    use,
)

EVERY_SECONDS = 0.05
_LOOKS_PER_SEARCH = 20
"""Looks at the tree for each search of the machine for processes that left it."""
MOST_FILES = 50_000
"""Files in a private folder: each takes memory of the kernel, which no other limit counts."""


class Watch:
    """Limits that concern all processes of a sandbox together.

    The kernel limits each process; only their sum can be seen from outside.
    """

    def __init__(self, launch: Launch, root: int, limits: Limits) -> None:
        self._launch, self._root, self._limits = launch, root, limits
        self._next = 0.0
        self._cpu_before: float | None = None
        self._looks = 0

    def restart(self) -> None:
        """Begin a call: CPU time counts from its first look on."""
        self._next = time.monotonic() + EVERY_SECONDS
        self._cpu_before = None

    @property
    def wait_seconds(self) -> float:
        """How long until the next look."""
        return max(0.0, self._next - time.monotonic())

    def look(self) -> HarnessFault | None:
        """The limit that is passed now, if any."""
        self._next = time.monotonic() + EVERY_SECONDS
        self._looks += 1
        strayed = self._looks % _LOOKS_PER_SEARCH == 0
        pids = members(self._launch, self._root, strayed=strayed)
        total = sum(map(use, pids), Use())
        limits = self._limits
        threads = total.threads - self._launch.wrappers
        if threads > limits.processes:
            return HarnessFault(
                "process-limit",
                f"had {threads} processes and threads, past its {limits.processes}",
            )
        if total.memory_bytes > limits.memory_bytes:
            # Resident pages shared by forked processes were counted once for each of them.
            memory = proportional_memory(pids)
            memory = total.memory_bytes if memory is None else memory
            if memory > limits.memory_bytes:
                return HarnessFault(
                    "memory-limit",
                    f"used {memory // MEGABYTE} MB of memory, past its {limits.memory_mb} MB",
                )
        if self._launch.namespace and private_files(self._root) > MOST_FILES:
            return HarnessFault("file-limit", f"made more than {MOST_FILES:,} files")
        if self._cpu_before is None:
            self._cpu_before = total.cpu_seconds
        if total.cpu_seconds - self._cpu_before > limits.cpu:
            return HarnessFault("cpu-limit", f"used more than {limits.cpu:g} s of CPU time")
        return None
