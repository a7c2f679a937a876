"""A search on terminal tasks whose driver is killed in the middle of a trial, and resumed."""

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coevolve.runs.session import read_state
from coevolve.store import RunStore
from tests.benchmarks.harbor.task_boxes import groups_of, mounts_of, wait_for
from tests.benchmarks.harbor.trial_beds import (
    in_docker_with,
    new_token,
    waiting_command,
    waiting_processes,
)
from tests.benchmarks.harbor.trials import ENVIRONMENT, agent, needs_trials, write_task
from tests.effort import first
from tests.models.endpoint import Endpoint

pytestmark = needs_trials
WHERE = {"namespace": 'environment_options = { root = "host" }', "docker": ""}
CONFIG = """
[run]
name = "killed"
[search]
rounds = 1
protocol = "full"
[benchmark]
kind = "harbor"
path = "tasks"
starts = ["starts/one", "starts/two"]
environment = "{environment}"
{options}
fresh_sandbox = false
[proposer]
kind = "scripted"
folders = ["family/three"]
[model]
name = "any"
base_url = "{url}"
key = "LOOPBACK_KEY"
window = 1000
max_tokens = 100
cache = "off"
[executor]
workers = 1
"""
RUN = """
import coevolve_host
said = await coevolve_host.ask_async("llm", messages=[{{"role": "user", "content": "go?"}}])
if said["text"] == "wait":
    await environment.exec({wait!r})
await environment.exec("echo done > /app/answer.txt")
"""
TRIALS = 3 * 2
TOKENS = 10
"""Those that the server says it has read, of each request."""


class Killed:
    """A project whose agents ask the model whether to wait, and the driver of its run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, new_token()
        self.waits, self.asked = True, 0
        self.temporary = folder / "tmp"
        self.environments = folder / "cache" / "harbor" / "environments"
        self.run = folder / "runs" / "killed"
        self.variables = {
            **os.environ,
            "COEVOLVE_CACHE": str(folder / "cache"),
            "LOOPBACK_KEY": "none",
            "TMPDIR": str(self.temporary),
        }

    def answer(self, body: Any) -> str:
        """What the model says: some trials end, then all wait until the run is resumed."""
        self.asked += 1
        return "wait" if self.waits and self.asked > 2 else "go"

    def write(self, url: str) -> None:
        """The files of the project."""
        self.temporary.mkdir()
        options = WHERE[ENVIRONMENT]
        text = CONFIG.format(environment=ENVIRONMENT, options=options, url=url)
        (self.folder / "killed.toml").write_text(text)
        for name in ("a", "b"):
            write_task(self.folder / "tasks" / f"{name}-{self.token}")
        source = agent(RUN.format(wait=waiting_command(self.token)))
        for name in ("starts/one", "starts/two", "family/three"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "harness.py").write_text(f"{source}# {name}\n")

    def command(self, *words: str) -> subprocess.Popen[str]:
        """A command of its own process group."""
        return subprocess.Popen(
            (sys.executable, "-m", "coevolve", *words),
            cwd=self.folder,
            env=self.variables,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def processes(self) -> list[int]:
        """The processes of the run: they have its variables."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"TMPDIR={self.temporary}\0".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def left(self) -> dict[str, object]:
        """What is left of the run outside of its folder."""
        found: dict[str, object] = {
            "processes": waiting_processes(self.token) + self.processes(),
            "mounts": mounts_of(self.folder),
            "environments": [path.name for path in self.environments.glob("*")],
            "temporary files": [path.name for path in self.temporary.glob("*")],
            "docker": in_docker_with(self.token),
        }
        return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("whole_group", first(1, [False, True]))
def test_a_search_that_is_killed_in_a_trial_goes_on(whole_group: bool, tmp_path: Path) -> None:
    """Its workers notice the end of the driver, or are killed with it."""
    killed = Killed(tmp_path)
    with Endpoint(answer=killed.answer) as endpoint:
        killed.write(endpoint.base_url)
        with killed.command("run", "killed.toml") as driver:
            try:
                waits = wait_for(
                    lambda: bool(waiting_processes(killed.token)) or driver.poll() is not None, 240
                )
                assert waits
                assert driver.poll() is None, driver.communicate()[0]
                environments = [path.name for path in killed.environments.glob("*")]
            finally:
                if whole_group:
                    os.killpg(driver.pid, signal.SIGKILL)
                driver.kill()
        assert wait_for(lambda: not killed.processes(), 120), "workers end without their driver"
        state = read_state(killed.run)
        assert state.ended is None
        assert state.evaluating.trials == 2
        killed.waits = False
        with killed.command("resume", "runs/killed") as resumed:
            try:
                said, _ = resumed.communicate(timeout=400)
            finally:
                resumed.kill()
    assert resumed.returncode == 0, said
    state = read_state(killed.run)
    assert state.ended == {"why": "finished"}
    with RunStore.read(killed.run) as store:
        outcomes = [event for event in store.events() if event["type"] == "outcome"]
    told = Counter((event["candidate"], event["task"], event["trial"]) for event in outcomes)
    assert set(told.values()) == {1}
    assert len(told) == TRIALS == state.evaluating.trials
    assert state.evaluating.tokens_in == TRIALS * TOKENS
    assert not state.tally.missing
    assert wait_for(lambda: not killed.left(), 60), killed.left()
    assert [group for name in environments for group in groups_of(name)] == []
    trials = list((killed.run / "trials").iterdir())
    assert len(trials) == TRIALS, trials
    assert all((folder / "result.json").exists() for folder in trials)
