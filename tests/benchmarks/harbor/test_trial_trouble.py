"""Trials through the engine's workers, with trouble from outside; nothing is left behind."""

import asyncio
import contextlib
import functools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.failures import InfrastructureError
from coevolve.executors.local import LocalExecutor
from coevolve.models import gateway
from coevolve.models.gateway import Gateway
from coevolve.models.hosted import HostedProvider
from coevolve.models.rate_limits import Retrying
from coevolve.search.trials import Blame, Trial
from tests.benchmarks.harbor.task_boxes import wait_for
from tests.benchmarks.harbor.trial_beds import ASK, Bed, namespace_of, waiting_processes
from tests.benchmarks.harbor.trials import ENVIRONMENT, SOLVE, agent, needs_trials
from tests.effort import first
from tests.models.endpoint import Act, Endpoint, hangs, refuses, says

pytestmark = needs_trials
SHORT = {"task.toml": "[agent]\ntimeout_sec = 5.0\n[verifier]\ntimeout_sec = 60.0\n"}
"""The agent of such a task has five seconds."""


def in_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run a test that awaits."""

    @functools.wraps(test)
    def run(*given: Any, **named: Any) -> None:
        asyncio.run(test(*given, **named))

    return run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def bed(place: Path) -> Bed:
    return Bed(place, place / "cache")


@contextlib.asynccontextmanager
async def behind_gateway(bed: Bed, endpoint: Endpoint) -> Any:
    """The model of the trials is that of a server, which is asked twice and not for long."""
    provider = HostedProvider("openai/any", base_url=endpoint.base_url, key="none", window=1000)
    served = Gateway(provider, retrying=Retrying(attempts=2, seconds=30))
    bed.services = served.services()
    try:
        yield
    finally:
        await served.close()


@in_loop
async def test_a_trial_through_the_engine_counts_what_the_model_used(bed: Bed) -> None:
    result = await bed.tried(agent(ASK + SOLVE))
    assert (result.score, result.usage.tokens_in, bed.asked) == (1.0, 7, 1)
    assert bed.settled() == {}


@in_loop
async def test_a_model_that_fails_in_the_middle_is_not_the_agents_fault(bed: Bed) -> None:
    def down() -> dict[str, Any]:
        raise InfrastructureError("the service is down", shared=True)

    bed.answer = down
    result = await bed.tried(agent(SOLVE + ASK))
    assert result.fault is not None
    assert (result.fault.blame, result.fault.shared) == (Blame.INFRASTRUCTURE, True)
    assert bed.settled() == {}


@in_loop
async def test_a_rate_limit_that_passes_changes_nothing(bed: Bed) -> None:
    with Endpoint([says("hello"), refuses(429, retry_after=0.1)]) as endpoint:
        async with behind_gateway(bed, endpoint):
            result = await bed.tried(agent(ASK + ASK + SOLVE))
        assert len(endpoint.seen) == 3
    assert (result.score, result.usage.tokens_in) == (1.0, 20), result
    assert bed.settled() == {}


@in_loop
async def test_a_rate_limit_that_stays_is_not_the_agents_fault(bed: Bed) -> None:
    with Endpoint([says("hello")], answer=lambda _: refuses(429, retry_after=0.1)) as endpoint:
        async with behind_gateway(bed, endpoint):
            result = await bed.tried(agent(ASK + SOLVE + ASK))
    assert result.fault is not None
    assert (result.fault.blame, result.fault.retried) == (Blame.INFRASTRUCTURE, True)
    assert not result.fault.shared, "a control decides"
    assert result.usage.tokens_in == 10, "what the attempt has spent counts"
    assert bed.settled() == {}


@in_loop
async def test_a_model_server_that_ends_is_not_the_agents_fault(bed: Bed) -> None:
    with contextlib.ExitStack() as server:

        def end(executor: LocalExecutor, trial: Trial) -> None:
            server.close()
            for pid in waiting_processes(bed.token):
                os.kill(pid, signal.SIGKILL)

        async with behind_gateway(bed, server.enter_context(Endpoint())):
            result = await bed.tried(agent(ASK + SOLVE + bed.wait + ASK), end)
    assert result.fault is not None
    assert (result.fault.blame, result.fault.retried) == (Blame.INFRASTRUCTURE, True)
    assert result.usage.tokens_in == 10
    assert bed.settled() == {}


@pytest.mark.parametrize("answers", first(1, [False, True]))
@in_loop
async def test_time_that_ends_while_the_model_does_not_answer(
    answers: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the agent's time only if the model answers others."""
    monkeypatch.setattr(gateway, "PROBE_SECONDS", 1.0)

    def act(body: Any) -> Act:
        probed = body["messages"][-1]["content"] == gateway.PROBE
        return says("yes") if probed and answers else hangs(600)

    bed = Bed(place, place / "cache", files=SHORT)
    with Endpoint(answer=act) as endpoint:
        async with behind_gateway(bed, endpoint):
            result = await bed.tried(agent(ASK + SOLVE))
    if answers:
        assert (result.score, result.fault) == (0.0, None)
        assert json.loads(result.trace or "{}")["trace"]["ended"] == "AgentTimeoutError"
    else:
        assert result.fault is not None
        assert (result.fault.blame, result.fault.shared) == (Blame.INFRASTRUCTURE, False)
        assert "does not answer other requests either" in result.fault.reason
    assert bed.settled() == {}


