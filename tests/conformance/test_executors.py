"""What every executor promises, whatever runs its trials."""

from collections.abc import Callable

import pytest

from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.local import Contents, LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Executor, Prepared, Result, Trial
from coevolve.testing import assert_executor, check_executor
from tests.executors.projects import needs_bwrap

Make = Callable[[Spec, Contents], Executor]


def in_process(spec: Spec, contents: Contents) -> Executor:
    return InProcessExecutor(spec.build(), contents=contents, workers=2)


def in_threads(spec: Spec, contents: Contents) -> Executor:
    return InProcessExecutor(spec.build(), contents=contents, workers=2, threads=True)


def process(spec: Spec, contents: Contents) -> Executor:
    return LocalExecutor(spec, contents=contents, workers=2, isolation="process")


def bwrap(spec: Spec, contents: Contents) -> Executor:
    return LocalExecutor(spec, contents=contents, workers=2, isolation="bwrap")


@pytest.mark.parametrize(
    "make", [in_process, in_threads, process, pytest.param(bwrap, marks=needs_bwrap())]
)
def test_an_executor_conforms(make: Make) -> None:
    assert_executor(make)


class Careless:
    """An executor that scores everything 1, and never ends."""

    capacity = 2

    def __init__(self, spec: Spec, contents: Contents) -> None:
        self.closed = False

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared(state="{}")

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        return Result(score=1.0)

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True


def test_what_the_engine_cannot_rely_on_is_found() -> None:
    with pytest.raises(AssertionError, match=r"results: the task 'score:0.25' must give"):
        assert_executor(Careless)
    found = {one.about: one for one in check_executor(Careless)}
    assert "a broken candidate must be blamed" in found["blame"].detail
    assert "must call run_test" in found["sealed test"].detail
    assert "the state must reach the trials" in found["state"].detail
    assert "already closed" in found["closing"].detail
    assert found["unused"].kind == "passed"


def test_an_executor_that_cannot_be_made_is_named() -> None:
    def broken(spec: Spec, contents: Contents) -> Executor:
        raise KeyError("cluster")

    (found,) = check_executor(broken)
    assert "it cannot be made: KeyError: 'cluster' (" in found.detail
