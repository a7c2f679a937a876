"""Stand-ins for agents: small programs that write candidates and print what a test says."""

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from coevolve.executors.isolation.system_paths import interpreter
from coevolve.proposers.command.agent_sandbox import why_no_sandbox
from coevolve.proposers.command.agents import SERVICES
from coevolve.search.proposal import View

from ..views import view as make_view

PRELUDE = f'''#!{interpreter()} -S
import json, os, subprocess, sys, time

def write(name, text="answer = 1\\n", **form):
    os.makedirs("proposals/" + name, exist_ok=True)
    with open("proposals/" + name + "/harness.py", "w") as file:
        file.write(text)
    with open("proposals/" + name + "/proposal.json", "w") as file:
        json.dump({{"name": name, "hypothesis": "h", **form}}, file)

def tried(act, *arguments):
    """What an act gave, or why it failed."""
    try:
        return repr(act(*arguments))
    except OSError as error:
        return type(error).__name__ + ": " + error.strerror

def read(path):
    with open(path) as file:
        return file.read()

def overwrite(path):
    with open(path, "w") as file:
        file.write("mine")
'''

StandIn = Callable[..., str]


@pytest.fixture
def bwrap() -> None:
    """Skips where an agent cannot be confined."""
    reason = why_no_sandbox()
    if reason:
        pytest.skip(f"bwrap does not work here: {reason}")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without the real keys and logins."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in (*SERVICES, "CODEX_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    """Writes a program into a separate folder and returns its path."""

    def make(code: str, name: str = "stand-in") -> str:
        folder = tmp_path / "programs"
        folder.mkdir(exist_ok=True)
        program = folder / name
        program.write_text(PRELUDE + textwrap.dedent(code))
        program.chmod(0o755)
        return str(program)

    return make


@pytest.fixture
def view() -> View:
    """A search of two candidates, before its second round."""
    files = {"harness.py": b"answer = 0\n"}
    return make_view(round=2, candidates={"start": files, "second": files}, parent="start")


@pytest.fixture(params=["bwrap", "none"])
def isolation(request: pytest.FixtureRequest) -> str:
    """Each isolation of an agent that works here."""
    if request.param == "bwrap":
        request.getfixturevalue("bwrap")
    elif sys.platform != "linux":
        pytest.skip("processes without a sandbox are found by /proc")
    return str(request.param)
