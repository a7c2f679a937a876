"""The interface of an isolation: limits, faults, and how to start a program under them."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coevolve.errors import CoevolveError, InputError
from coevolve.executors.isolation.folders import remove
from coevolve.executors.isolation.system_paths import interpreter
from coevolve.formatting import one_line
from coevolve.search.trials import Blame, Fault

if TYPE_CHECKING:
    from coevolve.executors.isolation.cgroups import Group

MEGABYTE = 1 << 20
OPEN_FILES = 256
SPARE = 8
"""How many processes above the limit may exist until the watch sees them."""
_SHARED_SPARE = 512
_UIDS = range(2_100_000_000, 2_147_000_000)
"""User ids that neither systems nor company directories assign."""
_FEW_UIDS = range(20_000, 60_000)
"""The same in a container with 65536 user ids in all."""
_UIDS_PER_PROCESS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a candidate may use; if it exceeds a limit, it is stopped, and the fault is its own.

    Args:
        seconds: Wall-clock time of one call, without the time spent in services.
        cpu_seconds: CPU time of one call over all its processes; None means twice `seconds`.
        memory_mb: Address space of each process, and resident memory of all of them together.
        processes: Processes and threads at any time.
        file_mb: Size of one written file, and of the private /tmp.
        output_mb: Size of the output of one call.
        answer_mb: Size of one answer, or of one request to a service, as JSON.
        startup_seconds: Wall-clock time for importing the candidate, before its first call.
        asks: Requests to services in one call.
        open_asks: Requests to services that are not answered yet, at any time.

    >>> Limits(seconds=10).cpu
    20
    """

    seconds: float = 60
    cpu_seconds: float | None = None
    memory_mb: int = 2048
    processes: int = 32
    file_mb: int = 64
    output_mb: float = 10
    answer_mb: float = 4
    startup_seconds: float = 20
    asks: int = 1000
    open_asks: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "cpu_seconds":
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and math.isfinite(value) and value > 0):
                raise InputError(f"limit {field.name} must be a positive number, got {value!r}.")

    @property
    def cpu(self) -> float:
        """CPU seconds of one call, set or derived."""
        return self.cpu_seconds if self.cpu_seconds is not None else 2 * self.seconds

    @property
    def memory_bytes(self) -> int:
        return int(self.memory_mb * MEGABYTE)

    @property
    def file_bytes(self) -> int:
        return int(self.file_mb * MEGABYTE)

    @property
    def output_bytes(self) -> int:
        return int(self.output_mb * MEGABYTE)

    @property
    def answer_bytes(self) -> int:
        return int(self.answer_mb * MEGABYTE)


class HarnessFault(CoevolveError):  # noqa: N818
    """The candidate's code failed, broke the protocol or exceeded a limit; `fault` says how.

    >>> HarnessFault("time-limit", "ran longer than 60 s").fault.kind
    'time-limit'
    """

    def __init__(self, kind: str, reason: str, *, blame: Blame = Blame.CANDIDATE) -> None:
        self.kind, self.blame = one_line(kind, 60) or "error", blame
        self.reason = one_line(reason) or "no reason given"
        super().__init__(self.reason)

    @property
    def fault(self) -> Fault:
        """The fault as the engine records it."""
        return Fault(blame=self.blame, kind=self.kind, reason=self.reason)


class ReportedFault(HarnessFault):
    """A fault that the runner reported itself; its process can serve further calls."""


