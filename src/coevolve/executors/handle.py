"""One worker process as the engine sees it."""

import asyncio
import contextlib
import inspect
import mmap
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from coevolve.errors import InputError, nearest
from coevolve.executors.asked import Asked
from coevolve.executors.failures import (
    DoubtfulError,
    FaultError,
    InfrastructureError,
    TrialError,
    classify,
)
from coevolve.executors.messages import fault_from_json, fault_to_json
from coevolve.executors.pipes import AsyncPipe, Message, PipeError, pack
from coevolve.executors.processes import kill_tree
from coevolve.executors.starts import Ends, Process, Start

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
