"""Copies of an agent's credentials are removed whatever goes wrong."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.isolation.launch import SandboxError
from coevolve.proposers.command import CommandProposer, custom, examine, preset
from coevolve.proposers.command.agents import Agent
from coevolve.search.proposal import View

from .conftest import StandIn

pytestmark = pytest.mark.usefixtures("bwrap")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where private homes are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def agent(stand_in: StandIn, home: Path) -> Agent:
    (home / ".agent").mkdir()
    (home / ".agent" / "login.json").write_text("{}")
    program = stand_in("assert os.path.exists(os.path.expanduser('~/.agent/login.json'))")
    return custom([program], home=[".agent"])


def ask(agent: Agent, view: View, folder: Path) -> None:
    asyncio.run(CommandProposer(agent, folder=folder, seconds=60).propose(view, 1))


def check_clean(scratch: Path) -> None:
    """Neither a folder nor an open lock in one is left."""
    assert list(scratch.iterdir()) == []
    fds = [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    assert not [fd for fd in fds if fd.readlink().is_relative_to(scratch)]


def test_they_reach_the_agent_and_are_gone_after_it(
    agent: Agent, view: View, tmp_path: Path, scratch: Path
) -> None:
    ask(agent, view, tmp_path / "work")
    check_clean(scratch)


def test_a_log_that_cannot_be_opened(
    agent: Agent, view: View, tmp_path: Path, scratch: Path
) -> None:
    (tmp_path / "work" / "round-002.log").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        ask(agent, view, tmp_path / "work")
    check_clean(scratch)


def test_a_home_that_cannot_be_copied(
    agent: Agent, view: View, tmp_path: Path, scratch: Path, home: Path
) -> None:
    os.mkfifo(home / ".agent" / "pipe")
    with pytest.raises(OSError, match="pipe"):
        ask(agent, view, tmp_path / "work")
    check_clean(scratch)


def test_a_disk_that_is_full_after_the_copy(
    agent: Agent, view: View, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path) -> Any:
        assert (folder / "home" / ".agent" / "login.json").exists()
        raise OSError("No space left on device")

    monkeypatch.setattr("coevolve.proposers.command.agent_sandbox._names", full)
    with pytest.raises(OSError, match="No space left"):
        ask(agent, view, tmp_path / "work")
    check_clean(scratch)


def test_a_command_line_that_no_program_can_have(
    agent: Agent, view: View, tmp_path: Path, scratch: Path
) -> None:
    odd = custom([agent.program, "a\0b"], home=[".agent"])
    with pytest.raises(ValueError, match="null byte"):
        ask(odd, view, tmp_path / "work")
    check_clean(scratch)


def test_a_sandbox_that_does_not_start(
    agent: Agent, view: View, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coevolve.proposers.command.agent_sandbox.bwrap_program", lambda: "/no/such/bwrap"
    )
    with pytest.raises(SandboxError, match="cannot be started"):
        ask(agent, view, tmp_path / "work")
    check_clean(scratch)


def test_a_disk_that_cannot_be_watched(
    agent: Agent, view: View, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr("coevolve.proposers.command.agent_process.DiskQuota.add", broken)
    with pytest.raises(OSError, match="stale"):
        ask(agent, view, tmp_path / "work")
    check_clean(scratch)


def test_the_doctor_leaves_none(stand_in: StandIn, home: Path, scratch: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "auth.json").write_text("{}")
    for code in ("print('1.0')", "sys.exit('no libraries')"):
        list(examine(preset("codex", program=stand_in(code))))
    check_clean(scratch)
