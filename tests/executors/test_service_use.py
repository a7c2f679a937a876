"""The cost of services is counted however an attempt ends; waiting for them is not a fault."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.executors.local import LocalExecutor, explained
from coevolve.executors.worker_process import ServiceUse, stated_usage
from coevolve.models.model_errors import NoChoice
from coevolve.search.trials import Blame, Fault, Prepared, Result
from tests.effort import first
from tests.executors.projects import Project, trial, with_executor

BENCHMARK = """
import os, time

from coevolve.core.outcomes import Usage
from coevolve.executors.workload import Score


class Benchmark:
    def __init__(self, host):
        self.host = host

    def check(self, harness):
        self.host.ask("model")
        raise ValueError("refused")

    def prepare(self, harness):
        self.host.ask("model")
        return [1]

    def run(self, harness, task, trial):
        what, _, service = task.partition(":")
        return getattr(self, what)(harness, service or "model")

    def fine(self, harness, service):
        return float(self.host.ask(service)["text"])

    def twice(self, harness, service):
        return self.fine(harness, service) and self.fine(harness, service)

    def own(self, harness, service):
        return Score(value=self.fine(harness, service), usage=Usage(tokens_in=1))

    def fail(self, harness, service):
        return {}[self.host.ask(service)["text"]]

    def die(self, harness, service):
        self.host.ask(service)
        os._exit(3)

    def hang(self, harness, service):
        self.host.ask(service)
        time.sleep(600)

    def relay(self, harness, service):
        return harness.call("ask", services={"model": lambda: self.host.ask(service)})

    def often(self, harness, service):
        return harness.call("ask_on", services={"model": lambda: self.host.ask(service)})
"""

CANDIDATE = b"""
import coevolve_host

def ask():
    return float(coevolve_host.ask("model")["text"])

def ask_on():
    while True:
        coevolve_host.ask("model")
"""

COST = Usage(tokens_in=90, tokens_out=2, dollars=0.25)


async def model() -> dict[str, Any]:
    usage = {"tokens_in": 90, "tokens_out": 2, "dollars": 0.25}
    return {"text": "1", "usage": usage}


async def slow() -> dict[str, Any]:
    await asyncio.sleep(0.5)
    return await model()


async def stuck() -> dict[str, Any]:
    await asyncio.sleep(600)
    return await model()


def odd() -> dict[str, Any]:
    return {"text": "1", "usage": {"prompt_tokens": 90}}


def wrong() -> dict[str, Any]:
    return {"text": "1", "usage": {"tokens_in": -1}}


def refused() -> None:
    raise ConnectionError("the model is away")


async def useless() -> None:
    error = NoChoice("the model answered 'perhaps'")
    error.usage = (await model())["usage"]
    raise error


SERVICES = {f.__name__: f for f in (model, slow, stuck, odd, wrong, refused, useless)}


def ran(tmp_path: Path, *tasks: str, **settings: Any) -> list[Result]:
    """Results of tasks, one after another."""
    project = Project(tmp_path, BENCHMARK)
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> list[Result]:
        return [await executor.run(candidate, trial(task)) for task in tasks]

    return with_executor(project.executor(services=SERVICES, **settings), use)


def costs(done: Result | Prepared) -> Usage:
    usage = done.usage
    return Usage(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, dollars=usage.dollars)


ENDS = [
    ("fine", COST, "1.0"),
    ("twice", COST + COST, "1.0"),
    ("relay", COST, "1.0"),
    ("relay:useless", COST, "NoChoice"),
    ("own", Usage(tokens_in=1), "1.0"),
    ("fine:odd", Usage(), "1.0"),
    ("fail", COST, "KeyError"),
    ("die", COST, "worker-died"),
    ("hang", COST, "time-limit"),
    ("fine:refused", Usage(), "ConnectionError"),
    ("fine:wrong", Usage(), "ScoreError"),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The result of each of these tasks, by one executor; one for that which hangs."""
    tasks = [task for task, *_ in ENDS if task != "hang"]
    found = ran(tmp_path_factory.mktemp("costs"), *tasks, trial_seconds=60)
    (hung,) = ran(tmp_path_factory.mktemp("hangs"), "hang", trial_seconds=3)
    return dict(zip(tasks, found, strict=True)) | {"hang": hung}


