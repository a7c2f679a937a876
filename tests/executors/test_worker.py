"""A worker ends with its engine, and its sandbox with it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coevolve.executors.isolation.process_table import descendants
from tests.effort import first
from tests.executors.projects import Project, needs_bwrap, runs, until

ENGINE = """
import asyncio, sys
from pathlib import Path
from coevolve.executors import local
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Trial

local.processors = lambda: int(sys.argv[5])

class Contents:
    def checkout(self, candidate):
        return Path(sys.argv[2])

async def main():
    spec = Spec(factory="tasks_of_mine:Benchmark", folder=Path(sys.argv[1]))
    executor = local.LocalExecutor(spec, contents=Contents(), isolation=sys.argv[3])
    candidate = Candidate.of({"harness.py": b"."}, name="c1")
    trial = Trial(candidate="c1", task=sys.argv[4])
    attempt = asyncio.ensure_future(executor.run(candidate, trial))
    while executor.worker_of(trial) is None:
        await asyncio.sleep(0.01)
    print(executor.worker_of(trial), flush=True)
    await attempt

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and the kernel's help")
@pytest.mark.parametrize("processors", [pytest.param(1, id="fresh"), pytest.param(0, id="forked")])
@pytest.mark.parametrize("task", first(1, ["call:sleep", "sleep:600"]))
@pytest.mark.parametrize("isolation", ["process", pytest.param("bwrap", marks=needs_bwrap())])
def test_killing_the_engine_ends_every_process(
    tmp_path: Path, isolation: str, task: str, processors: int
) -> None:
    project = Project(tmp_path)
    folder = project.contents.checkout(project.contents.candidate())
    given = [str(project.folder), str(folder), isolation, task, str(processors)]
    command = [sys.executable, "-c", ENGINE, *given]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as engine:
        try:
            assert engine.stdout is not None
            worker = int(engine.stdout.readline())
            processes = 1 if task.startswith("sleep") else 2
            assert until(lambda: len(set(descendants(worker))) >= processes)
            below = set(descendants(engine.pid)) - {engine.pid}
            assert worker in below
        finally:
            engine.send_signal(signal.SIGKILL)
    assert until(lambda: not any(map(runs, below)))


def test_a_worker_whose_engine_has_ended_does_not_start() -> None:
    command = [sys.executable, "-m", "coevolve.executors.worker", "0", "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
