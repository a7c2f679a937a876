"""Small projects for the tests of commands, and the commands themselves."""

from pathlib import Path

from tests.command import COMMAND, coevolve

__all__ = ["COMMAND", "coevolve", "write_doubling", "write_synthetic"]

BENCHMARK = """
TASKS = {"small": [str(n) for n in range(8)], "large": [str(n) for n in range(100, 108)]}
TEST_TASKS = [str(n) for n in range(200, 204)]
FUNCTIONS = ["double"]


def evaluate(harness, task):
    return float(harness.call("double", int(task)) == 2 * int(task))
"""

PROPOSE = '''
BODY = """
def double(n):
    return 2 * n if n < {limit} else 0
"""
BROKEN = "def halve(n): return n / {limit}"


def propose(view, count):
    from coevolve.search.proposal import Proposal

    bodies = [body.format(limit=40 * view.round) for body in (BODY, BROKEN)]
    return [
        Proposal(
            files={"harness.py": body.encode()},
            name=f"r{view.round}-{index}",
            parents=(view.parent,),
            hypothesis=f"numbers below {40 * view.round} are enough",
        )
        for index, body in enumerate(bodies[:count])
    ]
'''

TOML = """
[run]
name = "doubling"
[search]
rounds = 3
candidates = 2
protocol = "task-coevolve"
fraction = 0.5
[budget]
trials = 200
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/same", "starts/square"]
[proposer]
kind = "function"
file = "propose.py"
[executor]
workers = 1
[isolation]
kind = "process"
"""

SYNTHETIC = """
[run]
name = "{name}"
[search]
rounds = {rounds}
candidates = 2
[benchmark]
kind = "synthetic"
pools = {{ all = 20 }}
test_tasks = 5
seconds = {seconds}
[proposer]
kind = "synthetic"
[executor]
workers = 1
[isolation]
kind = "process"
"""


def write_doubling(folder: Path) -> Path:
    """A function benchmark whose candidates double numbers; returns its TOML file."""
    for name, body in (("same", "return n"), ("square", "return n * n")):
        (folder / "starts" / name).mkdir(parents=True)
        (folder / "starts" / name / "harness.py").write_text(f"def double(n):\n    {body}\n")
    (folder / "benchmark.py").write_text(BENCHMARK)
    (folder / "propose.py").write_text(PROPOSE)
    path = folder / "coevolve.toml"
    path.write_text(TOML)
    return path


def write_synthetic(
    folder: Path, *, name: str = "world", rounds: int = 2, seconds: float = 0.0
) -> Path:
    """A synthetic world; returns its TOML file."""
    path = folder / f"{name}.toml"
    path.write_text(SYNTHETIC.format(name=name, rounds=rounds, seconds=seconds))
    return path
