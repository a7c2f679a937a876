"""The watch over the resources of all processes of a sandbox together."""

import threading
import time
from collections.abc import Callable

from coevolve.executors.isolation.launch import MEGABYTE, HarnessFault, Launch, Limits
from coevolve.executors.isolation.process_table import (
    Use,
    members,
    private_files,
    proportional_memory,
    use,
)

EVERY_SECONDS = 0.05
_LOOKS_PER_SEARCH = 20
"""Checks of the process tree between two searches for processes that left it."""
_LONGEST_UNSEEN = 0.25
"""Seconds without a check, after which short calls are checked too."""
_RESTS_PER_PARKING = 20
"""Checks that were not needed, after which the thread waits until it is."""
MOST_FILES = 50_000
"""Files in private folders: each takes kernel memory, which no other limit counts."""


class Watch:
    """Checks the limits that apply to all processes of a sandbox together.

    The kernel limits each process, but not their sum.
    """

    def __init__(self, launch: Launch, root: int, limits: Limits) -> None:
        self._launch, self._root, self._limits = launch, root, limits
        self._next = 0.0
        self._looked = time.monotonic()
        self._cpu_before: float | None = None
        self._looks = 0

    def restart(self) -> None:
        """Begin a call: CPU time counts from the next check on.

        A call that is shorter than the time between two checks is checked if the last is long ago.
        """
        now = time.monotonic()
        self._next = min(now + EVERY_SECONDS, max(now, self._looked + _LONGEST_UNSEEN))
        self._cpu_before = None

    @property
    def wait_seconds(self) -> float:
        """Seconds until the next check."""
        return max(0.0, self._next - time.monotonic())

    def look(self) -> HarnessFault | None:
        """The fault of a limit that is exceeded now, if any."""
        self._looked = time.monotonic()
        self._next = self._looked + EVERY_SECONDS
        self._looks += 1
        strayed = self._looks % _LOOKS_PER_SEARCH == 0
        pids = members(self._launch, self._root, strayed=strayed)
        total = sum(map(use, pids), Use())
        limits = self._limits
        threads = total.threads - self._launch.wrappers
        if threads > limits.processes:
            return HarnessFault(
                "process-limit",
                f"had {threads} processes and threads; the limit is {limits.processes}",
            )
        if total.memory_bytes > limits.memory_bytes:
            # Pages shared by forked processes were counted once for each of them.
            memory = proportional_memory(pids)
            if memory is None:  # count at least the pages of a waiting runner only once
                waiting = use(self._root) if self._launch.wrappers else Use()
                memory = total.memory_bytes - waiting.memory_bytes
            if memory > limits.memory_bytes:
                return HarnessFault(
                    "memory-limit",
                    f"used {memory // MEGABYTE} MB of memory; the limit is {limits.memory_mb} MB",
                )
        if self._launch.namespace and private_files(self._root) > MOST_FILES:
            return HarnessFault("file-limit", f"made more than {MOST_FILES:,} files")
        if self._cpu_before is None:
            self._cpu_before = total.cpu_seconds
        if total.cpu_seconds - self._cpu_before > limits.cpu:
            return HarnessFault("cpu-limit", f"used more than {limits.cpu:g} s of CPU time")
        return None


class WatchThread:
    """Watches the processes of a sandbox while the host does not wait for their answer.

    The thread begins with the first `start`. It wakes every 0.05 s and looks at the processes if
    it was started before it last woke, so that `start` and `stop` cost next to nothing; a sandbox
    that is not used causes no wake-ups.

    Args:
        watch: What to look at.
        kill: Ends all processes, if a limit is exceeded.
    """

    def __init__(self, watch: Watch, kill: Callable[[], None]) -> None:
        self._watch, self._kill = watch, kill
        self._on = self._parked = self._over = False
        self._starts = 0
        self._looking = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault: HarnessFault | None = None

    def start(self) -> None:
        """Watch from now on."""
        self._starts += 1
        self._on = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="coevolve-watch", daemon=True)
            self._thread.start()
        elif self._parked:
            self._wake.set()

    def stop(self) -> HarnessFault | None:
        """Watch no longer; the fault of a limit that was exceeded, if any."""
        self._on = False
        with self._looking:
            return self._fault

    def close(self) -> None:
        """End the thread."""
        self._on, self._over = False, True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        rests = seen = 0
        while not self._over:
            with self._looking:
                known, seen = seen == self._starts, self._starts
                if self._on and known:
                    self._fault = self._watch.look()
                    if self._fault is not None:
                        self._kill()
                        return
            rests = 0 if self._on else rests + 1
            self._parked = rests > _RESTS_PER_PARKING
            if self._wake.wait(None if self._parked and not self._on else EVERY_SECONDS):
                self._wake.clear()
            self._parked = False
