"""A fit computes with one thread of BLAS, and leaves the user's setting as it was."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from coevolve import Pool, Selector, protocol
from coevolve.core.blas_threads import one_blas_thread
from coevolve.core.joint import Joint
from coevolve.core.posterior import Cells, Posterior

from .strategies import TASKS, answer, scores


def threads() -> set[int]:
    from threadpoolctl import threadpool_info

    libraries = threadpool_info()
    return {library["num_threads"] for library in libraries if library["user_api"] == "blas"}


class Watched(Joint):
    """A joint model that fails unless it has one thread."""

    def fit(self, cells: Cells, start: Posterior | None) -> Posterior:
        assert threads() == {1}
        return Joint.fit(self, cells, start)


def search(seed: int) -> Selector:
    rule = replace(protocol("joint"), name="watched", estimator=Watched())
    selector = Selector(Pool(TASKS), protocol=rule, seed=seed)
    selector.tell_full("s", scores(1))
    for name in ("a", "b"):
        answer(selector, selector.ask([name])[0], seed=seed)
        selector.estimate(name)
    selector.best()
    return selector


def test_a_fit_has_one_thread_and_restores_the_setting() -> None:
    before = threads()
    search(1)
    assert threads() == before


def test_a_fit_that_fails_restores_the_setting() -> None:
    before = threads()

    def fail() -> None:
        with one_blas_thread(), one_blas_thread():
            assert threads() == {1}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert threads() == before


SEVERAL = """
from concurrent.futures import ThreadPoolExecutor
from tests.core.test_blas import search, threads
before = threads()
with ThreadPoolExecutor(8) as pool:
    list(pool.map(search, range(24)))
assert threads() == before == {2}, (threads(), before)
search(1)
assert threads() == {2}
"""


def test_fits_of_several_threads_restore_the_setting() -> None:
    """In a process with two threads of BLAS, whatever the tests are run with."""
    code = "import os; os.environ['OPENBLAS_NUM_THREADS'] = '2'\n" + SEVERAL
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    if "{1}, {1}" in done.stderr:
        pytest.skip("BLAS has one thread here")
    assert done.returncode == 0, done.stderr
