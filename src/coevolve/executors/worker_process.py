"""One worker process as the engine sees it: started, fed, limited, ended."""

import asyncio
import contextlib
import ctypes
import fcntl
import inspect
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from coevolve.core.outcomes import Usage
from coevolve.errors import InputError, nearest
from coevolve.executors.channel import (
    AsyncPipe,
    Message,
    PipeError,
    fault_from_json,
    fault_to_json,
    pack,
)
from coevolve.executors.failures import (
    DoubtfulError,
    FaultError,
    InfrastructureError,
    TrialError,
    classify,
)
from coevolve.executors.isolation.launch import remove
from coevolve.executors.isolation.process_table import descendants

_PREFIX = "coevolve-scratch-"
_LOCK = ".lock"


class Scratch:
    """A temporary folder of this process, which holds a lock on it while it lives.

    Making one clears away those whose process is gone.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self.lock = folder, lock

    @classmethod
    def make(cls, parent: Path | None = None) -> Self:
        """A new folder, in the system's folder for temporary files unless another is given."""
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        for stale in parent.glob(f"{_PREFIX}*"):
            _clear_if_left(stale)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        folder.chmod(0o755)  # a sandbox below it may be another user's
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(folder, lock)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        remove(self.folder)
        os.close(self.lock)


def _clear_if_left(folder: Path) -> None:
    """Remove a folder of ours that no living process holds."""
    # Other users' folders cannot be opened, and one that is just being made has no lock yet.
    with contextlib.suppress(OSError):
        lock = os.open(folder / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        finally:
            os.close(lock)


_COSTS = frozenset(("tokens_in", "tokens_out", "dollars"))


class Asked:
    """The services' side of an attempt, known even if its worker never answers.

    >>> asked = Asked()
    >>> asked.begin("model")
    >>> asked.end({"text": "yes", "usage": {"tokens_in": 90, "tokens_out": 1, "dollars": 0.02}})
    >>> asked.counted(Usage(seconds=2.5))
    Usage(tokens_in=90, tokens_out=1, dollars=0.02, seconds=2.5)
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self._waited = 0.0
        self._service = ""
        self._since: float | None = None

    def begin(self, service: str) -> None:
        """A service is asked; without `end` it never answered."""
        self._service, self._since = service, time.monotonic()

    def end(self, answer: object = None) -> None:
        """It answered or failed."""
        self._waited, self._since = self.waited_seconds, None
        self.usage += stated_usage(answer)

    def forget_waiting(self) -> None:
        """Begin to count time: only now does the attempt's own begin."""
        self._waited = 0.0

    @property
    def waits_for(self) -> str:
        """The service that has not answered yet; empty if there is none."""
        return "" if self._since is None else self._service

    @property
    def waiting_seconds(self) -> float:
        """How long the answer that has not come is waited for."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    @property
    def waited_seconds(self) -> float:
        """How long all answers were waited for, the last one included."""
        return self._waited + self.waiting_seconds

    def counted(self, usage: Usage) -> Usage:
        """A usage with what the services reported, unless it states tokens or dollars itself."""
        if usage.tokens_in or usage.tokens_out or usage.dollars:
            return usage
        return replace(self.usage, seconds=usage.seconds)


def stated_usage(answer: object) -> Usage:
    """What a service says that an answer has cost, under `usage`; nothing if it does not.

    >>> stated_usage({"text": "yes", "usage": {"tokens_in": 90}}).tokens_in
    90
    """
    stated = answer.get("usage") if isinstance(answer, Mapping) else None
    # A service of the user's own may mean something else by that name.
    if isinstance(stated, Mapping) and stated and _COSTS.issuperset(stated):
        return Usage(**stated)
    return Usage()


class Process(Protocol):
    """A process that can be waited for, as `subprocess.Popen` is one."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """The same after its end; `subprocess.TimeoutExpired` if that does not come in time."""
        ...


class Ends(NamedTuple):
    """The descriptors of a worker: its socket, where it prints, and its two shared bytes."""

    socket: int
    log: int
    flag: int


Start = Callable[[Ends, Asked], Awaitable[Process]]
"""Makes a worker of its descriptors; services it asks meanwhile are put down with the rest."""


def fresh(
    ends: Ends,
    *,
    setup: Message,
    scratch: Path,
    births: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """A worker that is a Python of its own.

    Args:
        ends: What it inherits.
        setup: The message it will get; its benchmark's folder is where it starts.
        scratch: Where it keeps temporary files.
        births: A socket on which it will be asked to fork, if it is to.
        variables: Additions to its environment.
    """
    module = "coevolve.executors.worker"
    numbers = map(str, (ends.flag, os.getpid(), *births))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *numbers],
        stdin=ends.socket,
        stdout=ends.log,
        stderr=ends.log,
        pass_fds=(ends.flag, *births),
        cwd=setup["spec"]["folder"],
        env={**os.environ, **(variables or {}), "TMPDIR": str(scratch)},
        start_new_session=True,
    )


_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Make the kernel end this process when its parent ends, where it can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        raise SystemExit(1)


def kill_tree(process: Process, grace: float) -> None:
    """Kill a process that leads a session, and all it started, and wait for its end.

    It is asked to end first, for it knows best what it started. After `grace` seconds it is
    stopped, so that it starts nothing while its children are killed.
    """
    if process.poll() is None:
        _send(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    if process.poll() is None:
        _send(process.pid, signal.SIGSTOP)
        killed: set[int] = set()
        while found := set(descendants(process.pid)) - killed - {process.pid}:
            for pid in found:
                _send(pid, signal.SIGKILL)
            killed |= found
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


Services = Mapping[str, Callable[..., Any]]

_TAIL = 16_000
_GRACE = 3.0
_KILL_GRACE = 0.5
_POLL = 0.005


class Held(NamedTuple):
    """What a worker holds ready: a candidate with what it learned."""

    name: str
    address: str
    state: str | None


class WorkerHandle:
    """A worker process, its socket, its flag and the end of its log.

    Args:
        setup: The message that makes it ready: spec, isolation, limits.
        slot: Its number among the workers of the executor.
        services: What its benchmark may ask of the engine.
        start: Makes the process, once it is to be ready.
    """

    def __init__(self, setup: Message, *, slot: int, services: Services, start: Start) -> None:
        self.slot = slot
        self.forks = False
        self.holds: Held | None = None
        self.asked = Asked()
        self._setup = {**setup, "slot": slot}
        self._services = services
        self._start = start
        self._process: Process | None = None
        self._tail = b""
        self._ready = False
        self._ended = False
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            end, other = socket.socketpair()
            ours.callback(end.close)
            theirs.callback(other.close)
            self._log, log = os.pipe()
            ours.callback(os.close, self._log)
            theirs.callback(os.close, log)
            shared = theirs.enter_context(tempfile.TemporaryFile())
            os.truncate(shared.fileno(), 2)
            self._flag = ours.enter_context(mmap.mmap(shared.fileno(), 2))
            self._ends = Ends(other.fileno(), log, shared.fileno())
            self._kept, self._lent = ours.pop_all(), theirs.pop_all()
        self._pipe = AsyncPipe(end)
        os.set_blocking(self._log, False)
        asyncio.get_running_loop().add_reader(self._log, self._read_log)

    @property
    def pid(self) -> int | None:
        """The process, once there is one."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs, or will."""
        return self._process is None or self._process.poll() is None

    @property
    def candidate_at_work(self) -> bool:
        """Whether the worker now waits for the candidate."""
        return self._flag[0] == 1

    @property
    def candidate_suspect(self) -> bool:
        """Whether the candidate may have a part in what happens to the worker now.

        It has one if it, or something that was made of its answer, is being worked on; and,
        where nothing keeps it from the worker, from its first call on.
        """
        if self._setup["isolation"] == "process":
            return self._ready and self.holds is not None
        return self._flag[1] == 1

    async def make_ready(self) -> None:
        """Wait until the benchmark is built; raises the fault that kept it from that."""
        if self._ready:
            return
        with self._lent:
            self._process = await self._start(self._ends, self.asked)
        answer = await self.ask(self._setup)
        if "fault" in answer:
            raise FaultError(fault_from_json(answer["fault"]))
        self._ready, self.forks = True, answer["forks"]

    async def ask(self, request: Message) -> Message:
        """The answer to a request; services the worker wants meanwhile are given."""
        asked = pack(request)
        try:
            await self._pipe.send(asked)
            while (message := await self._pipe.receive()) is not None:
                if "ask" not in message:
                    return message
                await self._pipe.send(await self._served(message))
        except PipeError as error:
            reason = f"the worker wrote: {error}"
            raise self._lost(reason, kind="worker-garbage") from error
        except ConnectionError:
            pass
        raise await self._obituary()

    def kill(self) -> None:
        """End the process and all it started, now."""
        if not self._ended:
            if self._process is not None:
                kill_tree(self._process, _KILL_GRACE)
            self._release()

    async def close(self) -> None:
        """Let an idle process end by itself, or end it after a short while."""
        try:
            if not self._ended:
                self._pipe.close()
                await self._wait(_GRACE)
        finally:
            self.kill()

    async def _served(self, message: Message) -> bytes:
        self.asked.begin(message["ask"])
        try:
            answer = await self._answer(message["ask"], message["payload"])
            self.asked.end(answer)
            return pack({"answer": answer})
        except Exception as error:  # and not if it is cancelled: then there was no answer
            # Several may wait for a call that fails; what it has cost is counted once.
            self.asked.end({"usage": vars(error).pop("usage", None)})
            return pack({"fault": fault_to_json(classify(error))})

    async def _answer(self, name: str, payload: Message) -> object:
        if name not in self._services:
            known = nearest(name, self._services)
            raise InputError(f"the engine offers no service {name!r}.{known}")
        answer = self._services[name](**payload)
        return await answer if inspect.isawaitable(answer) else answer

    async def _obituary(self) -> TrialError:
        await self._wait(_GRACE)
        code = None if self._process is None else self._process.poll()
        self._read_log()
        how = "stopped answering" if code is None else f"ended with code {code}"
        advice = ""
        if code is not None and code < 0:
            how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
            advice = "If memory was short, lower the number of workers." if code == -9 else ""
        last = "; ".join(self._tail.decode(errors="replace").strip().splitlines()[-3:])
        said = f"; its last words: {last}" if last else ""
        return self._lost(f"the worker {how}{said}", kind="worker-died", advice=advice)

    def _lost(self, reason: str, *, kind: str, advice: str = "") -> TrialError:
        lost = DoubtfulError if self.candidate_suspect else InfrastructureError
        return lost(reason, kind=kind, advice=advice)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.alive:
                    await asyncio.sleep(_POLL)

    def _read_log(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._log, 1 << 16)
            self._tail = (self._tail + data)[-_TAIL:]
            if not data:
                asyncio.get_running_loop().remove_reader(self._log)

    def _release(self) -> None:
        self._ended = True
        asyncio.get_running_loop().remove_reader(self._log)
        self._kept.close()
        self._lent.close()