class SandboxError(CoevolveError):
    """A sandbox that could not be started, which is not the candidate's fault.

    >>> SandboxError("no bwrap").fault.blame
    <Blame.INFRASTRUCTURE: 'infrastructure'>
    """

    @property
    def fault(self) -> Fault:
        """The fault as the engine records it."""
        return Fault(blame=Blame.INFRASTRUCTURE, kind="sandbox", reason=one_line(str(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start an isolated program; `close` removes its scratch folder after its end.

    Args:
        argv: Command line.
        env: The whole environment.
        cwd: Folder to start in.
        fds: File descriptors it inherits.
        owned: Those of them that this process closes once the program has started.
        scratch: Folder made for this program only.
        mark: Text in the environment of all its processes, used to find them.
        uid: User id that only its processes have.
        namespace: Whether its processes end with the first child of the command.
        wrappers: Processes in its tree that are there also when no call is under way.
        group: The control group of all its processes, which it joins first.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    fds: tuple[int, ...] = ()
    owned: tuple[int, ...] = ()
    scratch: Path | None = None
    mark: str = ""
    uid: int | None = None
    namespace: bool = False
    wrappers: int = 0
    group: "Group | None" = None

    def memory_fault(self, limits: Limits) -> HarnessFault | None:
        """The fault of a program that the kernel ended for the memory of all its processes."""
        if self.group is None or not self.group.out_of_memory:
            return None
        return HarnessFault(
            "memory-limit",
            f"used more than {limits.memory_mb} MB of memory, that of the kernel included",
        )

    def started(self) -> None:
        """Close the descriptors that the started program has inherited."""
        for fd in self.owned:
            os.close(fd)

    def close(self) -> None:
        """Remove the control group and the scratch folder."""
        if self.group is not None:
            self.group.remove()
        if self.scratch is not None:
            remove(self.scratch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to start in isolation.

    Args:
        argv: The program and its arguments.
        folder: The folder it starts in, which it can only read.
        limits: What it may use.
        readable: Further files or folders it may read, at the same paths.
        network: Whether it may use the network.
        slot: A number that differs between sandboxes of this process that run at once.
        serve: Settings of the runner, if it serves calls instead of executing `argv`.
        fds: Descriptors it inherits.
    """

    argv: Sequence[str] = ()
    folder: Path
    limits: Limits
    readable: Sequence[Path] = ()
    network: bool = False
    slot: int = 0
    serve: Mapping[str, Any] | None = None
    fds: tuple[int, ...] = ()


class Isolation(Protocol):
    """A way to start programs that may be hostile.

    `protects` and `exposes` are sentences about what such a program cannot and can do.
    """

    @property
    def name(self) -> str: ...

    @property
    def protects(self) -> tuple[str, ...]: ...

    @property
    def exposes(self) -> tuple[str, ...]: ...

    def launch(self, program: Program) -> Launch:
        """How to start a program."""
        ...


def confined(
    program: Program,
    *,
    runner: str,
    folder: str,
    writable: Sequence[str],
    private_count: bool,
    uid: int | None,
    parent: int | None,
    namespace: bool = False,
) -> list[str]:
    """The command line of the runner, which confines itself, then serves or becomes a program.

    Args:
        program: The program.
        runner: The path of the runner inside the sandbox.
        folder: The path of the program's folder inside the sandbox.
        writable: Folders inside the sandbox that are emptied after every trial.
        private_count: Whether only the sandbox's own processes count against the process limit.
        uid: The user id to change to, if any.
        parent: The process to end with, if any.
        namespace: Whether it sees and can signal only its own processes.
    """
    limits, serve = program.limits, None
    if program.serve is not None:
        own = {"folder": folder, "writable": list(writable), "namespace": namespace}
        serve = {**program.serve, **own}
    spare = SPARE if private_count else _SHARED_SPARE + user_threads(os.getuid())
    numbers = {
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_NPROC": limits.processes + spare,
    }
    config = {"limits": numbers, "uid": uid, "parent": parent, "serve": serve}
    # Not "-I", which would also ignore the hash seed; we set the environment anyway.
    return [str(interpreter()), "-P", "-s", "-S", runner, json.dumps(config), *program.argv]


def unused_uid(slot: int) -> int | None:
    """A user id for one sandbox that nothing else uses; None if there is none.

    The kernel counts the processes of a user together, so each sandbox needs its own user id.
    """
    wanted = os.getpid() * _UIDS_PER_PROCESS + slot % _UIDS_PER_PROCESS
    for uids in (_UIDS, _FEW_UIDS):
        if uids.stop <= _mapped_uids():
            return uids[wanted % len(uids)]
    return None


def _mapped_uids() -> int:
    """How many user ids, from 0 on, exist in this user namespace."""
    try:
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        return 0
    return next((int(count) for inside, _, count in rows if inside == "0"), 0)


def user_threads(uid: int) -> int:
    """How many processes and threads a user has now; 0 if unknown."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == uid:
                total += len(os.listdir(folder / "task"))  # noqa: PTH208
        except OSError:
            continue
    return total
