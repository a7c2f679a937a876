"""From a configuration to its parts."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from coevolve.benchmarks.base import Benchmark
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import SyntheticBenchmark, SyntheticProposer
from coevolve.errors import ConfigError
from coevolve.executors.workload import Spec
from coevolve.proposers import FunctionProposer, Scripted
from coevolve.runs import RunConfig, benchmark_spec, build_benchmark, build_proposer
from tests.proposers.views import view

SEARCH = {"rounds": 2}
EVALUATE = "TASKS = ['x', 'y']\ndef evaluate(harness, task): return 1.0\n"


def config(
    benchmark: Mapping[str, object],
    proposer: Mapping[str, object] | None = None,
    folder: Path | None = None,
) -> RunConfig:
    return RunConfig.from_json(
        {
            "search": SEARCH,
            "benchmark": benchmark,
            "proposer": proposer or {"kind": "function", "file": "propose.py"},
        },
        folder=folder,
    )


def project(folder: Path) -> None:
    (folder / "benchmark.py").write_text(EVALUATE)
    (folder / "propose.py").write_text("def propose(view, count): return []\n")
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "harness.py").write_text(f"name = {name!r}\n")


def rebuilt(made: RunConfig, base: Path) -> Benchmark:
    """What a worker builds from the spec, after JSON."""
    spec = Spec.from_json(json.loads(json.dumps(benchmark_spec(made, base).to_json())))
    found: object = spec.build()
    assert isinstance(found, Benchmark)
    return found


def test_a_function_benchmark(tmp_path: Path) -> None:
    project(tmp_path)
    made = config({"kind": "function", "file": "benchmark.py", "starts": ["a", "b"]})
    for benchmark in (build_benchmark(made, tmp_path), rebuilt(made, tmp_path)):
        assert benchmark.pool.tasks == ("x", "y")
        assert benchmark.starts["b"] == {"harness.py": b"name = 'b'\n"}
    assert isinstance(build_proposer(made, tmp_path), FunctionProposer)


@pytest.mark.parametrize(
    ("name", "text", "tasks"),
    [
        ("tasks.txt", "one\n\n two \n", ("one", "two")),
        ("tasks.json", '["one", "two"]', ("one", "two")),
        ("tasks.json", '{"p": ["one"], "q": ["two", "three"]}', ("one", "two", "three")),
    ],
)
def test_a_command_benchmark_with_its_tasks_in_a_file(
    tmp_path: Path, name: str, text: str, tasks: tuple[str, ...]
) -> None:
    project(tmp_path)
    (tmp_path / name).write_text(text)
    (tmp_path / "score").write_text("")
    table = {"kind": "command", "command": ["./score"], "tasks_file": name, "starts": ["a", "b"]}
    for benchmark in (
        build_benchmark(config(table), tmp_path),
        rebuilt(config(table), tmp_path),
    ):
        assert benchmark.pool.tasks == tasks


def test_the_tasks_of_a_command_are_given_once(tmp_path: Path) -> None:
    table = {"kind": "command", "command": ["./score"], "starts": ["a", "b"]}
    with pytest.raises(ConfigError, match="either tasks or tasks_file"):
        config(table)
    with pytest.raises(ConfigError, match="either tasks or tasks_file"):
        config({**table, "tasks": ["x"], "tasks_file": "tasks.txt"})
    with pytest.raises(ConfigError, match="test_readable has no effect without test_tasks"):
        config({**table, "tasks": ["x"], "test_readable": ["answers"]})


def test_a_synthetic_world_and_its_proposer(tmp_path: Path) -> None:
    table = {"kind": "synthetic", "pools": {"p": 5, "q": 7}, "seed": 3, "test_tasks": 4}
    made = config(table, {"kind": "synthetic"})
    benchmark = rebuilt(made, tmp_path)
    assert isinstance(benchmark, SyntheticBenchmark)
    assert benchmark.world == SyntheticWorld(pools={"p": 5, "q": 7}, seed=3)
    assert len(benchmark.test_tasks) == 4
    proposer = build_proposer(made, tmp_path)
    assert isinstance(proposer, SyntheticProposer)
    assert proposer.world == benchmark.world


def test_a_benchmark_of_ones_own(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "own_benchmark_of_a_test.py").write_text(
        "from coevolve.benchmarks import FunctionBenchmark\n"
        "def make(size):\n"
        "    starts = {name: {'harness.py': ''} for name in 'ab'}\n"
        "    return FunctionBenchmark(lambda harness, task: 1.0,\n"
        "        tasks=[str(i) for i in range(size)], starts=starts)\n"
        "def rubbish(): return 3\n"
    )
    table = {"kind": "own_benchmark_of_a_test:make", "arguments": {"size": 4}}
    assert len(build_benchmark(config(table, folder=tmp_path), tmp_path).pool) == 4
    for kind, arguments, message in (
        ("own_benchmark_of_a_test:make", {"sise": 4}, "unexpected keyword argument 'sise'"),
        ("own_benchmark_of_a_test:rubbish", {}, "of type int, which has no pool"),
        ("own_benchmark_of_a_test:none", {}, "has no 'none'"),
        ("no_such_module_here:make", {}, "No module named 'no_such_module_here'"),
    ):
        table = {"kind": kind, "arguments": arguments}
        with pytest.raises(ConfigError, match=message):
            build_benchmark(config(table, folder=tmp_path), tmp_path)


OWN = """
from coevolve import Pool

