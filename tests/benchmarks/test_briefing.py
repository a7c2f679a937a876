"""What the kinds of benchmarks tell proposers."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks import CommandBenchmark, FunctionBenchmark, load_file
from coevolve.benchmarks.base import briefing_of
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import (
    FILE,
    SyntheticBenchmark,
    read_harness,
)
from coevolve.errors import ConfigError
from coevolve.testing import check_benchmark
from tests.benchmarks.harnesses import LIMITS

STARTS = {
    "one": {"harness.py": 'def double(n: int, *, fast: bool = False) -> int:\n    """Twice n."""'},
    "two": {"harness.py": "def double(n): return 2 * n"},
}
FILE_TEXT = '''"""Doubles numbers."""

TASKS = ["1", "2"]
FUNCTIONS = ["double"]

def evaluate(harness, task):
    return 1.0
'''


def made(**changes: Any) -> FunctionBenchmark:
    given = {"tasks": ["1", "2"], "starts": STARTS, "functions": ["double"]} | changes
    return FunctionBenchmark(lambda harness, task: 1.0, **given)


def test_a_function_benchmark_tells_the_functions_it_calls() -> None:
    told = briefing_of(made(briefing="Doubles numbers."))
    assert told.startswith("Doubles numbers.\n")
    assert "- `double(n: int, *, fast: bool=False) -> int`: Twice n.\n" in told
    assert "no network" in told
    assert "- `triple`\n" in briefing_of(made(functions=["triple"]))
    assert "It must define" not in briefing_of(made(functions=[]))


@pytest.mark.parametrize("broken", ["def double(", "\0", "x = '\\d'"])
def test_a_starting_harness_that_cannot_be_read_has_no_signatures(broken: str) -> None:
    starts = {"one": {"harness.py": broken}, "two": {"main.py": ""}}
    assert "- `double`\n" in briefing_of(made(starts=starts))


def test_a_file_tells_its_docstring_or_its_briefing(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.py"
    path.write_text(FILE_TEXT)
    assert briefing_of(load_file(path, STARTS)).startswith("Doubles numbers.\n\nA candidate is")
    path.write_text(f'{FILE_TEXT}\nBRIEFING = """\nTwice as much.\n"""\n')
    assert briefing_of(load_file(path, STARTS)).startswith("Twice as much.\n\nA candidate is")
    path.write_text(f"{FILE_TEXT}\nBRIEFING = 7\n")
    with pytest.raises(ConfigError, match="BRIEFING must be a text, got 7"):
        load_file(path, STARTS)
    path.write_text(f"{FILE_TEXT}\nBREIFING = 'slip'\n")
    with pytest.raises(ConfigError, match=r"BREIFING, which .* mean 'BRIEFING'"):
        load_file(path, STARTS)


def test_a_command_benchmark_tells_how_it_is_run(tmp_path: Path) -> None:
    starts = {"one": {"sort.awk": ""}, "two": {"sort.awk": "1"}}
    (tmp_path / "score.sh").write_text("")
    benchmark = CommandBenchmark(
        ["sh", "score.sh"],
        tasks=["t 1"],
        starts=starts,
        base=tmp_path,
        briefing="A candidate is `sort.awk`.",
    )
    told = briefing_of(benchmark)
    assert told.startswith("A candidate is `sort.awk`.\n")
    assert "`sh score.sh . TASK` is run in that folder, in a sandbox without network" in told
    assert str(tmp_path) not in told


def test_a_synthetic_world_tells_of_its_file() -> None:
    world = SyntheticWorld(pools={"all": 9}, skills=2)
    told = briefing_of(SyntheticBenchmark(world))
    example = told.split("```json\n")[1].split("```")[0]
    assert read_harness(example.encode(), world).skills == (0.0, 0.0)
    assert FILE in told
    assert "from 0 to 8" in told


def test_a_benchmark_need_not_have_a_briefing() -> None:
    class Bare:
        pass

    assert briefing_of(Bare()) == ""  # type: ignore[arg-type]


def test_a_briefing_is_a_text_that_tells_of_no_task() -> None:
    with pytest.raises(ConfigError, match="the briefing must be a text, got 7"):
        made(briefing=7)
    question = "Which ferry reaches the island first if the 07:40 is cancelled?"
    benchmark = made(briefing=f"For example: {question}", secrets=lambda: {"1": question})
    (found,) = [one for one in check_benchmark(benchmark, limits=LIMITS) if one.kind == "failed"]
    assert found.about == "briefing"
    assert found.detail.endswith("briefing, line 1: has the question of task '1'")
