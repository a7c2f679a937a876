"""Runs to damage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.store import RunStore
from tests.store.helpers import COUNT, crashed, noted, scratch, write


@pytest.fixture(scope="module")
def top() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@pytest.fixture(scope="module")
def closed(top: Path) -> Path:
    """A closed run; its last events are longer than a page."""
    folder = top / "closed"
    with RunStore.create(folder) as run:
        for number in range(COUNT):
            run.append(noted(f"{number} ".ljust(100 if number < 140 else 9000, "x")))
    return folder


@pytest.fixture(scope="module")
def killed(top: Path) -> Path:
    """A run whose writer was killed: its last events are in the log only."""
    write(top / "killed", 100)
    with RunStore.open(top / "killed") as run:
        for number in range(100, COUNT):
            run.append(noted(f"{number} ".ljust(100, "x")))
        return crashed(run, top / "copy")
