"""A trial finds the candidate as its import left it, and leaves nothing behind."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from coevolve.executors.isolation import Harness, HarnessFault, Isolation, bubblewrap
from coevolve.executors.isolation.process_table import descendants
from coevolve.executors.isolation.sandbox import Sandbox
from coevolve.executors.isolation.system_paths import system_paths
from coevolve.search.trials import Blame
from tests.effort import effort

from .conftest import STRICT, Make, way_to_python

KEEPER = """
import os, random, signal, subprocess, sys, tempfile, threading, time

seen = []
random.seed(7)

def keep(value):
    place = os.path.join(tempfile.gettempdir(), "deep", "er")
    files = sorted(os.listdir(tempfile.gettempdir()))
    os.makedirs(place, exist_ok=True)
    open(os.path.join(place, "file"), "w").write("kept")
    os.chmod(os.path.dirname(place), 0o500)
    seen.append(value)
    os.environ["KEPT"] = str(value)
    os.chdir("/")
    return [list(seen), files, random.random()]

def write(path): open(path, "w").write("kept")

def find(top):
    found = [os.path.join(at, name) for at, names, _ in os.walk(top) for name in names]
    files = [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]
    return sorted(os.path.relpath(path, top) for path in found + files)

def share():
    if os.path.isdir("/dev/shm"):
        open("/dev/shm/kept", "w").write("kept")
    return os.path.exists("/dev/shm/kept")

def write_here():
    here = os.path.dirname(__file__)
    names = sorted(os.listdir(here))
    try: open(os.path.join(here, "cache.json"), "w").write("{}")
    except OSError: pass
    return names

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(0.2)
            hoard = bytearray(b"x") * (100 << 20)
            time.sleep(1000)
        os._exit(0)
    os.wait()
    for _ in range(3): subprocess.Popen(["sleep", "1000"])
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return os.getpid()

def hoard(fail):
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(0.2)
            kept = bytearray(b"x") * (60 << 20)
            time.sleep(1000)
    if fail: raise ValueError("failed")

def pid(): return os.getpid()

def runner(): return os.getppid()

def stop_runner(): os.kill(os.getppid(), signal.SIGSTOP)

def forge():
    import coevolve_host
    link = coevolve_host.ask.__self__._link
    link.send({"ended": 0, "clean": True})
    link.send({"id": 3, "answer": "forged"})

def die(): os.kill(os.getpid(), signal.SIGKILL)
"""


def sandbox_pids(harness: Harness) -> set[int]:
    """All processes of the harness's sandbox."""
    sandbox = harness._sandbox
    return set() if sandbox is None else set(descendants(sandbox._process.pid))


def kept_sandbox(harness: Harness) -> object:
    return harness._sandbox