@pytest.mark.parametrize(("task", "cost", "ends"), ENDS)
def test_what_services_report_is_counted_however_a_trial_ends(
    results: dict[str, Result], task: str, cost: Usage, ends: str
) -> None:
    result = results[task]
    assert str(result.score if result.fault is None else result.fault.kind) == ends
    assert costs(result) == cost
    assert result.usage.seconds > 0


def test_what_a_trial_cost_before_the_executor_was_closed_is_counted(tmp_path: Path) -> None:
    project = Project(tmp_path, BENCHMARK)
    candidate = project.contents.candidate(CANDIDATE)
    asked = asyncio.Event()

    def told() -> dict[str, Any]:
        asked.set()
        return {"usage": {"tokens_in": 7}}

    async def use(executor: LocalExecutor) -> Result:
        attempt = asyncio.ensure_future(executor.run(candidate, trial("hang:told")))
        await asked.wait()
        await asyncio.sleep(0.01)
        await executor.close()
        return await attempt

    result = with_executor(project.executor(services={"told": told}), use)
    assert result.fault is not None
    assert (result.fault.kind, result.usage.tokens_in) == ("closed", 7)


def test_checks_and_preparations_count_too(tmp_path: Path) -> None:
    project = Project(tmp_path, BENCHMARK)
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> list[Prepared]:
        return [await executor.check(candidate), await executor.prepare(candidate)]

    checked, prepared = with_executor(project.executor(services=SERVICES), use)
    assert checked.fault is not None
    assert prepared.state == "[1]"
    assert costs(checked) == costs(prepared) == COST


@pytest.mark.parametrize("task", first(1, ["relay:stuck", "fine:stuck"]))
def test_one_answer_that_comes_too_late_is_infrastructure(tmp_path: Path, task: str) -> None:
    late = ran(tmp_path, task, trial_seconds=6)[0].fault
    assert late is not None
    assert (late.blame, late.kind) == (Blame.INFRASTRUCTURE, "service-limit")
    assert "'stuck' did not answer within" in late.reason


@pytest.mark.parametrize(
    ("late", "answered", "blame"),
    [
        ("model", True, Blame.DOUBTFUL),
        ("model", False, Blame.INFRASTRUCTURE),
        ("judge", True, Blame.INFRASTRUCTURE),
    ],
)
def test_only_a_late_model_is_asked_again_and_the_trial_pays_for_it(
    late: str, answered: bool, blame: Blame
) -> None:
    async def answers() -> dict[str, Any]:
        return {"answered": answered, "usage": {"tokens_in": 9}}

    fault = Fault(blame=Blame.INFRASTRUCTURE, kind="service-limit", reason="too late")
    use = ServiceUse()
    use.late = late
    found = asyncio.run(explained(fault, {"model_answers": answers}, use))
    assert found.blame == blame
    assert use.usage.tokens_in == (9 if late == "model" else 0)


def test_a_candidate_that_keeps_asking_is_not_excused(tmp_path: Path) -> None:
    late = ran(tmp_path, "often:slow", trial_seconds=6)[0].fault
    assert late is not None
    assert (late.blame, late.kind) == (Blame.DOUBTFUL, "time-limit")
    assert "waiting for services" in late.reason


@pytest.mark.parametrize(
    "answer", [None, "yes", {}, {"usage": None}, {"usage": {}}, {"usage": {"total": 3}}]
)
def test_an_answer_without_a_usage_costs_nothing(answer: object) -> None:
    assert stated_usage(answer) == Usage()
