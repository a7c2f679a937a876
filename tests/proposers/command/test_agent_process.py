"""No process of an agent outlives its work, however it ends."""

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.isolation.folders import Scratch
from coevolve.executors.isolation.launch import Launch
from coevolve.proposers.command import CommandProposer, custom
from coevolve.search.proposal import View

from .conftest import StandIn

FORKS = """
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-S", "-c", SLEEP, MARK])
        os._exit(0)

SLEEP = "import time; time.sleep(600)"
MARK = {mark!r}
daemon()
subprocess.Popen([sys.executable, "-S", "-c", SLEEP, MARK])
write("new")
print("ready", flush=True)
"""


@pytest.fixture
def mark() -> Iterator[str]:
    """A word in the command lines of a test's processes, all of which are ended afterwards."""
    word = f"stray-{secrets.token_hex(8)}"
    yield word
    for pid in alive(word):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def alive(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if mark.encode() in words:
                found.append(int(folder.name))
    return found


def gone(mark: str, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(mark)


def proposer(program: str, folder: Path, isolation: Any, seconds: float) -> CommandProposer:
    return CommandProposer(custom([program]), folder=folder, isolation=isolation, seconds=seconds)


@pytest.mark.parametrize("ending", ["", "time.sleep(600)", "os._exit(1)"])
def test_nothing_is_left_behind(
    ending: str, stand_in: StandIn, view: View, tmp_path: Path, isolation: str, mark: str
) -> None:
    program = stand_in(FORKS.format(mark=mark) + ending)
    made = asyncio.run(proposer(program, tmp_path / "work", isolation, 4).propose(view, 1))
    assert [p.name for p in made.proposals] == ["new"]
    assert gone(mark)


def test_nothing_is_left_when_the_proposal_is_cancelled(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str, mark: str
) -> None:
    program = stand_in(FORKS.format(mark=mark) + "time.sleep(600)")
    work = proposer(program, tmp_path / "work", isolation, 300)
    log = tmp_path / "work" / "round-002.log"

    async def cancelled() -> bool:
        task = asyncio.create_task(work.propose(view, 1))
        async with asyncio.timeout(60):
            while not log.exists() or "ready" not in log.read_text():
                await asyncio.sleep(0.02)
            while isolation == "none" and not alive(mark):  # inside, they cannot be seen
                await asyncio.sleep(0.02)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert gone(mark)


RUN = """
import asyncio, sys
from pathlib import Path
from coevolve.proposers.command import CommandProposer, custom
from coevolve.search.proposal import View
view = View(round=2, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    trace=lambda candidate, task: None)
program, folder = sys.argv[1:]
asyncio.run(CommandProposer(custom([program]), folder=Path(folder), seconds=300).propose(view, 1))
"""


def test_behind_bwrap_nothing_survives_the_engine_s_sudden_end(
    stand_in: StandIn, tmp_path: Path, mark: str, bwrap: None
) -> None:
    program = stand_in(FORKS.format(mark=mark) + "time.sleep(600)")
    log = tmp_path / "work" / "round-002.log"
    argv = [sys.executable, "-c", RUN, program, str(tmp_path / "work")]
    with subprocess.Popen(argv, env={**os.environ, "TMPDIR": str(tmp_path)}) as engine:
        deadline = time.monotonic() + 60
        while not (log.exists() and "ready" in log.read_text()):
            assert engine.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        engine.kill()
    assert gone(mark)
    # Nor do the copies of its credentials, once anybody makes a scratch folder again.
    assert list(tmp_path.glob("coevolve-*/home"))
    deadline = time.monotonic() + 20
    while list(tmp_path.glob("coevolve-*")) and time.monotonic() < deadline:
        Scratch.make(tmp_path).remove()
        time.sleep(0.02)
    assert not list(tmp_path.glob("coevolve-*"))


def test_private_homes_are_removed(
    stand_in: StandIn,
    view: View,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bwrap: None,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    program = stand_in("write('new')\nos.makedirs(os.path.expanduser('~/deep/er'), 0o500)")
    asyncio.run(proposer(program, tmp_path / "work", "bwrap", 60).propose(view, 1))
    assert list(scratch.iterdir()) == []


def test_a_home_that_takes_long_to_delete_does_not_delay_the_search(
    stand_in: StandIn,
    view: View,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bwrap: None,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr("coevolve.proposers.command.agent_process._LONGEST_REST", 1.0)
    go, remove = threading.Event(), Launch.close

    def slow(launch: Launch) -> None:
        if launch.scratch is not None:
            go.wait(60)
        remove(launch)

    monkeypatch.setattr(Launch, "close", slow)
    work = proposer(stand_in("write('new')"), tmp_path / "work", "bwrap", 60)
    made = asyncio.run(work.propose(view, 1))
    assert [p.name for p in made.proposals] == ["new"]
    assert list(scratch.iterdir())
    go.set()
    deadline = time.monotonic() + 60
    while list(scratch.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(scratch.iterdir()) == []


def test_an_agent_that_fills_the_disk_is_stopped_and_its_work_counts(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setattr("coevolve.proposers.command.agent_process.MOST_BYTES", 20_000_000)
    program = stand_in(
        """
        write('early')
        with open("junk", "wb") as file:
            file.write(os.urandom(30_000_000))
            file.flush()
            os.fsync(file.fileno())
        time.sleep(600)
        """
    )
    made = asyncio.run(proposer(program, tmp_path / "work", isolation, 60).propose(view, 1))
    assert [proposal.name for proposal in made.proposals] == ["early"]
    assert "stand-in was stopped: it wrote more than 0.02 GB." in made.notes
    left = {path.name for path in (tmp_path / "work" / "round-002").iterdir()}
    assert left == {"INSTRUCTIONS.md", "SUMMARY.md", "proposals"}