@pytest.fixture
def folder_in_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder deep in /tmp that every sandbox shows, as if this Python were inside it."""
    shown = system_paths
    with TemporaryDirectory(dir="/tmp") as top:
        folder = Path(top, "project", "lib")
        folder.mkdir(parents=True)
        (folder.parent / "answers.txt").write_text("42")
        monkeypatch.setattr(
            bubblewrap, "system_paths", lambda *, network: [*shown(network=network), folder]
        )
        bubblewrap._system.cache_clear()
        yield folder
    bubblewrap._system.cache_clear()


def test_a_python_inside_tmp_shows_nothing_beside_it_and_keeps_the_sandbox(
    bwrap: Isolation, make: Make, folder_in_tmp: Path
) -> None:
    harness = make(KEEPER, bwrap)
    names = harness.call("keep", 1)[1]
    sandbox = kept_sandbox(harness)
    top = folder_in_tmp.parents[1]
    assert set(names) == {top.name, *way_to_python(Path("/tmp"))}
    assert harness.call("find", str(top)) == ["project", "project/lib"]
    for place in (top, folder_in_tmp.parent, folder_in_tmp):
        with pytest.raises(HarnessFault, match=r"Read-only file system|Permission denied"):
            harness.call("write", str(place / "kept"))
    harness.end_trial()
    assert harness.call("keep", 1)[1] == names
    assert kept_sandbox(harness) is sandbox


def test_globals_and_files_do_not_reach_the_next_trial(isolation: Isolation, make: Make) -> None:
    harness = make(KEEPER, isolation)
    first = harness.call("keep", 1)
    sandbox = kept_sandbox(harness)
    here = way_to_python(Path("/tmp")) if isolation.name == "bwrap" else set()
    assert first[:2] == [[1], sorted(here)]
    assert harness.call("keep", 2)[:2] == [[1, 2], sorted({*here, "deep"})]
    for _ in range(3):
        harness.end_trial()
        assert harness.call("keep", 1) == first
    assert kept_sandbox(harness) is sandbox
    if isolation.name == "bwrap":  # the memory of a plain process's machine is not private
        harness.call("share")
        harness.end_trial()
        harness.call("pid")
        assert kept_sandbox(harness) is sandbox


def test_changed_files_of_the_candidate_do_not_reach_the_next_trial(
    isolation: Isolation, make: Make
) -> None:
    harness = make(KEEPER, isolation)
    for _ in range(3):
        assert harness.call("write_here") == ["harness.py"]
        harness.end_trial()


def test_only_the_runner_is_alive_between_trials(isolation: Isolation, make: Make) -> None:
    harness = make(KEEPER, isolation, replace(STRICT, memory_mb=300))
    harness.call("pid")
    harness.end_trial()
    sandbox, idle = kept_sandbox(harness), sandbox_pids(harness)
    for _ in range(3):
        harness.call("daemon")
        during = sandbox_pids(harness)
        assert len(during) >= len(idle) + 4
        harness.end_trial()
        assert sandbox_pids(harness) == idle
        assert not [pid for pid in during - idle if Path(f"/proc/{pid}").exists()]
    assert kept_sandbox(harness) is sandbox


@pytest.mark.parametrize("function", ["stop_runner", "forge"])
def test_a_candidate_that_attacks_the_runner_gets_a_new_sandbox(
    isolation: Isolation, make: Make, function: str
) -> None:
    harness = make(KEEPER, isolation)
    harness.call("pid")
    sandbox = kept_sandbox(harness)
    if function == "forge":
        with pytest.raises(HarnessFault):
            harness.call(function)
    else:
        harness.call(function)
    harness.end_trial()
    assert harness.call("keep", 1)[0] == [1]
    assert kept_sandbox(harness) is not sandbox


def test_messages_left_over_do_not_reach_the_next_trial(isolation: Isolation, make: Make) -> None:
    code = (
        KEEPER
        + "\nimport coevolve_host\ndef late():\n"
        + """
    link = coevolve_host.ask.__self__._link
    link.send({"id": 1, "answer": "first"})
    link.send({"ended": 0, "clean": True})
    link.send({"id": 2, "answer": "forged"})
"""
    )
    harness = make(code, isolation)
    assert harness.call("late") == "first"
    harness.end_trial()
    assert harness.call("keep", 1)[0] == [1]


SEEN = """
seen = []
def see():
    seen.append(1)
    return seen