@in_loop
async def test_a_worker_that_is_killed_leaves_nothing(bed: Bed) -> None:
    def kill(executor: LocalExecutor, trial: Trial) -> None:
        pid = executor.worker_of(trial)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    result = await bed.tried(agent(SOLVE + bed.wait), kill)
    assert result.fault is not None
    assert (result.fault.kind, result.fault.retried) == ("worker-died", True)
    if ENVIRONMENT == "docker":  # no process of ours watches over containers
        bed.sweep()
    assert bed.settled() == {}


@in_loop
async def test_an_environment_that_is_killed_is_tried_again(bed: Bed) -> None:
    def kill(executor: LocalExecutor, trial: Trial) -> None:
        (waits,) = waiting_processes(bed.token)
        for pid in namespace_of(waits):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    result = await bed.tried(agent(SOLVE + bed.wait), kill)
    assert result.fault is not None
    assert result.fault.retried, result.fault
    assert result.fault.score is None or result.fault.blame is Blame.DOUBTFUL

    def gone() -> bool:
        bed.sweep()
        return not bed.left()

    assert wait_for(gone, 30), bed.left()


@in_loop
async def test_a_run_that_is_closed_takes_its_environments_down(bed: Bed) -> None:
    candidate = bed.contents.candidate(agent(SOLVE + bed.wait).encode())
    executor = bed.executor()
    running = asyncio.ensure_future(
        executor.run(candidate, Trial(candidate=candidate.name, task=bed.task))
    )
    await bed.waits(running)
    await executor.close()
    assert (await running).fault is not None
    assert bed.settled() == {}


@in_loop
async def test_an_agent_that_fills_the_disk_fails_by_its_own_fault(place: Path) -> None:
    if ENVIRONMENT == "docker":  # which does not limit the disk itself
        small = "services: {main: {tmpfs: ['/app:size=20m']}}\n"
        bed = Bed(place, place / "cache", files={"environment/docker-compose.yaml": small})
    else:
        bed = Bed(place, place / "cache", disk_mb=40)
    fill = "dd if=/dev/zero of=/app/full bs=1M count=200; true"
    result = await bed.tried(agent(f"await environment.exec({fill!r})"))
    assert (result.score == 0.0) or (
        result.fault is not None and result.fault.blame is Blame.CANDIDATE
    ), result
    assert bed.settled() == {}
