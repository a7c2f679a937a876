"""What the package offers in one place: a change here is a change of the public interface."""

import inspect
import subprocess
import sys
from typing import Any

import pytest

import coevolve

PUBLIC = [
    "Assignment",
    "Benchmark",
    "Budget",
    "Choice",
    "CoevolveError",
    "Comparison",
    "Design",
    "Estimate",
    "Executor",
    "Harness",
    "History",
    "Missing",
    "Outcome",
    "OutcomeTable",
    "Pool",
    "Proposal",
    "Proposer",
    "Ranked",
    "Result",
    "Run",
    "Score",
    "ScoreTable",
    "SearchProtocol",
    "Selector",
    "StopRun",
    "Usage",
    "View",
    "evaluate",
    "open",
    "optimize",
    "optimize_async",
    "protocol",
    "protocols",
    "register",
]

METHODS = {
    "Run": "candidates create events extend folder import_past listen outcomes report rescore "
    "result resume resume_async run run_async session started state status",
    "Result": "best candidates estimate outcomes report run status",
}

OPTIMIZE = [
    "tasks",
    "starts",
    "evaluate",
    "propose",
    "rounds",
    "candidates",
    "fraction",
    "protocol",
    "budget",
    "seed",
    "workers",
    "in_flight",
    "test_tasks",
    "isolation",
    "folder",
    "listen",
    "history",
]


def test_the_list_of_public_names() -> None:
    assert coevolve.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(coevolve))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_there_and_star_imports_it(name: str) -> None:
    found: dict[str, Any] = {}
    exec("from coevolve import *", found)
    assert found[name] is getattr(coevolve, name)
    assert found[name].__name__ == name


@pytest.mark.parametrize("name", METHODS)
def test_what_runs_and_results_can_do(name: str) -> None:
    made = getattr(coevolve, name)
    source = inspect.getsource(made.__init__)
    own = {line.split("self.")[1].split()[0] for line in source.splitlines() if "self." in line}
    public = {n for n in {*vars(made), *own} if n.isidentifier() and not n.startswith("_")}
    assert sorted(public) == METHODS[name].split()


def test_the_arguments_of_optimize() -> None:
    assert list(inspect.signature(coevolve.optimize).parameters) == OPTIMIZE
    options = set(inspect.get_annotations(sys.modules["coevolve.runs.optimize"].Options))
    assert options == set(OPTIMIZE[4:]), "optimize_async takes the same"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'coevolve' has no attribute 'optimise'"):
        _ = coevolve.optimise  # type: ignore[attr-defined]


def test_importing_takes_under_a_third_of_a_second() -> None:
    code = "import time; import coevolve; print(time.process_time())"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(3)]
    assert min(map(float, runs)) < 0.3