"""
LEFT = {
    "a thread": "import threading\nthreading.Timer(99, print).start()",
    "a process": "import subprocess\nsubprocess.Popen(['sleep', '99'])",
    "an open file": "import tempfile\nshared = tempfile.TemporaryFile()",
    "a file": "import os, tempfile\nopen(os.path.join(tempfile.gettempdir(), 'f'), 'w').close()",
    "shared memory": "import mmap\nshared = mmap.mmap(-1, 4096)",
    "no exit status": "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)",
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT)
def test_an_import_that_leaves_something_is_repeated_for_every_trial(
    what: str, isolation: Isolation, make: Make
) -> None:
    harness = make(
        f"{LEFT[what]}\nseen = []\ndef see():\n    seen.append(1)\n    return seen", isolation
    )
    for _ in range(2):
        assert harness.call("see") == [1]
        assert harness.call("see") == [1, 1]
        sandbox = kept_sandbox(harness)
        harness.end_trial()
        assert kept_sandbox(harness) is None
        assert sandbox is not None


def test_a_generator_that_was_not_seeded_differs_between_trials(
    isolation: Isolation, make: Make
) -> None:
    code = (
        "import random, numpy\ndef draw(): return [random.random(), float(numpy.random.random())]"
    )
    harness = make(code, isolation, replace(STRICT, memory_mb=2048, seconds=30))
    drawn = []
    for _ in range(3):
        drawn.append(harness.call("draw"))
        harness.end_trial()
    assert len({x for x, _ in drawn}) == len({y for _, y in drawn}) == 3


def test_a_generator_that_the_import_seeded_is_the_same_in_every_trial(
    isolation: Isolation, make: Make
) -> None:
    code = """
    import random, numpy
    random.seed(1); numpy.random.seed(1)
    def draw(): return [random.random(), float(numpy.random.random())]
    """
    harness = make(code, isolation, replace(STRICT, memory_mb=2048, seconds=30))
    drawn = []
    for _ in range(3):
        drawn.append(harness.call("draw"))
        harness.end_trial()
    assert drawn[0] == drawn[1] == drawn[2]


def test_without_processes_to_spare_the_runner_serves_the_trial(
    bwrap: Isolation, make: Make
) -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))"
    harness = make(f"{code}\n{SEEN}", bwrap)
    for _ in range(2):
        assert [harness.call("see"), harness.call("see")] == [[1], [1, 1]]
        harness.end_trial()


def test_a_sandbox_that_was_killed_is_doubtful(isolation: Isolation, make: Make) -> None:
    harness = make(KEEPER, isolation)
    harness.call("pid")
    for pid in sandbox_pids(harness):
        with contextlib.suppress(ProcessLookupError):  # it may end with the one before
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(HarnessFault, match="SIGKILL") as caught:
        harness.call("pid")
    assert caught.value.fault.blame is Blame.DOUBTFUL
    with pytest.raises(HarnessFault, match="SIGKILL") as caught:
        harness.call("die")
    assert caught.value.fault.blame is Blame.DOUBTFUL
    assert harness.call("keep", 1)[0] == [1]


def test_a_program_that_was_killed_is_doubtful(isolation: Isolation, make: Make) -> None:
    with pytest.raises(HarnessFault, match="SIGKILL") as caught:
        make("", isolation).execute(["sh", "-c", "kill -9 $$"])
    assert caught.value.fault.blame is Blame.DOUBTFUL


EXITS = {
    "exits": ("import os\nos._exit(0)", "exit"),
    "exits, not its child": ("import os, time\nif os.fork(): os._exit(0)\ntime.sleep(99)", "exit"),
    "forks": (
        "import os, time\nfor _ in range(14):\n    if os.fork() == 0: time.sleep(99)\n"
        "time.sleep(99)",
        "process-limit",
    ),
    "prints": ("import os\nos.write(1, b'x' * (3 << 20))", "output-limit"),
}


@pytest.mark.parametrize("frame", ["", "x = 1"])
@pytest.mark.parametrize("name", EXITS)
def test_what_an_import_does_at_once_is_the_candidates_fault(
    name: str, frame: str, isolation: Isolation, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the host reads the messages of the runner only after it has happened."""
    code, kind = EXITS[name]
    receive = Sandbox.receive

    def late(*args: Any) -> Any:
        time.sleep(0.2)
        return receive(*args)

    folder = make(code, isolation).folder
    with Harness(folder, isolation=isolation, limits=STRICT, frame=frame) as harness:
        for number in range(effort(2, 50)):
            with monkeypatch.context() as patch:
                if number % 2:
                    patch.setattr(Sandbox, "receive", late)
                with pytest.raises(HarnessFault) as caught:
                    harness.call("act")
            assert (caught.value.kind, caught.value.fault.blame) == (kind, Blame.CANDIDATE)


@pytest.mark.parametrize(("fail", "pause"), [(False, 0.2), (True, 0.2), (False, 0.01)])
def test_children_that_allocate_between_two_calls_of_a_trial_are_ended(
    isolation: Isolation, make: Make, fail: bool, pause: float
) -> None:
    harness = make(KEEPER, isolation, replace(STRICT, memory_mb=150))
    with pytest.raises(HarnessFault, match="ValueError") if fail else contextlib.nullcontext():
        harness.call("hoard", fail)

    def call_often() -> None:
        for _ in range(int(20 / pause)):  # each call is too short for a check
            time.sleep(pause)
            harness.call("pid")

    with pytest.raises(HarnessFault, match="MB of memory") as caught:
        call_often()
    assert caught.value.kind == "memory-limit"
    assert harness.call("pid")
