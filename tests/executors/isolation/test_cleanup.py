"""No process and no file of a candidate is left, however its harness ends."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation, find_isolation

from .conftest import STRICT, Make

DAEMON = """
import os, subprocess, time

def daemon(number):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2): os.dup2(null, fd)
            os.execvp("sleep", ["sleep", number])
        os._exit(0)
    os.wait()
    return "left one behind"

def become(number):
    os.execvp("sleep", ["sleep", number])

def bomb():
    while True:
        try: os.fork()
        except OSError: pass

def fine(value):
    return value
"""


@pytest.fixture
def number() -> str:
    """How long a process should sleep, by which it is known."""
    return f"{random.SystemRandom().randrange(10**8, 10**9)}.25"


def sleepers(number: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == f"sleep\0{number}\0".encode():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_for(number: str, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(sleepers(number)) != count:
        assert time.monotonic() < deadline, f"{sleepers(number)}, not {count}"
        time.sleep(0.01)


def test_processes_that_left_their_session_end_with_it(
    isolation: Isolation, make: Make, number: str
) -> None:
    harness = make(DAEMON, isolation)
    assert harness.call("daemon", number) == "left one behind"
    wait_for(number, 1)
    harness.close()
    assert sleepers(number) == []


def test_a_fork_bomb_ends(bwrap: Isolation, make: Make) -> None:
    harness = make(DAEMON, bwrap, replace(STRICT, seconds=3))
    with pytest.raises(HarnessFault) as caught:
        harness.call("bomb")
    assert caught.value.kind in ("process-limit", "cpu-limit", "time-limit")
    assert harness.call("fine", 3) == 3


PARENT = """
import sys
from pathlib import Path
from coevolve.executors.isolation import Harness, find_isolation
kind, folder, function, number = sys.argv[1:]
harness = Harness(Path(folder), isolation=find_isolation(kind))
harness.call(function, number)
print("called", flush=True)
sys.stdin.read()
"""


# A plain process that hides outlives a killed host, as its `exposes` says.
@pytest.mark.parametrize(
    ("kind", "function"), [("bwrap", "daemon"), ("bwrap", "become"), ("process", "become")]
)
def test_it_ends_when_its_host_is_killed(
    kind: str,
    function: str,
    request: pytest.FixtureRequest,
    make: Make,
    number: str,
    tmp_path: Path,
) -> None:
    bwrap = kind == "bwrap"
    isolation = request.getfixturevalue("bwrap") if bwrap else find_isolation("process")
    folder = make(DAEMON, isolation).folder
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o711)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, isolation.name, str(folder), function, number],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as parent:
        wait_for(number, 1)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(number, 0)


def test_scratch_folders_are_removed(
    isolation: Isolation, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    harness = make(
        """
        import os, tempfile
        def act():
            os.makedirs(os.path.join(tempfile.gettempdir(), "a/b/c"))
            os.chmod(os.path.join(tempfile.gettempdir(), "a/b"), 0)
            os.chmod(os.path.dirname(__file__), 0)
        """,
        isolation,
    )
    if isolation.name == "bwrap":
        with pytest.raises(HarnessFault, match=r"Read-only|permitted"):
            harness.call("act")
    else:
        harness.call("act")
    harness.close()
    assert list(scratch.iterdir()) == []


def test_a_folder_of_any_depth_can_be_removed(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    harness = make(
        """
        import os, tempfile
        def act():
            os.chdir(tempfile.gettempdir())
            for _ in range(1500):
                os.mkdir("d")
                os.chdir("d")
        """,
        find_isolation("process"),
        replace(STRICT, seconds=30),
    )
    harness.call("act")
    harness.close()
    assert list(scratch.iterdir()) == []


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_and_no_child_remains(isolation: Isolation, make: Make) -> None:
    harness = make(DAEMON, isolation)
    harness.call("fine", 1)
    harness.close()
    before = descriptors()
    for _ in range(3):
        harness.call("fine", 1)
        with pytest.raises(HarnessFault):
            harness.call("missing")
        harness.execute(["true"])
        harness.close()
    assert descriptors() == before
