"""Trials on the nodes of a Ray cluster, with the workers of the local executor on each node."""

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace

import coevolve
from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError, InputError, StateError
from coevolve.executors.benchmark_needs import GRACE_SECONDS, TRIAL_SECONDS
from coevolve.executors.channel import Message, prepared_from_json, result_from_json
from coevolve.executors.failures import InfrastructureError, classify
from coevolve.executors.isolation import Limits
from coevolve.executors.isolation.plain_process import AS_ROOT
from coevolve.executors.local import Contents, processors
from coevolve.executors.ray.node_handle import NodeHandle, NodeLost, loss
from coevolve.executors.ray.node_host import NodeHost
from coevolve.executors.ray.ray_connection import (
    NAMESPACE,
    ClusterPlace,
    RayConnection,
    run_name,
)
from coevolve.executors.ray.trial_share import TrialShare
from coevolve.executors.worker_process import Services
from coevolve.executors.workload import Spec
from coevolve.formatting import one_line
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Cell, Fault, Prepared, Result, Trial

LOOK_SECONDS = 1.0
"""How often the executor looks for nodes that joined or left."""
_AGAIN_SECONDS = 5.0
"""How long a node is left alone after its actor was lost or refused."""
_STRENGTH = (AS_ROOT, "process", "bwrap")
_CONCURRENCY = 10_000
_LOG = logging.getLogger(__name__)
_START_SECONDS = 120.0
_POLL = 0.02


