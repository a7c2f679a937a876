"""Values that are computed when they are read."""

import pickle

from coevolve.core.posterior import Deferred


def test_a_deferred_value_is_computed_once() -> None:
    numbers = iter(range(9))
    deferred = Deferred(lambda: next(numbers))
    assert next(numbers) == 0  # nothing was computed yet
    assert [deferred.read(), deferred.read()] == [1, 1]


def test_a_deferred_value_reaches_another_process() -> None:
    deferred = Deferred(lambda: {"a": 1.0})
    assert pickle.loads(pickle.dumps(deferred)).read() == {"a": 1.0}
