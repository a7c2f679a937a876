"""What benchmarks say that candidates must not know by heart."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks import FunctionBenchmark, load_file
from coevolve.benchmarks.base import leak_scan_of, sealed_secrets_of, secrets_of
from coevolve.errors import ConfigError
from coevolve.search.leaks import Secret
from coevolve.testing import check_benchmark
from tests.benchmarks.harnesses import LIMITS

QUESTION = "Which ferry reaches the island first if the 07:40 is cancelled?"
STARTS = {
    "one": {"harness.py": "def answer(q): return q"},
    "two": {"harness.py": "HINT = 'Trains leave from the eastern platform on Sundays.'"},
}
FILE = f"""
import secrets as python_secrets

TASKS = ["t-1", "t-2"]
TEST_TASKS = ["t-9"]

def evaluate(harness, task):
    return 1.0

def secrets():
    return {{"t-1": ({QUESTION!r}, "at nine"), "t-2": "Where to?"}}

def sealed_secrets():
    return {{"t-9": "How many steps does the spiral staircase have?"}}
"""


def made(**changes: Any) -> FunctionBenchmark:
    given = {"tasks": ["t-1", "t-2"], "test_tasks": ["t-9"], "starts": STARTS} | changes
    return FunctionBenchmark(lambda harness, task: 1.0, **given)


def test_nothing_is_secret_unless_a_benchmark_says_so() -> None:
    assert secrets_of(made()) == sealed_secrets_of(made()) == {}
    assert leak_scan_of(made()) is None


def test_a_file_may_say_what_its_tasks_ask(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.py"
    path.write_text(FILE)
    benchmark = load_file(path, STARTS)
    assert secrets_of(benchmark) == {
        "t-1": Secret(text=QUESTION, answer="at nine"),
        "t-2": Secret(text="Where to?"),
    }
    scan = leak_scan_of(benchmark)
    assert scan is not None
    leaks = scan.scan({"harness.py": f"X = {QUESTION!r}, 'the spiral staircase have'".encode()})
    assert [(leak.task, leak.sealed) for leak in leaks] == [("t-1", False)]
    (leak,) = scan.scan({"notes.md": b"steps does the spiral staircase have"})
    assert (leak.task, leak.sealed) == ("t-9", True)


def test_a_file_may_import_the_module_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.py"
    path.write_text(FILE.split("def secrets")[0].replace("import secrets as", "import secrets #"))
    assert secrets_of(load_file(path, STARTS)) == {}


def test_starting_harnesses_may_be_quoted() -> None:
    hint = "Trains leave from the eastern platform on Sundays."
    scan = leak_scan_of(made(secrets=lambda: {"t-1": hint, "t-2": QUESTION}))
    assert scan is not None
    assert scan.scan({"harness.py": f"X = {hint!r}".encode()}) == ()


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (lambda: ["t-1"], "secrets must map tasks to questions, got a list"),
        (lambda: {"t-3": "?"}, "secrets names 't-3', which is not a task. Did you mean"),
        (lambda: {"t-1": 7}, r"secrets\['t-1'\] must be a text, or two texts, .* got a int"),
        (lambda: {"t-1": ("a", "b", "c")}, "got a tuple"),
        (lambda: 1 / 0, "secrets failed: ZeroDivisionError"),
    ],
)
def test_slips_are_named(given: Any, wrong: str) -> None:
    benchmark = made(secrets=given)
    with pytest.raises(ConfigError, match=wrong):
        secrets_of(benchmark)
    (found,) = [one for one in check_benchmark(benchmark, limits=LIMITS) if one.kind == "failed"]
    assert found.detail.startswith("secrets")


def test_a_test_task_has_its_own_secrets() -> None:
    with pytest.raises(ConfigError, match="sealed_secrets names 't-1', which is not a test task"):
        sealed_secrets_of(made(sealed_secrets=lambda: {"t-1": "?"}))