class RayExecutor:
    """Runs trials on the nodes of a Ray cluster.

    One actor on every node reserves the resources of the trials that fit there, and runs them
    with a `LocalExecutor`. Ray itself retries nothing. An attempt whose node is lost ends with a
    fault, so that the journal records it; the next attempt runs on another node.

    Args:
        benchmark: How a worker builds the benchmark; its folder is copied to the nodes.
        contents: Where the files and the states of candidates are stored.
        workers: The most attempts at once; None allows as many as fit into the cluster.
        isolation: A name for `find_isolation`. With "auto", the strongest isolation that any
            node offers; nodes that do not have it are left out.
        limits: What a candidate may use.
        trial_seconds: Time limit of one attempt.
        prepare_seconds: Time limit for building the benchmark, for a check and a preparation.
        grace_seconds: How long a worker that is ended may take to clean up.
        services: What benchmarks may ask the engine for; they are answered in this process.
        place: The cluster.
        share: What one trial reserves.
        join_seconds: How long to wait for a node, if there is none, before an attempt fails.
    """

    elastic = True
    """Its capacity changes while trials run."""

    def __init__(
        self,
        benchmark: Spec,
        *,
        contents: Contents,
        workers: int | None = None,
        isolation: str = "auto",
        limits: Limits | None = None,
        trial_seconds: float = TRIAL_SECONDS,
        prepare_seconds: float = 3600,
        grace_seconds: float = GRACE_SECONDS,
        services: Services | None = None,
        place: ClusterPlace | None = None,
        share: TrialShare | None = None,
        join_seconds: float = 300.0,
    ) -> None:
        seconds = {
            "trial_seconds": trial_seconds,
            "prepare_seconds": prepare_seconds,
            "grace_seconds": grace_seconds,
        }
        numbers = {"workers": workers or 1, "join_seconds": join_seconds, **seconds}
        for name, value in numbers.items():
            if not value > 0:
                raise InputError(f"{name} must be positive, got {value!r}.")
        if benchmark.folder is not None and not benchmark.folder.is_dir():
            raise ConfigError(f"the benchmark's folder {benchmark.folder} does not exist.")
        place, self._share = place or ClusterPlace(), share or TrialShare()
        self._contents, self._services = contents, services or {}
        self._kind, self._grace, self._join_seconds = isolation, grace_seconds, join_seconds
        self._workers = workers
        local = processors() if workers is None else workers * self._share.cpus
        self._connection = RayConnection.join(place, project=benchmark.folder, cpus=local)
        self._asks_scaler = place.address is not None and workers is not None
        self._run = run_name(contents)
        self._setup: Message = {
            "spec": benchmark.to_json(),
            "project": self._connection.project,
            "limits": asdict(limits or Limits()),
            "services": sorted(self._services),
            "seconds": seconds,
            "gpus": self._share.gpus,
        }
        self._nodes: dict[str, NodeHandle] = {}
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._quiet: dict[str, float] = {}
        self._numbers, self._actors = itertools.count(1), itertools.count(1)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._failed_on: dict[Cell, set[str]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        self.refused: dict[str, str] = {}
        """Why nodes cannot run trials, by their names."""
        self.lost_nodes = 0
        """How many nodes or their actors were lost in this session."""
        try:
            self._connection.end_actors(self._run)
            self.isolation_name = self._first_nodes()
            """How candidate code is isolated; empty until there is a node."""
        except BaseException:
            self._connection.leave()
            raise

    @property
    def capacity(self) -> int:
        """How many attempts may run at once now; at least 1, since a node may join."""
        alive = (node for node in self._nodes.values() if node.counts and not node.lost)
        return max(1, sum(node.slots for node in alive))

    @property
    def shipped_bytes(self) -> int:
        """Bytes of candidates and states that were sent to the nodes that are there."""
        return sum(node.shipped_bytes for node in self._nodes.values())

    async def check(self, candidate: Candidate) -> Prepared:
        """Check whether a candidate can be evaluated at all; `fault` says why not."""
        return await self._prepared("check", candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; its state is passed to every trial."""
        return await self._prepared("prepare", candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt; cancelling the call ends it and everything it started."""
        reply, fault, usage = await self._attempted("run", candidate, trial, trial.cell)
        if fault is not None:
            return Result(fault=fault, usage=usage)
        return result_from_json(reply)

    async def close(self) -> None:
        """End every process on every node; attempts that are running end with a fault."""
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _prepared(self, op: str, candidate: Candidate) -> Prepared:
        cell = Cell(candidate.name, f"({op})", 0)
        reply, fault, usage = await self._attempted(op, candidate, None, cell)
        if fault is not None:
            return Prepared(fault=fault, usage=usage)
        return prepared_from_json(reply)

    async def _attempted(
        self, op: str, candidate: Candidate, trial: Trial | None, cell: Cell
    ) -> tuple[Message, Fault | None, Usage]:
        """The reply of a node, or the fault of an attempt without one and what it has cost."""
        if self._closed:
            raise StateError("the executor is closed; create a new one.")
        self._wake()
        started, number, paid = time.monotonic(), next(self._numbers), Usage()
        state = None if trial is None else trial.state
        described = None if trial is None else asdict(trial)
        try:
            async with self._seat(cell) as node:
                try:
                    await node.ship(candidate, state, lambda: self._read(candidate, state))
                    reply = await node.attempt(number, op, candidate, described)
                except NodeLost as lost:
                    self._failed_on.setdefault(cell, set()).add(node.node)
                    isolated = self.isolation_name == "bwrap"
                    raise loss(lost, node, isolated=isolated, since=started) from lost
                finally:
                    paid = node.spent(number)
        except Exception as error:
            fault = _closed().fault if self._closed else classify(error)
            return {}, fault, replace(paid, seconds=time.monotonic() - started)
        self._failed_on.pop(cell, None)
        return reply, None, paid

    @asynccontextmanager
    async def _seat(self, cell: Cell) -> AsyncIterator[NodeHandle]:
        """A slot of a node, if possible of one that the attempt has not failed on."""
        node = await self._free_node(cell)
        node.busy += 1
        try:
            yield node
        finally:
            node.busy -= 1
            if node.lost:
                self._forget(node)
            self._notify()

    async def _free_node(self, cell: Cell) -> NodeHandle:
        alone = time.monotonic()
        while True:
            if self._closed:
                raise _closed()
            alive = [node for node in self._nodes.values() if not node.lost]
            bad = self._failed_on.get(cell, set())
            others = [node for node in alive if node.node not in bad] or alive
            found = max(others, key=lambda node: node.free, default=None)
            if found is not None and found.free > 0:
                return found
            now = time.monotonic()
            alone = now if any(node.ready for node in alive) else alone
            if now - alone > self._join_seconds:
                why = self._why_refused()
                raise InfrastructureError(
                    f"the cluster has had no node for trials for {self._join_seconds:g} s"
                    + (f" ({why})" if why else ""),
                    kind="no-node",
                    shared=True,
                )
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await asyncio.wait([turn], timeout=LOOK_SECONDS)
            turn.cancel()

    def _notify(self) -> None:
        """Let one attempt that waits for a slot look again."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _read(self, candidate: Candidate, state: str | None) -> Mapping[str, bytes]:
        folder = self._contents.checkout(candidate)
        found = {
            address: (folder / path).read_bytes() for path, address in candidate.files.items()
        }
        return found if state is None else {**found, state: self._contents.get(state)}

    def _first_nodes(self) -> str:
        """Start actors on the nodes that are there; the isolation that trials will have.

        Raises:
            ConfigError: No node can run trials; the message names each and why.
        """
        facts: dict[str, Message] = {}
        for node, free in self._connection.nodes().items():
            if handle := self._started(node, free):
                self._nodes[node] = handle
        for node, handle in list(self._nodes.items()):
            try:
                facts[node] = handle.facts_now(self._connection.ray, _START_SECONDS)
            except Exception as error:
                self._refuse(handle, f"its actor does not start: {one_line(str(error))[:300]}")
        names = [fact["isolation"] for fact in facts.values() if fact["isolation"]]
        best = max(names, key=_STRENGTH.index, default="")
        for node, fact in facts.items():
            if why := _obstacle(fact, best):
                self._refuse(self._nodes[node], why)
            else:
                self._nodes[node].counts = True
        self._check_possible()
        self._tell_scaler()
        return best

    def _check_possible(self) -> None:
        """Refuse a cluster on which no trial can ever run; one that is only busy is waited for."""
        if self._nodes:
            return
        wanted = ", ".join(f"{v:g} {name}" for name, v in self._share.named().items() if v)
        if self.refused:
            why = self._why_refused()
        elif any(self._share.fit(total) for total in self._connection.totals()):
            return
        elif self._asks_scaler:
            return  # the autoscaler may add a node
        else:
            labels = ", ".join(self._connection.labels().values())
            why = f"a trial reserves {wanted}, and no node has that much ({labels})"
        raise ConfigError(f"no node of the Ray cluster can run trials: {why}.")

    def _why_refused(self) -> str:
        return "; ".join(f"{label}: {why}" for label, why in self.refused.items())

    def _started(self, node: str, free: Mapping[str, float]) -> NodeHandle | None:
        """The actor of a node, being started; None if no trial fits there."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        slots = self._share.fit(free)
        if self._workers is not None:
            slots = min(slots, self._workers - sum(one.slots for one in self._nodes.values()))
        if slots < 1:
            return None
        ray = self._connection.ray
        actor = (
            ray.remote(NodeHost)
            .options(
                name=f"{self._run}/{node}/{next(self._actors)}",
                namespace=NAMESPACE,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                max_restarts=0,  # a restart would hide a failure from the journal
                max_task_retries=0,
                max_concurrency=_CONCURRENCY,
                enable_task_events=False,  # Ray's control store would keep some for every trial
                **self._share.options(slots),
            )
            .remote(self._kind)
        )
        return NodeHandle(
            actor,
            node=node,
            label=self._connection.labels().get(node, node[:8]),
            slots=slots,
            services=self._services,
            kill=lambda actor: ray.kill(actor, no_restart=True),
        )

    def _refuse(self, node: NodeHandle, why: str) -> None:
        self.refused[node.label] = why
        node.lose()
        self._forget(node)

    def _forget(self, node: NodeHandle) -> None:
        if self._nodes.get(node.node) is node:
            del self._nodes[node.node]
            self._quiet[node.node] = time.monotonic() + _AGAIN_SECONDS
            self.lost_nodes += node.ready

    def _wake(self) -> None:
        """Begin the work that needs an event loop."""
        if self._watching is None:
            for node in list(self._nodes.values()):
                self._joining[node.node] = asyncio.create_task(self._join(node))
            self._watching = asyncio.create_task(self._watch())

    async def _join(self, node: NodeHandle) -> None:
        """Make a node ready for trials, or name it among those that cannot run any."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                facts = await node.facts()
                self.isolation_name = self.isolation_name or facts["isolation"]
                why = _obstacle(facts, self.isolation_name)
                if not why:
                    await node.begin({**self._setup, "isolation": self.isolation_name})
        except NodeLost as error:
            why = f"its actor was lost while it started: {one_line(str(error.__cause__))[:300]}"
        except Exception as error:
            why = f"it does not become ready: {one_line(str(error))[:300]}"
        finally:
            self._joining.pop(node.node, None)
        if why:
            self._refuse(node, why)
        else:
            self.refused.pop(node.label, None)
        for _ in range(node.slots):
            self._notify()

    async def _watch(self) -> None:
        """Follow the cluster as nodes join and leave.

        While the control store is away, the nodes stay as they were: the calls of lost ones end
        by themselves.
        """
        away = False
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self._follow(await asyncio.to_thread(self._connection.nodes))
            except Exception as error:
                if not away:
                    text = one_line(str(error))[:300]
                    _LOG.warning("The nodes of the Ray cluster cannot be followed: %s", text)
                away = True
            else:
                away = False

    def _follow(self, found: Mapping[str, Mapping[str, float]]) -> None:
        for node in list(self._nodes.values()):
            if node.node not in found:
                node.lose()
            if node.lost:
                self._forget(node)
        now = time.monotonic()
        for name, free in found.items():
            if name in self._nodes or self._quiet.get(name, 0.0) > now:
                continue
            if handle := self._started(name, free):
                self._nodes[name] = handle
                self._joining[name] = asyncio.create_task(self._join(handle))

    def _tell_scaler(self, wanted: bool = True) -> None:
        if self._asks_scaler and self._workers is not None:
            self._connection.ask_for(self._share.bundles(self._workers) if wanted else [])

    async def _close(self) -> None:
        tasks = [*self._joining.values(), *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            nodes = list(self._nodes.values())
            await asyncio.gather(*(node.close(self._grace) for node in nodes))
            while any(node.busy for node in nodes):
                await asyncio.sleep(_POLL)
            self._tell_scaler(False)
        finally:
            await asyncio.to_thread(self._connection.leave)


def _obstacle(facts: Message, isolation: str) -> str:
    """Why a node cannot run trials; empty if it can."""
    if facts["version"] != coevolve.__version__:
        return (
            f"it has coevolve {facts['version']}, the head has {coevolve.__version__}; install "
            "the same version"
        )
    if not facts["isolation"]:
        return str(facts["why_not"])
    if facts["isolation"] != isolation:
        return f"it offers isolation {facts['isolation']!r}, other nodes {isolation!r}"
    return ""


def _closed() -> InfrastructureError:
    return InfrastructureError("the executor was closed", kind="closed", shared=True)
