"""A module of the benchmark that runs around the candidate, inside its sandbox."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coevolve.errors import ConfigError, InputError
from coevolve.executors.failures import classify
from coevolve.executors.isolation import Harness, HarnessFault, Isolation
from coevolve.executors.workload import frame_of
from coevolve.search.trials import Blame

from .conftest import STRICT

FRAME = """
import json

seen = []

def load(name):
    seen.append(name)
    module = __import__(name)
    module.greeting = "hello"
    return module

def begin(value):
    import harness
    seen.append(harness.answer(value))
    return seen

def plain():
    return json.dumps([1])

def broken():
    return {}["nothing"]
"""

CANDIDATE = """
import coevolve_frame, coevolve_host

def answer(value):
    return f"{greeting} {value}"

def fail(): return {}["key"]

def ask(): return coevolve_host.ask("model")

coevolve_frame.fail, coevolve_frame.ask = fail, ask
coevolve_frame.through = lambda: coevolve_frame.fail()
"""

Framed = Callable[..., Harness]


@pytest.fixture
def framed(isolation: Isolation, tmp_path: Path) -> Iterator[Framed]:
    """Makes a harness with a frame; all are closed in the end."""
    made: list[Harness] = []

    def make(frame: str = FRAME, **files: str) -> Harness:
        for name, text in {"harness": CANDIDATE, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
        limits = replace(STRICT, seconds=20)
        made.append(Harness(tmp_path, isolation=isolation, limits=limits, frame=frame))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


def test_it_imports_the_candidate_and_its_functions_are_called_by_prefix(framed: Framed) -> None:
    harness = framed()
    assert harness.call("frame:begin", 3) == ["harness", "hello 3"]
    assert harness.call("answer", 4) == "hello 4"
    assert harness.call("frame:seen.copy") == ["harness", "hello 3"]


def test_without_a_loader_the_candidate_is_imported_as_always(framed: Framed) -> None:
    harness = framed("import sys\ndef known(): return 'harness' in sys.modules", harness="x = 1")
    assert harness.call("frame:known") is True


def test_it_may_be_longer_than_a_command_line(framed: Framed) -> None:
    harness = framed(f"text = {'x' * 1_000_000!r}\ndef size(): return len(text)", harness="")
    assert harness.call("frame:size") == 1_000_000


def test_services_answer_it_as_they_answer_the_candidate(framed: Framed) -> None:
    assert framed().call("frame:ask", services={"model": lambda: "yes"}) == "yes"


@pytest.mark.parametrize(
    ("function", "place"),
    [
        ("frame:through", "harness.py, line 7, in fail"),
        ("frame:broken", "coevolve_frame, line 21, in broken"),
    ],
)
def test_an_error_names_the_candidates_line_before_the_frames(
    framed: Framed, function: str, place: str
) -> None:
    with pytest.raises(HarnessFault, match=place):
        framed().call(function)


@pytest.mark.parametrize("function", ["frame:nothing", "frame:seen", "other:load", "load"])
def test_what_it_does_not_have_is_named(framed: Framed, function: str) -> None:
    with pytest.raises(HarnessFault, match=f"has no function '{function.split(':')[-1]}'") as e:
        framed().call(function)
    assert e.value.kind == "missing-function"


def test_without_a_frame_no_function_of_one_is_found(framed: Framed) -> None:
    with pytest.raises(HarnessFault, match="frame has no function 'load'"):
        framed("", harness="load = print").call("frame:load")


def test_no_file_of_the_candidate_replaces_a_module_of_the_frame(framed: Framed) -> None:
    harness = framed(json="def dumps(value): return 'forged'")
    assert harness.call("frame:plain") == "[1]"


@pytest.mark.parametrize(
    ("frame", "reason"), [("x = 1 +", "SyntaxError"), ("1 / 0", "ZeroDivisionError")]
)
def test_one_that_does_not_run_is_the_benchmarks_fault(
    framed: Framed, frame: str, reason: str
) -> None:
    with pytest.raises(InputError, match=f"frame failed: {reason}") as caught:
        framed(frame).call("answer", 1)
    assert classify(caught.value).blame is Blame.BENCHMARK


def test_a_candidate_that_does_not_import_is_at_fault_with_its_line(framed: Framed) -> None:
    with pytest.raises(HarnessFault, match=r"harness\.py, line 1"):
        framed(harness="1 / 0").call("frame:plain")


def test_a_frame_is_text() -> None:
    class Wrong:
        frame = b"def load(name): ..."

    with pytest.raises(ConfigError, match="source of a Python module"):
        frame_of(Wrong())
