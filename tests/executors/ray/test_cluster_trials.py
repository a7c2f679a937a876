"""Trials on clusters whose nodes fail in every way: whose fault it is, and what is left."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.executors.isolation import Limits
from coevolve.executors.local import LocalExecutor
from coevolve.executors.ray.node_checks import check_nodes
from coevolve.executors.ray.node_handle import OPEN_ASKS
from coevolve.executors.ray.ray_connection import ClusterPlace, RayConnection
from coevolve.executors.ray.ray_executor import RayExecutor
from coevolve.executors.ray.trial_share import TrialShare
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Blame, Prepared, Result, Trial
from tests.executors.projects import needs_bwrap, runs, until
from tests.executors.ray.clusters import SmallCluster, small_cluster

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), needs_bwrap()]

BENCHMARK = """
import os, time
from pathlib import Path
from coevolve.executors.workload import Score

DATA = Path(__file__).with_name("data.txt")


class Benchmark:
    def __init__(self, data, host=None):
        self.host, self.data = host, Path(data).read_text()

    def check(self, harness):
        harness.call("answer", 1)

    def prepare(self, harness):
        return {"learned": self.data}

    def run(self, harness, task, trial):
        op, _, said = task.partition(":")
        about = {"pid": os.getpid(), "parent": os.getppid(), "folder": str(DATA.parent)}
        if op == "sleep":
            harness.call("answer", 1)
            time.sleep(float(said))
        elif op == "eat":
            harness.call("eat", int(said))
        elif op == "ask":
            about["answer"] = self.host.ask("model", prompt=said)
        elif op == "ask-and-sleep":
            self.host.ask("model", prompt=said)
            time.sleep(60)
        elif op == "keys":
            about["keys"] = [name for name in os.environ if "SECRET_KEY" in name]
        elif op == "data":
            about["data"] = self.data + DATA.read_text() + harness.state["learned"]
        return Score(value=harness.call("answer", 1), trace=about)
"""
HARNESS = b"""
def answer(number):
    return number


def eat(megabytes):
    kept = [bytearray(1_000_000) for _ in range(megabytes)]
    return len(kept)
"""


class Bench:
    """A project on the head, and a candidate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        (self.folder / "cluster_tasks.py").write_text(BENCHMARK)
        (self.folder / "data.txt").write_text("known")
        self.contents = MemoryJournal()
        self.contents.put(HARNESS)
        self.candidate = Candidate.of({"harness.py": HARNESS}, name="c1")
        data = str(self.folder / "data.txt")
        self.spec = Spec(
            factory="cluster_tasks:Benchmark", arguments={"data": data}, folder=self.folder
        )

    def executor(self, cluster: SmallCluster, **settings: Any) -> RayExecutor:
        place = ClusterPlace(address=cluster.address)
        return RayExecutor(self.spec, contents=self.contents, place=place, **settings)


@pytest.fixture(scope="module")
def shared() -> Iterator[SmallCluster]:
    """Three nodes that tests may not kill."""
    with small_cluster(2, 2, 2) as cluster:
        yield cluster


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def used[T](executor: RayExecutor, use: Callable[[RayExecutor], Awaitable[T]]) -> T:
    async def main() -> T:
        try:
            return await use(executor)
        finally:
            await executor.close()

    return asyncio.run(main())


def trial(task: str, number: int = 0, **more: Any) -> Trial:
    return Trial(candidate="c1", task=task, trial=number, **more)


def about(result: Result | Prepared) -> dict[str, Any]:
    assert result.fault is None, result.fault
    found: dict[str, Any] = json.loads(result.trace or "")["trace"]
    return found


async def running(executor: RayExecutor, count: int) -> None:
    """Wait until so many attempts have a node."""
    while sum(node.busy for node in executor._nodes.values()) < count:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.5)


