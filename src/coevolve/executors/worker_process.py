"""One worker process as the engine sees it."""

import asyncio
import contextlib
import ctypes
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
from typing import Any, NamedTuple, Protocol

from coevolve.core.outcomes import Usage
from coevolve.errors import InputError, nearest
from coevolve.executors.benchmark_needs import GRACE_SECONDS
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
from coevolve.executors.isolation.process_table import descendants, send_signal

Services = Mapping[str, Callable[..., Any]]

_COSTS = frozenset(("tokens_in", "tokens_out", "dollars"))
_TAIL = 16_000
_GRACE = 3.0
_POLL = 0.005
_PR_SET_PDEATHSIG = 1


class ServiceUse:
    """The services that an attempt used: their cost and the time spent waiting for them.

    It is known even if the worker never answers. Several may be used at once.

    >>> use = ServiceUse()
    >>> asked = use.begin("model")
    >>> use.end(asked, {"usage": {"tokens_in": 90, "tokens_out": 1, "dollars": 0.02}})
    >>> use.counted(Usage(seconds=2.5))
    Usage(tokens_in=90, tokens_out=1, dollars=0.02, seconds=2.5)
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.late = ""
        """The service that did not answer within the time limit of the attempt, if one did not."""
        self._waited = 0.0
        self._since = 0.0
        self._count = 0
        self._open: dict[int, tuple[str, float]] = {}

    def begin(self, service: str) -> int:
        """A service is asked; without `end` it never answered. Returns a number for `end`."""
        now = time.monotonic()
        if not self._open:
            self._since = now
        self._count += 1
        self._open[self._count] = (service, now)
        return self._count

    def end(self, asked: int, answer: object = None) -> None:
        """The service answered or failed, or its answer is not needed any more."""
        if self._open.pop(asked, None) is not None and not self._open:
            self._waited += time.monotonic() - self._since
        self.usage += stated_usage(answer)

    def restart_clock(self) -> None:
        """Count waiting time from now on, when the attempt itself begins."""
        self._waited = 0.0

    @property
    def waits_for(self) -> str:
        """The service that has not answered for the longest time; empty if there is none."""
        return next((service for service, _ in self._open.values()), "")

    @property
    def waiting_seconds(self) -> float:
        """How long the engine has waited for that service."""
        since = next((since for _, since in self._open.values()), None)
        return 0.0 if since is None else time.monotonic() - since

    @property
    def waited_seconds(self) -> float:
        """How long the engine has waited for any answer, up to now."""
        return self._waited + (time.monotonic() - self._since if self._open else 0.0)

    def counted(self, usage: Usage) -> Usage:
        """A usage with what the services reported, unless it states tokens or dollars itself."""
        if usage.tokens_in or usage.tokens_out or usage.dollars:
            return usage
        return replace(self.usage, seconds=usage.seconds)


def stated_usage(answer: object) -> Usage:
    """The cost that a service states in its answer under `usage`; zero if it states none.

    >>> stated_usage({"text": "yes", "usage": {"tokens_in": 90}}).tokens_in
    90
    """
    stated = answer.get("usage") if isinstance(answer, Mapping) else None
    # A user's own service may use that name for something else.
    if isinstance(stated, Mapping) and stated and _COSTS.issuperset(stated):
        return Usage(**stated)
    return Usage()


class Process(Protocol):
    """A process that can be waited for, such as `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status; `subprocess.TimeoutExpired` after `timeout` seconds."""
        ...


class Descriptors(NamedTuple):
    """The file descriptors of a worker: its socket, its log, and two bytes shared with it."""

    socket: int
    log: int
    flag: int


Start = Callable[[Descriptors, ServiceUse], Awaitable[Process]]
"""Starts a worker; the services that it uses while starting are added to the second argument."""


def start_fresh(
    descriptors: Descriptors,
    *,
    setup: Message,
    scratch: Path,
    fork_requests: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a worker as a new Python process.

    Args:
        descriptors: What it inherits.
        setup: The message it will get; it starts in the folder of the benchmark.
        scratch: Folder for its temporary files.
        fork_requests: The socket for requests to fork, if it is a fork server.
        variables: Additions to its environment.
    """
    module = "coevolve.executors.worker"
    numbers = map(str, (descriptors.flag, os.getpid(), *fork_requests))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *numbers],
        stdin=descriptors.socket,
        stdout=descriptors.log,
        stderr=descriptors.log,
        pass_fds=(descriptors.flag, *fork_requests),
        cwd=setup["spec"]["folder"],
        env={**os.environ, **(variables or {}), "TMPDIR": str(scratch)},
        start_new_session=True,
    )


def die_with(parent: int) -> None:
    """Make the kernel end this process when its parent ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had already ended
        raise SystemExit(1)


def kill_tree(process: Process, grace: float) -> None:
    """Kill the leader of a session and everything it started, and wait for its end.

    It first gets `grace` seconds to end by itself and to clean up. Then it is stopped, so it
    starts nothing while its children are killed.
    """
    if grace and process.poll() is None:
        send_signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    if process.poll() is None:
        send_signal(process.pid, signal.SIGSTOP)
        killed: set[int] = set()
        while found := set(descendants(process.pid)) - killed - {process.pid}:
            for pid in found:
                send_signal(pid, signal.SIGKILL)
            killed |= found
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Held(NamedTuple):
    """What a worker holds ready: a candidate with its prepared state."""

    name: str
    address: str
    state: str | None


class WorkerHandle:
    """A worker process, its socket, its flag and the end of its log.

    Args:
        setup: The message that makes it ready: spec, isolation, limits.
        slot: Its number among the workers of the executor.
        services: What its benchmark may ask the engine for.
        start: Starts the process.
    """

    def __init__(self, setup: Message, *, slot: int, services: Services, start: Start) -> None:
        self.slot = slot
        self.forks = False
        self.holds: Held | None = None
        self.use = ServiceUse()
        self._setup = {**setup, "slot": slot}
        self._services = services
        self._start = start
        self._process: Process | None = None
        self._sending = asyncio.Lock()
        self._answers: dict[int, asyncio.Task[object]] = {}
        self._replies: set[asyncio.Task[None]] = set()
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
            self._descriptors = Descriptors(other.fileno(), log, shared.fileno())
            self._ours, self._theirs = ours.pop_all(), theirs.pop_all()
        self._pipe = AsyncPipe(end)
        os.set_blocking(self._log, False)
        asyncio.get_running_loop().add_reader(self._log, self._read_log)

    @property
    def pid(self) -> int | None:
        """The process id, once the process is started."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs, or is not started yet."""
        return self._process is None or self._process.poll() is None

    @property
    def candidate_at_work(self) -> bool:
        """Whether the worker is waiting for the candidate now."""
        return self._flag[0] == 1

    @property
    def candidate_suspect(self) -> bool:
        """Whether the candidate may have caused what happens to the worker now.

        It may if it was called in the current request. Without a sandbox, which would keep it
        away from the worker, it may from its first call on.
        """
        if self._setup["isolation"] != "bwrap":
            return self._ready and self.holds is not None
        return self._flag[1] == 1

    async def make_ready(self) -> None:
        """Wait until the benchmark is built; raises the fault that prevents it."""
        if self._ready:
            return
        with self._theirs:
            self._process = await self._start(self._descriptors, self.use)
        answer = await self.ask(self._setup)
        if "fault" in answer:
            raise FaultError(fault_from_json(answer["fault"]))
        self._ready, self.forks = True, answer["forks"]

    async def ask(self, request: Message) -> Message:
        """The answer to a request; services that the worker asks for meanwhile are provided."""
        packed = pack(request)
        lost = True
        try:
            await self._send(packed)
            while (message := await self._pipe.receive()) is not None:
                if "ask" in message:
                    self._begin(message)
                elif "cancel" not in message:
                    lost = False
                    return message
                elif (answer := self._answers.get(message["cancel"])) is not None:
                    answer.cancel()
        except PipeError as error:
            reason = f"the worker sent an invalid message: {error}"
            raise self._lost(reason, kind="worker-garbage") from error
        except ConnectionError:
            pass
        finally:
            await self._end_services(lost=lost)
        raise await self._exit_error()

    async def end(self, grace: float) -> None:
        """End the process; it gets `grace` seconds to clean up, then everything is killed."""
        try:
            if not self._ended and self._process is not None and self.alive:
                send_signal(self._process.pid, signal.SIGTERM)
                await self._wait(grace)
        finally:
            self.kill(grace=0)

    def kill(self, grace: float = GRACE_SECONDS) -> None:
        """End the process and everything it started, while this thread waits."""
        if not self._ended:
            if self._process is not None:
                kill_tree(self._process, grace)
            self._ended = True
            asyncio.get_running_loop().remove_reader(self._log)
            self._ours.close()
            self._theirs.close()

    async def close(self, grace: float = GRACE_SECONDS) -> None:
        """Let an idle process end by itself, or end it after a short wait."""
        try:
            if not self._ended:
                self._pipe.close()
                await self._wait(max(grace, _GRACE))
        finally:
            self.kill()

    async def _send(self, packed: bytes) -> None:
        async with self._sending:  # a message must not be mixed with another
            await self._pipe.send(packed)

    def _begin(self, message: Message) -> None:
        """Serve a request of the worker while others are served too."""
        number, use = message["number"], self.use
        answer = asyncio.ensure_future(self._answer(message["ask"], message["payload"]))
        self._answers[number] = answer
        task = asyncio.create_task(self._reply(number, answer, use, use.begin(message["ask"])))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)

    async def _reply(
        self, number: int, answer: "asyncio.Task[object]", use: ServiceUse, asked: int
    ) -> None:
        """Send the answer of a service; nothing if the attempt has ended."""
        try:
            found = await asyncio.shield(answer)
            use.end(asked, found)
            reply = pack({"number": number, "answer": found})
        except asyncio.CancelledError:
            if number not in self._answers:
                return  # it never answered
            use.end(asked)
            reply = pack({"number": number, "cancelled": True})
        except Exception as error:
            # Several attempts may wait for one call that fails; its cost is counted once.
            use.end(asked, {"usage": vars(error).pop("usage", None)})
            reply = pack({"number": number, "fault": fault_to_json(classify(error))})
        self._answers.pop(number, None)
        await self._send(reply)

    async def _end_services(self, *, lost: bool) -> None:
        """Cancel the services that are still at work; `lost` says that the worker is, too."""
        answers, self._answers = list(self._answers.values()), {}
        replies = list(self._replies)
        for task in [*answers, *(replies if lost else ())]:
            task.cancel()
        # A reply that is being sent is sent whole, else the next message would be unreadable.
        if answers or replies:
            await asyncio.gather(*answers, *replies, return_exceptions=True)

    async def _answer(self, name: str, payload: Message) -> object:
        if name not in self._services:
            known = nearest(name, self._services)
            raise InputError(f"the engine has no service {name!r}.{known}")
        answer = self._services[name](**payload)
        return await answer if inspect.isawaitable(answer) else answer

    async def _exit_error(self) -> TrialError:
        """How the process ended, with its exit status and the end of its log."""
        await self._wait(_GRACE)
        code = None if self._process is None else self._process.poll()
        self._read_log()
        how = "stopped answering" if code is None else f"ended with exit status {code}"
        advice = ""
        if code is not None and code < 0:
            how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
            advice = "If memory was short, lower the number of workers." if code == -9 else ""
        last = "; ".join(self._tail.decode(errors="replace").strip().splitlines()[-3:])
        printed = f"; its last output: {last}" if last else ""
        return self._lost(f"the worker {how}{printed}", kind="worker-died", advice=advice)

    def _lost(self, reason: str, *, kind: str, advice: str = "") -> TrialError:
        if self.candidate_suspect:
            return DoubtfulError(reason, kind=kind, advice=advice)
        return InfrastructureError(reason, kind=kind, advice=advice, shared=True)

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
