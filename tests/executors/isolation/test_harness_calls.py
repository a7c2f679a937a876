"""What benchmarks rely on when they call a candidate."""

import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import InputError
from coevolve.executors.isolation import Harness, HarnessFault, Isolation, SandboxError

from .conftest import STRICT, Make

CODE = """
import coevolve_host
import helper

calls = 0

class Agent:
    def answer(self, question):
        return question + "!"

agent = Agent()
number = 3

def echo(*args, **kwargs):
    return [list(args), kwargs]

def count():
    global calls
    calls += 1
    return calls

def say(text):
    import sys
    print(text)
    print("error", file=sys.stderr)

def fail():
    value = {}
    return value["missing key"]

def model(prompt):
    return coevolve_host.ask("model", prompt, temperature=0)

def careful():
    try:
        coevolve_host.ask("unknown")
    except coevolve_host.AskError as error:
        return str(error)

def total(values):
    import numpy
    return float(numpy.sum(values))
"""


@pytest.fixture
def harness(isolation: Isolation, make: Make) -> Harness:
    harness = make(CODE, isolation, replace(STRICT, seconds=30, memory_mb=2048))
    (harness.folder / "helper.py").write_text("")
    return harness


def test_values_go_in_and_come_out_as_json(harness: Harness) -> None:
    assert harness.call("echo", 1, "ü\n\0", [None, True, 0.1], a={"b": 2}) == [
        [1, "ü\n\0", [None, True, 0.1]],
        {"a": {"b": 2}},
    ]


def test_a_path_of_attributes_can_be_called(harness: Harness) -> None:
    assert harness.call("agent.answer", "why", returns=str) == "why!"


def test_calls_share_a_process_until_it_is_closed(harness: Harness) -> None:
    assert [harness.call("count") for _ in range(3)] == [1, 2, 3]
    harness.close()
    assert harness.call("count") == 1


def test_an_exception_names_its_place_and_the_process_continues(harness: Harness) -> None:
    harness.call("count")
    with pytest.raises(HarnessFault) as caught:
        harness.call("fail")
    assert caught.value.reason == "KeyError: 'missing key' (harness.py, line 29, in fail)"
    assert harness.call("count") == 2


def test_what_it_printed_belongs_to_the_call(harness: Harness) -> None:
    harness.call("say", "hello")
    assert harness.output == "hello\nerror\n"
    harness.call("count")
    assert harness.output == ""


@pytest.mark.parametrize("function", ["nothing", "number", "agent.nothing", "no.such", ""])
def test_what_cannot_be_called_is_named(harness: Harness, function: str) -> None:
    with pytest.raises(HarnessFault, match=f"has no function '{function}'") as caught:
        harness.call(function)
    assert caught.value.kind == "missing-function"


def test_a_candidate_without_the_file_is_a_fault(isolation: Isolation, tmp_path: Path) -> None:
    with (
        Harness(tmp_path, isolation=isolation, limits=STRICT) as harness,
        pytest.raises(HarnessFault, match=r"has no file harness\.py") as caught,
    ):
        harness.call("anything")
    assert caught.value.kind == "missing-file"


def test_installed_packages_can_be_used(harness: Harness) -> None:
    assert harness.call("total", [1, 2, 3.5], returns=float) == 6.5


@pytest.mark.parametrize(
    ("value", "returns", "fits"),
    [
        (1, float, True),
        (0.5, float, True),
        (True, float, False),
        (True, int, False),
        (True, bool, True),
        (1.5, int, False),
        ("x", str, True),
        (None, str, False),
        ([], list, True),
        ({}, dict, True),
    ],
)
def test_the_type_of_an_answer_is_checked(
    bwrap: Isolation, make: Make, value: Any, returns: type, fits: bool
) -> None:
    harness = make("def same(value): return value", bwrap)
    if fits:
        assert harness.call("same", value, returns=returns) == value
    else:
        with pytest.raises(HarnessFault, match=f"not {returns.__name__}"):
            harness.call("same", value, returns=returns)


def test_a_service_answers_from_this_side(harness: Harness) -> None:
    def model(prompt: str, temperature: float) -> dict[str, object]:
        return {"text": prompt.upper(), "temperature": temperature}

    answer = harness.call("model", "hi", services={"model": model})
    assert answer == {"text": "HI", "temperature": 0}
    assert harness.call("careful") == "unknown service 'unknown'; available: none"