def test_trials_use_every_node_with_the_project_and_the_state_there(
    bench: Bench, shared: SmallCluster
) -> None:
    async def use(executor: RayExecutor) -> None:
        assert executor.capacity == 6
        assert executor.isolation_name == "bwrap"
        prepared = await executor.prepare(bench.candidate)
        while not all(node.ready for node in executor._nodes.values()):
            await asyncio.sleep(0.05)
        state = bench.contents.put((prepared.state or "").encode())
        tasks = [trial("sleep:0.5", n, state=state) for n in range(6)]
        found = await asyncio.gather(*(executor.run(bench.candidate, one) for one in tasks))
        assert len({about(result)["folder"] for result in found}) >= 1
        assert all(about(result)["folder"] != str(bench.folder) for result in found)
        read = about(await executor.run(bench.candidate, trial("data", state=state)))
        assert read["data"] == "knownknownknown"
        sizes = len(HARNESS) + len(prepared.state or "")
        assert executor.shipped_bytes == 3 * sizes, "once to each node"

    used(bench.executor(shared), use)


def test_services_are_answered_by_the_head_with_usage_and_no_key_leaves_it(
    bench: Bench, shared: SmallCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_KEY", "sk-1")
    at_once = most = 0

    async def model(prompt: str) -> dict[str, Any]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.05)
        at_once -= 1
        if prompt == "refuse":
            raise ValueError("no such prompt")
        return {"text": prompt.upper(), "usage": {"tokens_in": 10, "dollars": 0.5}}

    async def use(executor: RayExecutor) -> None:
        result = await executor.run(bench.candidate, trial("ask:hi"))
        assert about(result)["answer"]["text"] == "HI"
        assert (result.usage.tokens_in, result.usage.dollars) == (10, 0.5)
        refused = await executor.run(bench.candidate, trial("ask:refuse"))
        assert refused.fault is not None
        assert "no such prompt" in refused.fault.reason
        many = (executor.run(bench.candidate, trial("ask:hi", n)) for n in range(30))
        assert {one.usage.tokens_in for one in await asyncio.gather(*many)} == {10}
        assert 1 < most <= OPEN_ASKS
        keys = about(await executor.run(bench.candidate, trial("keys")))["keys"]
        assert keys == []

    used(bench.executor(shared, services={"model": model}), use)


def test_memory_is_judged_as_on_one_machine(bench: Bench, shared: SmallCluster) -> None:
    limits = Limits(memory_mb=200)

    async def fault(executor: Any) -> tuple[Any, ...]:
        try:
            found = (await executor.run(bench.candidate, trial("eat:400"))).fault
            after = await executor.run(bench.candidate, trial("sleep:0"))
        finally:
            await executor.close()
        assert found is not None
        assert after.score == 1.0
        return (found.blame, found.kind, found.shared)

    here = LocalExecutor(bench.spec, contents=bench.contents, isolation="bwrap", limits=limits)
    there = bench.executor(shared, limits=limits)
    assert asyncio.run(fault(there)) == asyncio.run(fault(here))


def test_a_killed_host_is_the_infrastructures_fault_and_its_spend_counts_once(
    bench: Bench, shared: SmallCluster
) -> None:
    async def model(prompt: str) -> dict[str, Any]:
        return {"usage": {"tokens_in": 10}}

    async def use(executor: RayExecutor) -> None:
        first = about(await executor.run(bench.candidate, trial("sleep:0")))
        attempt = asyncio.create_task(executor.run(bench.candidate, trial("ask-and-sleep:x")))
        await running(executor, 1)
        (busy,) = [node for node in executor._nodes.values() if node.busy]
        facts = await busy.facts()
        os.kill(facts["pid"], signal.SIGKILL)
        lost = await attempt
        assert lost.fault is not None
        assert (lost.fault.blame, lost.fault.kind) == (Blame.INFRASTRUCTURE, "node-lost")
        assert lost.fault.shared, "with bwrap a candidate cannot reach the host"
        assert lost.usage.tokens_in == 10
        again = await executor.run(bench.candidate, trial("sleep:0", attempt=1))
        assert about(again)["parent"] != facts["pid"]
        assert executor.lost_nodes == 1
        deadline = asyncio.get_running_loop().time() + 30
        while executor.capacity < 6 and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
        assert executor.capacity == 6, "the node gets a new host"
        assert not runs(first["pid"]) or first["parent"] != facts["pid"]

    used(bench.executor(shared, services={"model": model}), use)


