"""Values that are computed when they are read."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from coevolve.core.posterior import Deferred


def test_a_deferred_value_is_computed_once() -> None:
    numbers = iter(range(9))
    deferred = Deferred(lambda: next(numbers))
    assert next(numbers) == 0  # nothing was computed yet
    assert [deferred.read(), deferred.read()] == [1, 1]


def test_threads_that_read_a_deferred_value_get_the_same_one() -> None:
    gate, numbers = Barrier(8), iter(range(9))

    def slow() -> int:
        time.sleep(0.05)
        return next(numbers)

    deferred = Deferred(slow)

    def read(_: int) -> int:
        gate.wait()
        return deferred.read()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == [0] * 8


def test_a_deferred_value_reaches_another_process() -> None:
    deferred = Deferred(lambda: {"a": 1.0})
    assert pickle.loads(pickle.dumps(deferred)).read() == {"a": 1.0}
