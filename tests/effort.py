"""How often to repeat: a little in `make test`, everything in `make test-long`.

A test keeps what it proves at either effort. With little effort it proves it from fewer seeds,
fewer of many similar faults, or fewer generated examples.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest

LONG = os.environ.get("TEST_LONG", "0") not in ("", "0")
"""Whether everything is repeated in full; `make test-long` sets the environment variable."""


def effort[T](short: T, long: T) -> T:
    """A number of repetitions: `short` in `make test`, `long` in `make test-long`.

    >>> effort(8, 50) in (8, 50)
    True
    """
    return long if LONG else short


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of a test, all but the first few of them only in `make test-long`."""
    return [
        value if place < count else pytest.param(value, marks=pytest.mark.long)
        for place, value in enumerate(values)
    ]
