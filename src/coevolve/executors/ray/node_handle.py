"""One node of the cluster as the head sees it: its actor, its slots, what it has, what it asks."""

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.errors import InputError, nearest
from coevolve.executors.channel import Message, fault_to_json
from coevolve.executors.failures import (
    DoubtfulError,
    InfrastructureError,
    TrialError,
    classify,
)
from coevolve.executors.ray.node_host import key_of
from coevolve.executors.worker_process import Services, stated_usage
from coevolve.formatting import one_line
from coevolve.search.candidate import Candidate

OPEN_ASKS = 256
"""Requests of one node that the engine works on at once; the others wait on the node."""
_LOG = logging.getLogger(__name__)
_CLOSE_SECONDS = 10.0
_OUT_OF_MEMORY = ("OutOfMemoryError", "NODE_OUT_OF_MEMORY")
"""What Ray's errors say if its memory monitor has killed a process."""
_MOST_REASON = 300


class NodeLost(Exception):  # noqa: N818
    """The actor of a node cannot be reached any more; its cause is Ray's error, if any."""


class NodeHandle:
    """The actor of a node.

    Args:
        actor: The handle of the actor, a `NodeHost`.
        node: The id of the node.
        label: The name of the node for people.
        slots: How many trials it may run at once.
        services: What its trials may ask the engine for.
        kill: Ends the actor at once.

    Attributes:
        busy: Slots that trials use.
        counts: Whether the node is known to be able to run trials.
        ready: Whether it takes attempts now.
        lost: Whether it was given up.
        shipped_bytes: Bytes of contents that were sent to it.
    """

    def __init__(
        self,
        actor: Any,
        *,
        node: str,
        label: str,
        slots: int,
        services: Services,
        kill: Callable[[Any], None],
    ) -> None:
        self.node, self.label, self.slots = node, label, slots
        self.busy = 0
        self.counts = self.ready = self.lost = False
        self.shipped_bytes = 0
        self._actor, self._services, self._kill = actor, services, kill
        self._calls: set[asyncio.Future[Any]] = set()
        self._sent: dict[str, asyncio.Task[None] | None] = {}
        self._spent: dict[int, Usage] = {}
        self._asks: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(OPEN_ASKS)
        self._serving: asyncio.Task[None] | None = None

    @property
    def free(self) -> int:
        """Slots that no trial uses."""
        return self.slots - self.busy if self.ready and not self.lost else 0

    async def facts(self) -> Message:
        """What the node offers."""
        found: Message = await self._call(self._actor.facts.remote())
        return found

    def facts_now(self, ray: ModuleType, seconds: float) -> Message:
        """The same, while this thread waits."""
        found: Message = ray.get(self._actor.facts.remote(), timeout=seconds)
        return found

    async def begin(self, setup: Message) -> None:
        """Make the node ready for attempts."""
        await self._call(self._actor.begin.remote({**setup, "slots": self.slots}))
        self.counts = self.ready = True

    async def ship(
        self, candidate: Candidate, state: str | None, read: Callable[[], Mapping[str, bytes]]
    ) -> None:
        """Send what an attempt needs and the node does not have; each content is sent once.

        Args:
            candidate: The candidate.
            state: The address of its state, if it has one.
            read: The contents of the candidate's files and its state, by address.
        """
        key = key_of(candidate)
        wanted = {key, *candidate.files.values(), *([] if state is None else [state])}
        if lacking := wanted - self._sent.keys():
            contents = {name: data for name, data in read().items() if name in lacking}
            task = asyncio.create_task(self._send(contents, candidate))
            self._sent.update(dict.fromkeys(lacking, task))
        pending = {sent for name in wanted if (sent := self._sent[name]) is not None}
        if pending:
            # An attempt that is cancelled must not cancel what others wait for.
            await asyncio.gather(*map(asyncio.shield, pending))
            self._sent.update(dict.fromkeys(wanted))

    async def attempt(
        self, number: int, op: str, candidate: Candidate, trial: Message | None
    ) -> Message:
        """The reply to one attempt; if this call is cancelled, the node ends the attempt."""
        if self._serving is None and self._services:
            self._serving = asyncio.create_task(self._serve())
        self._spent[number] = Usage()
        try:
            reply: Message = await self._call(
                self._actor.attempt.remote(number, op, key_of(candidate), trial)
            )
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.create_task(self._cancel(number)))
            raise
        return reply

    def spent(self, number: int) -> Usage:
        """What the services of the engine have charged an attempt; asked once, at its end."""
        return self._spent.pop(number, Usage())

    def lose(self) -> None:
        """Give the node up: calls end with `NodeLost`, and its actor is ended."""
        if not self.lost:
            self.lost = True
            self._kill(self._actor)
            for call in list(self._calls):
                call.cancel()
            self._end_asks()

    async def close(self, grace: float) -> None:
        """Let the node end its processes, then end the actor."""
        if not self.lost:
            try:
                async with asyncio.timeout(grace + _CLOSE_SECONDS):
                    await self._call(self._actor.close.remote())
            except (TimeoutError, NodeLost):
                pass  # its processes end with the actor
        self.lose()
        left = [task for task in (self._serving, *self._asks.values()) if task is not None]
        await asyncio.gather(*left, return_exceptions=True)

    async def _send(self, contents: Mapping[str, bytes], candidate: Candidate) -> None:
        try:
            await self._call(self._actor.keep.remote(dict(contents), candidate.to_json()))
        except NodeLost:
            raise
        except Exception as error:  # damaged on the way, or its disk is full
            self.lose()
            raise NodeLost from error
        self.shipped_bytes += sum(map(len, contents.values()))

    async def _cancel(self, number: int) -> None:
        self.spent(number)
        with contextlib.suppress(NodeLost):  # the attempt has ended with it
            await self._call(self._actor.cancel.remote(number))

    async def _call(self, reference: Any) -> Any:
        """The result of a call of the actor.

        Raises:
            NodeLost: The actor, its node or the result is gone.
        """
        from ray.exceptions import RayError, RayTaskError

        if self.lost:
            raise NodeLost
        call = asyncio.wrap_future(reference.future())
        self._calls.add(call)
        try:
            return await call
        except RayTaskError as error:  # the method itself has raised
            raise getattr(error, "cause", None) or error from None
        except RayError as error:
            self.lose()
            raise NodeLost from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.lost and task is not None and not task.cancelling():
                raise NodeLost from None
            raise
        finally:
            self._calls.discard(call)

    async def _serve(self) -> None:
        """Fetch the requests of trials and answer them, as many at once as there is room for."""
        try:
            while not self.lost:
                await self._room.acquire()
                self._room.release()
                most = OPEN_ASKS - len(self._asks)
                for message in await self._call(self._actor.requests.remote(most)):
                    if "ask" in message:
                        await self._room.acquire()
                        number = message["number"]
                        self._asks[number] = asyncio.create_task(self._answer(message))
                    elif (task := self._asks.get(message["cancel"])) is not None:
                        task.cancel()
        except NodeLost:
            self._end_asks()
        except Exception as error:  # otherwise model calls of the node would wait for ever
            text = one_line(str(error))[:300]
            _LOG.warning("Node %s is given up, its model calls failed: %s", self.label, text)
            self.lose()
            self._end_asks()

    async def _answer(self, message: Message) -> None:
        number, attempt = message["number"], message["attempt"]
        try:
            answer = await self._service(message["ask"], message["payload"])
            self._charge(attempt, answer)
            reply: Message = {"answer": answer}
        except Exception as error:
            # Several attempts may wait for one call that fails; its cost is counted once.
            usage = vars(error).pop("usage", None)
            self._charge(attempt, {"usage": usage})
            reply = {"fault": fault_to_json(classify(error)), "usage": usage}
        finally:
            self._asks.pop(number, None)
            self._room.release()
        if not self.lost:
            self._actor.answer.remote(number, reply)

    async def _service(self, name: str, payload: Message) -> object:
        if name not in self._services:
            known = nearest(name, self._services)
            raise InputError(f"the engine has no service {name!r}.{known}")
        answer = self._services[name](**payload)
        return await answer if inspect.isawaitable(answer) else answer

    def _charge(self, attempt: int, answer: object) -> None:
        if attempt in self._spent:
            self._spent[attempt] += stated_usage(answer)

    def _end_asks(self) -> None:
        for task in [*self._asks.values(), *([self._serving] if self._serving else [])]:
            if task is not asyncio.current_task():
                task.cancel()


def loss(error: NodeLost, node: NodeHandle, *, isolated: bool, since: float) -> TrialError:
    """The fault of an attempt whose node was lost.

    A node that is gone is the fault of the infrastructure. If candidates are not isolated from
    the processes of the node, they may have caused it. A process that was killed because memory
    was short is judged as on one machine: it is doubtful.
    """
    cause = error.__cause__
    why = "it left the cluster" if cause is None else one_line(str(cause))[:_MOST_REASON]
    reason = f"node {node.label} was lost after {time.monotonic() - since:.1f} s: {why}"
    if any(words in f"{type(cause).__name__}: {cause}" for words in _OUT_OF_MEMORY):
        advice = "Lower the trials per node: raise executor.memory_mb or executor.cpus."
        return DoubtfulError(reason, kind="worker-died", advice=advice)
    return InfrastructureError(reason, kind="node-lost", shared=isolated)