class Own:
    pool = Pool(["x", "y"])
    starts = {name: {"harness.py": b"name = 1"} for name in "ab"}
    test_tasks = ("z",)

    def check(self, harness): pass
    def prepare(self, harness): pass
    def run(self, harness, task, trial): return 1.0

def make():
    return Own()
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return Own()", "return {}['x']", "KeyError: 'x' .*NAME.py, line 14"),
        ("from coevolve import Pool", "{}['x']", "KeyError: 'x' .*NAME.py, line 2"),
        ("from coevolve import Pool", "import nosuch", "No module named 'nosuch' .*line 2"),
        ("class Own:", "class Own", "SyntaxError: expected ':' .*NAME.py, line 4"),
        ("return Own()", "raise SystemExit(3)", "SystemExit: 3 .*line 14"),
        ("return Own()", "return Own(3)", "TypeError: .*line 14"),
        ('["x", "y"]', '["x", "x"]', "task 'x' appears more than once.*NAME.py, line 5"),
        ('b"name = 1"', '"name = 1"', r"starts\['a'\]\['harness.py'\] must be bytes, got str"),
        ('{"harness.py": b"name = 1"}', "3", r"starts\['a'\] must map paths to contents"),
        ('{name: {"harness.py": b"name = 1"} for name in "ab"}', "[]", "must map names to files"),
        ('"harness.py"', '"../harness.py"', "'../harness.py'"),
        ('("z",)', '("z", "y")', "test task 'y' is also a validation task"),
        ('("z",)', '"z"', "test_tasks must be a list of ids, got 'z'"),
        ('("z",)', "property(lambda self: 1 / 0)", "ZeroDivisionError: .*line 7"),
        ("    pool =", "    pool = property(lambda self: 1 / 0) #", "ZeroDivisionError: .*line 5"),
        ('Pool(["x", "y"])', '["x"]', "is not a Pool"),
    ],
)
def test_mistakes_in_a_benchmark_of_ones_own_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    monkeypatch.setattr("sys.path", sys.path.copy())
    project(tmp_path)
    name = f"own_{tmp_path.name}"
    path = tmp_path / f"{name}.py"
    path.write_text(OWN)
    table = {"kind": f"{name}:make"}
    assert len(build_benchmark(config(table, folder=tmp_path), tmp_path).pool) == 2
    del sys.modules[name]
    assert old in OWN
    path.write_text(OWN.replace(old, new, 1))
    os.utime(path, (1, 1))  # or the compiled file of the same second is taken for its
    with pytest.raises(ConfigError, match=message.replace("NAME", name)):
        build_benchmark(config(table, folder=tmp_path), tmp_path)


def test_a_script_of_folders(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "score").write_text("")
    table = {"kind": "command", "command": ["./score"], "tasks": ["x"], "starts": ["a", "b"]}
    proposer = build_proposer(config(table, {"kind": "scripted", "folders": ["b", "a"]}), tmp_path)
    assert isinstance(proposer, Scripted)
    (new,) = asyncio.run(proposer.propose(view(round=1), 1)).proposals
    assert (new.name, new.files) == ("b", {"harness.py": b"name = 'b'\n"})


def test_an_error_of_a_proposer_names_its_table(tmp_path: Path) -> None:
    """Also where its text has the word proposer by chance."""
    (tmp_path / "proposer.py").write_text("nothing = 1\n")
    made = config({"kind": "synthetic"}, {"kind": "function", "file": "proposer.py"})
    with pytest.raises(ConfigError, match=r"^\[proposer\]: .*proposer\.py has no function"):
        build_proposer(made, tmp_path)
