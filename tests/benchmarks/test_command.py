"""An executable as a benchmark."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from coevolve.benchmarks import CommandBenchmark
from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError
from coevolve.executors.failures import CandidateFault, InfrastructureError, TrialError
from coevolve.executors.isolation import Executed
from coevolve.executors.workload import Score
from coevolve.search.trials import Blame
from tests.benchmarks.harnesses import at_work

STARTS = {name: {"answer.txt": name} for name in ("two", "three")}
SCRIPT = """#!/bin/sh
echo "thinking about $2"
echo "{\\"score\\": $(cat "$1/answer.txt"), \\"trace\\": \\"$2 $3\\"}"
"""


class Canned:
    """A harness whose executable always says the same."""

    folder = Path("/candidate")

    def __init__(self, stdout: str = "", code: int = 0, stderr: str = "") -> None:
        self.done = Executed(stdout=stdout.encode(), stderr=stderr.encode(), code=code, seconds=0)
        self.asked: list[tuple[list[str], dict[str, Any]]] = []

    def execute(self, argv: list[str], **options: Any) -> Executed:
        self.asked.append((argv, options))
        return self.done


def made(command: list[str], base: Path | str = ".", **more: Any) -> CommandBenchmark:
    given = {"tasks": ["t1", "t2"], "starts": STARTS, "base": base} | more
    return CommandBenchmark(command, **given)


def said(stdout: str, code: int = 0, stderr: str = "") -> Score:
    return made(["score"]).run(Canned(stdout, code, stderr), "t1", 0)  # type: ignore[arg-type]


@pytest.fixture
def script() -> Iterator[Path]:
    """A project with an executable; a sandbox that changes the user must be able to read it."""
    with TemporaryDirectory(prefix="coevolve-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "score.sh").write_text(SCRIPT)
        (folder / "score.sh").chmod(0o755)
        yield folder


def test_an_executable_of_the_project_scores_in_the_sandbox(script: Path) -> None:
    benchmark = made(["./score.sh"], script)
    with at_work({"answer.txt": "0.25"}) as harness:
        benchmark.check(harness)
        assert benchmark.prepare(harness) is None
        assert benchmark.run(harness, "t1", 0) == Score(value=0.25, trace="t1 ")


def test_placeholders_say_where_the_arguments_go(script: Path) -> None:
    benchmark = made(["sh", "score.sh", "{candidate}", "task={task}", "{trial}"], script)
    with at_work({"answer.txt": "1"}) as harness:
        assert benchmark.run(harness, "t1", 3) == Score(value=1.0, trace="task=t1 3")


def test_what_is_readable_can_be_read(script: Path) -> None:
    data, sealed = script / "data", script / "sealed.txt"
    data.mkdir()
    (data / "t1").write_text("0.5")
    sealed.write_text("0.75")
    (script / "look.py").write_text(
        "import pathlib, sys, json\n"
        "print(json.dumps({'score': float(pathlib.Path(*sys.argv[1:]).read_text())}))\n"
    )
    command = [sys.executable, "look.py", "data", "{task}"]
    benchmark = made(command, script, readable=["data"])
    with at_work({"answer.txt": ""}) as harness:
        assert benchmark.run(harness, "t1", 0).value == 0.5
    benchmark = made(
        [sys.executable, "look.py", "sealed.txt", "."],
        script,
        test_tasks=["s1"],
        test_readable=["sealed.txt"],
    )
    canned = Canned('{"score": 1}')
    benchmark.run(canned, "t1", 0)  # type: ignore[arg-type]
    benchmark.run_test(canned, "s1", 0)  # type: ignore[arg-type]
    shown = [options["readable"] for _, options in canned.asked]
    assert [sealed in paths for paths in shown] == [False, True]


def test_usage_and_trace_come_along() -> None:
    line = json.dumps({"score": 1, "usage": {"tokens_in": 9, "dollars": 0.5}, "trace": [1, 2]})
    usage = Usage(tokens_in=9, dollars=0.5)
    assert said(f"hello\n{line}\n") == Score(value=1.0, usage=usage, trace=[1, 2])


@pytest.mark.parametrize(
    ("stdout", "code", "stderr", "message"),
    [
        ("", 0, "", "last line is not a JSON object: ''"),
        ("0.5", 0, "", "last line is not a JSON object: '0.5'"),
        ('{"score": 1}\ndone', 0, "oh", "last line is not a JSON object: 'done'; its stderr: oh"),
        ('{"score": 2}', 0, "", r"must be a number in \[0, 1\], got 2"),
        ('{"score": NaN}', 0, "", r"must be a number in \[0, 1\], got nan"),
        ('{"score": "1"}', 0, "", r"must be a number in \[0, 1\], got '1'"),
        ('{"points": 1}', 0, "", "unknown key 'points'; use score"),
        ("{}", 0, "", r"must be a number in \[0, 1\], got None"),
        ('{"score": 1, "usage": {"tokens": 3}}', 0, "", "tokens"),
        ('{"score": 1, "usage": 3}', 0, "", "printed no score"),
        (
            '{"score": 1}',
            3,
            "Traceback\nKeyError: 'x'",
            "code 3; its stderr: .*KeyError: 'x'",
        ),
        ('{"error": "no answer"}', 0, "", "no answer"),
        ("[" * 100_000, 0, "", "last line is not a JSON object"),
        ('{"score": 1, "usage": {"tokens_in": 1' + "0" * 400 + "}}", 0, "", "printed no score"),
    ],
)
def test_what_is_no_score_is_the_candidates_fault(
    stdout: str, code: int, stderr: str, message: str
) -> None:
    with pytest.raises(CandidateFault, match=f"(?s){message}"):
        said(stdout, code, stderr)


def test_the_executable_may_say_that_nobody_is_to_blame() -> None:
    with pytest.raises(InfrastructureError, match="server is down"):
        said('{"missing": "server is down"}')


def test_no_exit_code_makes_a_trial_missing() -> None:
    for code in (1, 75, 125, 128, 137):
        with pytest.raises(CandidateFault, match=f"exit code {code}"):
            said('{"missing": "server is down"}', code)


@pytest.mark.parametrize("code", [126, 127])
def test_a_program_inside_that_is_not_there_does_not_stop_the_run(code: int) -> None:
    with pytest.raises(TrialError, match=f"exit code {code}.*; its stderr: nosuch") as error:
        said("", code, "nosuch: not found")
    assert error.value.fault.blame is Blame.BENCHMARK


def test_a_program_that_is_not_there_stops_a_starting_harness() -> None:
    benchmark = made(["no-such-program-here"])
    with (
        at_work({"answer.txt": ""}) as harness,
        pytest.raises(TrialError, match="no-such-program-here") as error,
    ):
        benchmark.run(harness, "t1", 0)
    assert error.value.fault.blame is Blame.BENCHMARK
    assert "benchmark.command" in error.value.fault.advice


def test_what_the_candidate_says_is_recorded_in_short_and_on_one_line() -> None:
    for stdout, stderr in (
        ('{"error": "\\u001b[31m' + "x" * 9_000 + '"}', ""),
        ("\x1b[31m" + "x" * 9_000, "\x1b[31m\n" + "y" * 9_000),
    ):
        with pytest.raises(CandidateFault) as error:
            said(stdout, 0, stderr)
        assert len(str(error.value)) <= 1_000
        assert str(error.value).isprintable()


def test_a_script_that_is_not_there_is_not_looked_for_in_the_candidate(tmp_path: Path) -> None:
    for command in (["./score"], ["sh", "score.sh"], ["python3", "tools/score.py"]):
        with pytest.raises(ConfigError, match="there is no such file in"):
            made(command, tmp_path)
    made(["sh", "{candidate}/own.sh", "--level=0.5", "-x.py"], tmp_path)


def test_mistakes_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be a list of words"):
        made("score.sh")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="test task 't1' is also a validation task"):
        made(["score"], test_tasks=["t1"])


def test_the_sandbox_has_no_network_unless_it_is_allowed() -> None:
    canned = Canned('{"score": 1}')
    made(["score"]).run(canned, "t1", 0)  # type: ignore[arg-type]
    made(["score"], network=True).run(canned, "t1", 0)  # type: ignore[arg-type]
    assert [options["network"] for _, options in canned.asked] == [False, True]