def test_what_a_service_raises_is_raised_here(harness: Harness) -> None:
    def model(prompt: str, temperature: float) -> str:
        raise ConnectionError("the model is away")

    with pytest.raises(ConnectionError, match="away"):
        harness.call("model", "hi", services={"model": model})
    assert harness.call("count") == 1


def test_time_in_a_service_does_not_count(isolation: Isolation, make: Make) -> None:
    code = "import coevolve_host\ndef act(): return coevolve_host.ask('slow')"
    harness = make(code, isolation, replace(STRICT, seconds=2))

    def slow() -> str:
        time.sleep(2.5)
        return "done"

    assert harness.call("act", services={"slow": slow}) == "done"


def test_memory_is_watched_while_a_service_works(isolation: Isolation, make: Make) -> None:
    harness = make(
        """
        import coevolve_host, os, time
        def act():
            for _ in range(8):
                if os.fork() == 0:
                    hoard = bytearray(b"x") * (100 << 20)
                    time.sleep(1000)
            return coevolve_host.ask("slow")
        """,
        isolation,
    )
    ended = threading.Event()
    with pytest.raises(HarnessFault) as caught:
        harness.call("act", services={"slow": lambda: ended.wait(5)})
    assert caught.value.kind == "memory-limit"


def test_what_is_not_json_is_the_callers_mistake(harness: Harness) -> None:
    for value in (float("nan"), {1, 2}, "\ud800", object()):
        with pytest.raises(InputError, match="JSON"):
            harness.call("echo", value)
    assert harness.call("count") == 1


def test_large_values_pass_both_ways(isolation: Isolation, make: Make) -> None:
    harness = make("def same(v): return v", isolation, replace(STRICT, answer_mb=20, seconds=60))
    text = "ü" * 5_000_000
    assert harness.call("same", text) == text


def test_cpu_time_is_limited_per_call(isolation: Isolation, make: Make) -> None:
    harness = make(
        """
        import time
        def burn(seconds):
            end = time.process_time() + seconds
            while time.process_time() < end: pass
            return seconds
        """,
        isolation,
        replace(STRICT, seconds=60, cpu_seconds=1),
    )
    assert [harness.call("burn", 0.4) for _ in range(3)] == [0.4] * 3
    with pytest.raises(HarnessFault, match="1 s of CPU time") as caught:
        harness.call("burn", 30)
    assert caught.value.kind == "cpu-limit"


def test_a_harness_outlives_the_thread_that_started_it(isolation: Isolation, make: Make) -> None:
    harness = make("def fine(value): return value", isolation)
    answers: list[object] = []
    for value in range(3):
        thread = threading.Thread(target=lambda v=value: answers.append(harness.call("fine", v)))
        thread.start()
        thread.join()
    assert answers == [0, 1, 2]


def test_a_sandbox_that_cannot_start_is_infrastructure(
    isolation: Isolation, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runner = tmp_path / "runner.py"
    runner.write_text("raise RuntimeError('broken machine')")
    monkeypatch.setattr("coevolve.executors.isolation.plain_process.RUNNER", runner)
    monkeypatch.setattr("coevolve.executors.isolation.bubblewrap._RUNNER", "/nowhere.py")
    harness = make("def fine(value): return value", isolation)
    with pytest.raises(SandboxError, match="did not start") as caught:
        harness.call("fine", 1)
    assert caught.value.fault.blame == "infrastructure"


def test_two_harnesses_work_at_once(isolation: Isolation, make: Make) -> None:
    harnesses = [make("import os\ndef pid(): return os.getuid()", isolation) for _ in range(3)]
    users = [harness.call("pid") for harness in harnesses]
    assert [harness.call("pid") for harness in harnesses] == users


def test_a_folder_only_its_owner_may_read_works_too(isolation: Isolation, make: Make) -> None:
    harness = make("def fine(value): return value", isolation)
    (harness.folder / "harness.py").chmod(0o600)
    harness.folder.chmod(0o700)
    assert harness.call("fine", 3) == 3


def test_a_package_can_be_the_module(isolation: Isolation, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "__init__.py").write_text(
        textwrap.dedent("""
            from agent.part import fine
        """)
    )
    (tmp_path / "agent" / "part.py").write_text("def fine(value): return value")
    with Harness(tmp_path, isolation=isolation, limits=STRICT, module="agent") as harness:
        assert harness.call("fine", 3) == 3
