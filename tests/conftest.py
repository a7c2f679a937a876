"""What all tests share: the effort of a run, and how many examples Hypothesis tries."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

from coevolve.executors.isolation.plain_process import PERMISSION
from tests.effort import LONG

# The candidates of tests are ours: they may run as root where they cannot get their own user.
os.environ[PERMISSION] = "1"
# Otherwise importing LiteLLM, before it is loaded as in a run, tries to fetch a price table.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

settings.register_profile("short", max_examples=30, deadline=None)
settings.register_profile("long", max_examples=200, deadline=None)
settings.load_profile("long" if LONG else "short")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, which would take long.

    Almost all objects that are made now live to the end. They are never searched for garbage.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


SHARED = {"miniature", "left_alone"}
"""Fixtures that take long and that all processes share; see `tests/shared.py`."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with tests of shared fixtures; leave out those marked `long` in a short run.

    The first process of a run gets the first tests. In the end, when processes take tests from
    each other, several would wait for the one that makes what they share.
    """
    items.sort(key=lambda item: SHARED.isdisjoint(getattr(item, "fixturenames", ())))
    if LONG:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
