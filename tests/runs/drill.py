"""A run whose process is killed: the project, and the program that works on it.

Run as a program with the folder of a run, it goes on with that run. `KILL` in the environment
names where it kills its own process group: "write", "propose" or "retry".
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coevolve.executors.local import LocalExecutor
from coevolve.runs.session import session
from coevolve.search.candidate import Candidate
from coevolve.search.retries import Retries
from coevolve.search.trials import Result, Trial
from coevolve.store.event_file import EventFile
from coevolve.testing.fault_injection import FaultyExecutor

CONFIG = """
[run]
name = "drill"
seed = 5
[search]
rounds = ROUNDS
candidates = 2
fraction = 0.3
PACE
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/even", "starts/odd"]
[proposer]
kind = "function"
file = "propose.py"
[executor]
workers = 3
[isolation]
kind = "process"
"""

BENCHMARK = """
import time
TASKS = {"low": [f"n{i}" for i in range(LOW)], "high": [f"n{i}" for i in range(LOW, ALL)]}
TEST_TASKS = [f"n{i}" for i in range(ALL, ALL + 3 * ALL // 16)]


def evaluate(harness, task, trial):
    time.sleep(0.004)
    return float(harness.call("solves", int(task[1:]), returns=bool))


def prepare(harness):
    return {"learned": harness.call("learn")}
"""

HARNESS = """
GAPS = {gaps}


def learn():
    return GAPS


def solves(number):
    return all(number % gap for gap in GAPS)
"""

PROPOSE = """
import os, random, signal
from dataclasses import replace
from pathlib import Path


def propose(view, count):
    marker = Path(__file__).with_name("proposed")
    if os.environ.get("KILL") == "propose" and view.round == 3 and not marker.exists():
        marker.touch()
        os.killpg(0, signal.SIGKILL)
    rng = random.Random(view.seed)
    source = view.files(view.parent)["harness.py"].decode()
    gaps = eval(source.split("GAPS = ")[1].splitlines()[0])
    made = []
    for i in range(count):
        new = sorted({*gaps, rng.randrange(2, 12)} - {rng.choice(gaps)})
        files = {"harness.py": source.replace(str(gaps), str(new))}
        made.append({"name": f"r{view.round}-{i}", "files": files, "parents": [view.parent]})
    return made
"""


def make_project(
    folder: Path,
    *,
    overlap: bool = False,
    in_flight: int | None = None,
    rounds: int = 6,
    tasks: int = 80,
) -> Path:
    """The TOML file of a small project."""
    pace = f"overlap = {str(overlap).lower()}" if in_flight is None else f"in_flight = {in_flight}"
    config = CONFIG.replace("PACE", pace)
    files = {
        "coevolve.toml": config.replace("ROUNDS", str(rounds)),
        "benchmark.py": f"LOW, ALL = {tasks * 9 // 16}, {tasks}\n{BENCHMARK}",
        "propose.py": PROPOSE,
        "starts/even/harness.py": HARNESS.format(gaps=[2, 7]),
        "starts/odd/harness.py": HARNESS.format(gaps=[3, 5]),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "coevolve.toml"


class Drill(FaultyExecutor):
    """Faults in a fifth of the attempts; may kill the process in the midst of a second one."""

    def __init__(self, executor: LocalExecutor) -> None:
        super().__init__(executor, rate=0.2, seed=3)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        if os.environ.get("KILL") == "retry" and trial.attempt == 1:
            os.killpg(0, signal.SIGKILL)
        return await super().run(candidate, trial)


def kill_in_the_middle_of_a_write(after: int) -> None:
    """Kill when the rows of a transaction are written and it is not committed."""
    write = EventFile.write

    def dying(self: EventFile, since: int, lines: Sequence[str]) -> None:
        if since < after:
            return write(self, since, lines)
        self._connection.execute("BEGIN IMMEDIATE")
        rows = enumerate(lines, since)
        self._connection.executemany("INSERT INTO events VALUES (?, ?)", rows)
        os.killpg(0, signal.SIGKILL)

    EventFile.write = dying  # type: ignore[method-assign]


def main(folder: Path) -> None:
    """Go on with a run to its end."""
    if os.environ.get("KILL") == "write":
        kill_in_the_middle_of_a_write(int(os.environ["AFTER"]))
    with session(folder, around=Drill) as search:
        search._attempts = replace(search._attempts, retries=Retries(pause=0.002))
        asyncio.run(search.run())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
