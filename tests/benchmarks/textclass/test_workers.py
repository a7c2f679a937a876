"""Text classification in worker processes, with the model served by the engine."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.models.model_client import StubModel
from coevolve.models.model_errors import ModelKeyError, ModelUnavailable
from coevolve.search.trials import Blame, Result, Trial
from tests.benchmarks.textclass.files import write_set
from tests.benchmarks.textclass.workbench import COPY, USAGE
from tests.executors.projects import Contents, with_executor

Model = Callable[..., Awaitable[dict[str, Any]]]


async def dogs(**request: Any) -> dict[str, Any]:
    """A model that takes a moment, and takes everything for a dog."""
    await asyncio.sleep(0)
    return {**StubModel().ask("model", **request), "text": "dog", "usage": USAGE}


async def unavailable(**request: Any) -> dict[str, Any]:
    raise ModelUnavailable("503: overloaded")


async def locked(**request: Any) -> dict[str, Any]:
    raise ModelKeyError("401: this key is not known")


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    tmp_path.chmod(0o755)
    return Contents(tmp_path)


def results(tmp_path: Path, contents: Contents, model: Model, *trials: Trial) -> list[Result]:
    """What trials of a candidate give once it has learned."""
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "harness.py").write_text(COPY)
        folders.append(str(tmp_path / name))
    arguments = {"sets": [str(write_set(tmp_path / "animals"))], "starts": folders}
    spec = Spec(factory="coevolve.benchmarks.textclass:TextClassification", arguments=arguments)
    services = {**StubModel().services, "model": model}
    executor = LocalExecutor(spec, contents=contents, services=services)
    return with_executor(executor, partial(_tried, contents, trials))


async def _tried(
    contents: Contents, trials: tuple[Trial, ...], executor: LocalExecutor
) -> list[Result]:
    candidate = contents.candidate(COPY.encode())
    checked = await executor.check(candidate)
    assert checked.fault is None, checked.fault
    prepared = await executor.prepare(candidate)
    assert prepared.state is not None, prepared.fault
    contents.put("learned", prepared.state.encode())
    return [await executor.run(candidate, trial) for trial in trials]


def trial(task: str, **more: Any) -> Trial:
    return Trial(candidate="c1", task=task, state="learned", **more)


def test_a_search_would_see_scores_usage_and_traces(tmp_path: Path, contents: Contents) -> None:
    cat, dog, test = results(
        tmp_path,
        contents,
        dogs,
        trial("animals-000"),
        trial("animals-001"),
        trial("animals-test-000", split="test"),
    )
    assert (cat.score, dog.score, test.score) == (0.0, 1.0, 1.0)
    assert dog.usage.dollars == test.usage.dollars == 0.5
    assert dog.usage.seconds > 0
    assert "It fetches sticks." in (dog.trace or "")
    assert test.trace == '{"trace": {"set": "animals", "correct": true}}'


@pytest.mark.parametrize(
    ("model", "blame"), [(unavailable, Blame.INFRASTRUCTURE), (locked, Blame.OPERATOR)]
)
def test_a_model_that_fails_is_no_score(
    tmp_path: Path, contents: Contents, model: Model, blame: Blame
) -> None:
    (failed,) = results(tmp_path, contents, model, trial("animals-000"))
    assert failed.score is None
    assert failed.fault is not None
    assert failed.fault.blame is blame