def test_a_cancelled_attempt_ends_with_its_processes(bench: Bench, shared: SmallCluster) -> None:
    async def use(executor: RayExecutor) -> None:
        pids = [
            about(await executor.run(bench.candidate, trial("sleep:0", n)))["pid"]
            for n in range(1)
        ]
        attempt = asyncio.create_task(executor.run(bench.candidate, trial("sleep:60")))
        await running(executor, 1)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert all(node.busy == 0 for node in executor._nodes.values())
        assert await asyncio.to_thread(until, lambda: not runs(pids[0]))

    used(bench.executor(shared, workers=1), use)


def test_a_lost_node_ends_its_attempts_and_the_next_runs_elsewhere(bench: Bench) -> None:
    with small_cluster(1, 1, 1) as cluster:

        async def use(executor: RayExecutor) -> None:
            attempts = [
                asyncio.create_task(executor.run(bench.candidate, trial("sleep:4", n)))
                for n in range(3)
            ]
            await running(executor, 3)
            victim = cluster.nodes[1]
            await asyncio.to_thread(cluster.kill, victim)
            results = await asyncio.gather(*attempts)
            faults = [result.fault for result in results if result.fault is not None]
            assert [(fault.blame, fault.shared) for fault in faults] == [
                (Blame.INFRASTRUCTURE, True)
            ]
            (number,) = [n for n, result in enumerate(results) if result.fault is not None]
            again = await executor.run(bench.candidate, trial("sleep:0", number, attempt=1))
            assert again.score == 1.0
            assert executor.capacity == 2
            cluster.add(3)
            while executor.capacity < 5:
                await asyncio.sleep(0.1)
            wave = (executor.run(bench.candidate, trial("sleep:1", n)) for n in range(5))
            found = await asyncio.gather(*wave)
            assert len({about(result)["parent"] for result in found}) >= 3, "all nodes work"

        used(bench.executor(cluster), use)


def test_without_any_node_an_attempt_waits_then_is_missing(bench: Bench) -> None:
    with small_cluster(1) as cluster:

        async def use(executor: RayExecutor) -> None:
            assert (await executor.run(bench.candidate, trial("sleep:0"))).score == 1.0
            await asyncio.to_thread(cluster.kill, cluster.nodes[0])
            while executor._nodes:
                await asyncio.sleep(0.1)
            lost = await executor.run(bench.candidate, trial("sleep:0"))
            assert lost.fault is not None
            assert lost.fault.blame is Blame.INFRASTRUCTURE
            assert executor.capacity == 1, "a node may join"

        used(bench.executor(cluster, join_seconds=2.0), use)


def test_nodes_that_cannot_isolate_candidates_are_named(bench: Bench, tmp_path: Path) -> None:
    with small_cluster(1) as cluster:
        for program in (one for folder in os.get_exec_path() for one in Path(folder).glob("*")):
            if program.name != "bwrap" and not (tmp_path / program.name).exists():
                (tmp_path / program.name).symlink_to(program)
        cluster.add(1, env_vars={"PATH": str(tmp_path)})
        place = ClusterPlace(address=cluster.address)
        found = list(check_nodes(place, share=TrialShare(), isolation="bwrap"))
        kinds = sorted(finding.kind for finding in found)
        bad = [finding for finding in found if finding.kind == "failed"]
        assert kinds == ["failed", "noted", "passed", "passed"], found
        assert cluster.nodes[1].node_id[:8] in bad[0].about
        assert "bubblewrap is not installed" in bad[0].detail

        async def use(executor: RayExecutor) -> None:
            assert executor.capacity == 1
            assert any(cluster.nodes[1].node_id[:8] in name for name in executor.refused)
            assert (await executor.run(bench.candidate, trial("sleep:0"))).score == 1.0

        used(bench.executor(cluster, isolation="bwrap"), use)


def test_what_no_node_has_is_an_error_of_the_configuration(
    bench: Bench, shared: SmallCluster
) -> None:
    with pytest.raises(ConfigError, match="reserves 1 CPU, 1 rocket"):
        bench.executor(shared, share=TrialShare(resources={"rocket": 1}))
    assert RayConnection._users == 0
