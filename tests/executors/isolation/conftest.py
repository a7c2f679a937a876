"""Harnesses over candidates written on the spot, under each isolation that works here."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coevolve.executors.isolation import Harness, Isolation, Limits, find_isolation
from coevolve.executors.isolation.detection import why_not_bubblewrap

Make = Callable[..., Harness]

STRICT = Limits(
    seconds=1.5, memory_mb=400, processes=12, file_mb=8, output_mb=1, answer_mb=1, asks=50
)


def way_to_python(folder: Path) -> set[str]:
    """The names in a folder that lead to this Python, which a candidate must be able to start."""
    python = [Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)]
    folder = folder.resolve()
    inside = (path.relative_to(folder) for path in python if path.is_relative_to(folder))
    return {path.parts[0] for path in inside if path.parts}


@pytest.fixture
def bwrap() -> Isolation:
    reason = why_not_bubblewrap()
    if reason:
        pytest.skip(f"bwrap does not work here: {reason}")
    return find_isolation("bwrap")


@pytest.fixture(params=["bwrap", "process"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    if request.param == "bwrap":
        found: Isolation = request.getfixturevalue("bwrap")
        return found
    return find_isolation("process")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a harness of a candidate with this code; all are closed in the end."""
    made: list[Harness] = []

    def make(code: str, isolation: Isolation, limits: Limits = STRICT, **kw: object) -> Harness:
        folder = tmp_path / f"candidate-{len(made)}"
        folder.mkdir()
        (folder / "harness.py").write_text(textwrap.dedent(code))
        made.append(Harness(folder, isolation=isolation, limits=limits, slot=len(made)))
        return made[-1]

    yield make
    for harness in made:
        harness.close()
