"""A node of the cluster: a Ray actor that runs trials with the workers of the local executor.

The head sends contents once, by their addresses, and asks for single attempts. Isolation, limits
and the judgement of failures are those of `LocalExecutor`, which runs in this actor. Requests to
services of the engine, such as the model, wait here until the head fetches them: the actor has no
key, and a busy head is not flooded.
"""

import asyncio
import contextvars
import math
import os
import platform
import socket
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import coevolve
from coevolve.errors import CoevolveError, StateError
from coevolve.executors.channel import Message, done_to_json, fault_from_json
from coevolve.executors.failures import FaultError
from coevolve.executors.isolation import Limits, find_isolation
from coevolve.executors.isolation.cgroups import why_no_groups
from coevolve.executors.isolation.folders import Scratch
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate, address_of
from coevolve.search.trials import Trial

POLL_SECONDS = 20.0
"""How long a request for the asks of trials waits before it is answered with none."""

_GPUS = "CUDA_VISIBLE_DEVICES"
_attempt: contextvars.ContextVar[int] = contextvars.ContextVar("attempt", default=0)
"""The attempt that the current task works for: who pays for what it asks."""


class NodeContents:
    """Contents by address, in a folder of this node that is removed with its process."""

    def __init__(self) -> None:
        self._scratch = Scratch.make()
        self._candidates: dict[str, Candidate] = {}

    def keep(self, contents: Mapping[str, bytes], candidate: Candidate | None) -> None:
        """Keep what the head has sent.

        Raises:
            CoevolveError: Some bytes are not what their address says.
        """
        for address, data in contents.items():
            if address_of(data) != address:
                raise CoevolveError(f"content {address} arrived damaged at this node.")
            self._path(address).write_bytes(data)
        if candidate is not None:
            self._candidates[key_of(candidate)] = candidate

    def candidate(self, key: str) -> Candidate:
        """A candidate that the head has sent."""
        return self._candidates[key]

    def get(self, address: str) -> bytes:
        """The bytes stored at an address."""
        return self._path(address).read_bytes()

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, not to be changed."""
        folder = self._scratch.folder / "candidates" / candidate.address
        if not folder.exists():  # a sandbox may be importing files that exist
            new = folder.with_suffix(".new")
            for path, address in candidate.files.items():
                target = new / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self.get(address))
            new.rename(folder)
        return folder

    def remove(self) -> None:
        """Remove everything."""
        self._scratch.remove()

    def _path(self, address: str) -> Path:
        return self._scratch.folder / f"content-{address}"


def key_of(candidate: Candidate) -> str:
    """The name of a candidate on a node; equal files under two names are two candidates.

    >>> key_of(Candidate.of({"a.py": b""}, name="mine")).partition("@")[0]
    'mine'
    """
    return f"{candidate.name}@{candidate.address}"


def examine_node(kind: str) -> Message:
    """What this node offers: versions, and its isolation or why it cannot isolate candidates."""
    try:
        isolation, why = find_isolation(kind).name, ""
    except CoevolveError as error:
        isolation, why = "", str(error)
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": coevolve.__version__,
        "python": platform.python_version(),
        "isolation": isolation,
        "why_not": why,
        "groups": why_no_groups(),
    }


def moved(value: Any, here: Path, project: str) -> Any:
    """Plain JSON with paths inside the head's project folder replaced by those of this node.

    >>> moved({"data": ["/home/me/project/data.csv", 3]}, Path("/node"), "/home/me/project")
    {'data': ['/node/data.csv', 3]}
    """
    if isinstance(value, str):
        if value == project:
            return str(here)
        inside = value.startswith(f"{project}/")
        return f"{here}{value[len(project) :]}" if inside else value
    if isinstance(value, Mapping):
        return {name: moved(part, here, project) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [moved(part, here, project) for part in value]
    return value


def gpu_variables(environment: Mapping[str, str], gpus: float, slots: int) -> list[dict[str, str]]:
    """Which of the graphics processors that Ray gave to this node each worker may use.

    >>> gpu_variables({"CUDA_VISIBLE_DEVICES": "4,5"}, 0.5, 4)[2]
    {'CUDA_VISIBLE_DEVICES': '5'}
    """
    given = [name for name in environment.get(_GPUS, "").split(",") if name]
    if not gpus or not given:
        return []
    each = max(1, math.floor(gpus))
    firsts = (math.floor(slot * gpus) for slot in range(slots))
    return [{_GPUS: ",".join(given[first : first + each])} for first in firsts]


class NodeHost:
    """Runs the trials of one node; a Ray actor whose methods run at once.

    Args:
        kind: The isolation of candidate code, a name for `find_isolation`.
    """

    def __init__(self, kind: str) -> None:
        self._facts = examine_node(kind)
        self._folder = Path.cwd()
        self._contents: NodeContents | None = None
        self._executor: LocalExecutor | None = None
        self._attempts: dict[int, asyncio.Task[Message]] = {}
        self._outbox: deque[Message] = deque()
        self._filled = asyncio.Event()
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._asked = 0

    async def facts(self) -> Message:
        """What this node offers."""
        return self._facts

    async def begin(self, setup: Message) -> None:
        """Make ready for attempts; workers start with the first of them."""
        spec = setup["spec"]
        if setup["project"] is not None:  # Ray has copied it into the working folder
            spec = moved(spec, self._folder, setup["project"])
        self._contents = NodeContents()
        self._executor = LocalExecutor(
            Spec.from_json(spec),
            contents=self._contents,
            workers=setup["slots"],
            isolation=setup["isolation"],
            limits=Limits(**setup["limits"]),
            services={name: self._service(name) for name in setup["services"]},
            variables=gpu_variables(os.environ, setup["gpus"], setup["slots"]),
            **setup["seconds"],
        )

    async def keep(self, contents: dict[str, bytes], candidate: Message | None) -> None:
        """Keep contents and a candidate made of them."""
        if self._contents is None:
            raise StateError("a node needs its setup before contents.")
        found = None if candidate is None else Candidate.from_json(candidate)
        self._contents.keep(contents, found)

    async def attempt(self, number: int, op: str, key: str, trial: Message | None) -> Message:
        """The result of one attempt, as plain JSON."""
        if number in self._attempts:
            raise StateError(f"attempt {number} runs on this node already.")
        task = asyncio.ensure_future(self._run(number, op, key, trial))
        self._attempts[number] = task
        try:
            return await asyncio.shield(task)
        finally:
            self._attempts.pop(number, None)

    async def cancel(self, number: int) -> None:
        """End an attempt and everything it started."""
        task = self._attempts.get(number)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def requests(self, most: int) -> list[Message]:
        """Up to `most` requests of trials to services of the engine, when there are any."""
        if not self._outbox:
            self._filled.clear()
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._filled.wait()
            except TimeoutError:
                return []
        return [self._outbox.popleft() for _ in range(min(most, len(self._outbox)))]

    async def answer(self, number: int, answer: Message) -> None:
        """Pass on the engine's answer to a request; nothing if nobody waits for it any more."""
        waiting = self._answers.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def close(self) -> None:
        """End every process of this node; attempts that are running end with a fault."""
        if self._executor is not None:
            await self._executor.close()
        if self._attempts:
            await asyncio.wait(list(self._attempts.values()))
        if self._contents is not None:
            self._contents.remove()

    async def _run(self, number: int, op: str, key: str, trial: Message | None) -> Message:
        if self._executor is None or self._contents is None:
            raise StateError("a node needs its setup before attempts.")
        _attempt.set(number)  # tasks that this one starts, such as requests, inherit it
        candidate = self._contents.candidate(key)
        if trial is not None:
            return done_to_json(await self._executor.run(candidate, Trial(**trial)))
        step = self._executor.check if op == "check" else self._executor.prepare
        return done_to_json(await step(candidate))

    def _service(self, name: str) -> Callable[..., Any]:
        async def ask(**payload: Any) -> Any:
            return await self._ask(name, payload)

        return ask

    async def _ask(self, name: str, payload: Message) -> Any:
        self._asked += 1
        number = self._asked
        waiting = asyncio.get_running_loop().create_future()
        self._answers[number] = waiting
        request = {"number": number, "attempt": _attempt.get(), "ask": name, "payload": payload}
        self._post(request)
        try:
            answer = await waiting
        except asyncio.CancelledError:
            if request in self._outbox:
                self._outbox.remove(request)
            else:
                self._post({"cancel": number})
            raise
        finally:
            del self._answers[number]
        if "fault" in answer:
            error = FaultError(fault_from_json(answer["fault"]))
            vars(error)["usage"] = answer["usage"]
            raise error
        return answer["answer"]

    def _post(self, message: Message) -> None:
        self._outbox.append(message)
        self._filled.set()
