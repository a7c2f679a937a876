"""One writer at a time, and its end, however it comes, makes way for the next."""

import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from coevolve.errors import OwnedError
from coevolve.store import RunStore, owner
from tests.store.helpers import noted, python

HOLD = """
import sys
from pathlib import Path
from coevolve.store import RunStore
run = RunStore.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
run.close()
"""

WITH_CHILD = """
import os, subprocess, sys, time
from pathlib import Path
from coevolve.store import RunStore
run = RunStore.open(Path(sys.argv[1]))
if sys.argv[2] == "fork":
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
else:
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, close_fds=False).pid
print(child, flush=True)
time.sleep(60)
"""


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    assert owner(tmp_path) is None
    with python(HOLD, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(OwnedError) as refused:
            RunStore.open(tmp_path)
        told = str(refused.value)
        assert f"process {process.pid} on {socket.gethostname()} since 2" in told
        held = owner(tmp_path)
        assert held is not None
        assert held.pid == process.pid
        with RunStore.read(tmp_path) as reader:
            assert reader.count == 0
        process.stdin.close()
        assert process.wait(30) == 0
    assert owner(tmp_path) is None
    RunStore.open(tmp_path).close()


def test_two_writers_in_one_process_are_refused_too(tmp_path: Path) -> None:
    with RunStore.create(tmp_path) as run:
        for opener in (RunStore.open, RunStore.create):
            with pytest.raises(OwnedError, match=f"process {os.getpid()} on"):
                opener(tmp_path)
        run.append(noted("still good"))


def test_a_killed_writer_holds_nothing(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    with python(HOLD, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.wait(30)
        assert json.loads((tmp_path / "run.lock").read_text())["pid"] == process.pid
        assert owner(tmp_path) is None
        with RunStore.open(tmp_path) as run:
            run.append(noted("mine"))


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_children_of_a_killed_writer_hold_nothing(tmp_path: Path, way: str) -> None:
    RunStore.create(tmp_path).close()
    with python(WITH_CHILD, tmp_path, way) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            process.kill()
            process.wait(30)
            os.kill(child, 0)
            RunStore.open(tmp_path).close()
        finally:
            os.kill(child, 9)


def test_the_contents_of_the_lock_file_do_not_matter(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    for text in ("", "{", '{"pid": 1}', '{"other": 1}', "[1]", "x" * 10_000):
        (tmp_path / "run.lock").write_text(text)
        assert owner(tmp_path) is None
        with RunStore.open(tmp_path):
            (tmp_path / "run.lock").write_text(text)
            with pytest.raises(OwnedError, match="process"):
                RunStore.open(tmp_path)


def test_the_lock_says_what_runs(tmp_path: Path) -> None:
    with RunStore.create(tmp_path):
        held = owner(tmp_path)
        assert held is not None
        assert Path(sys.argv[0]).name in held.command
        assert held.since.startswith(time.strftime("%Y", time.gmtime()))


def test_a_failed_opening_gives_the_lock_back(tmp_path: Path) -> None:
    RunStore.create(tmp_path).close()
    (tmp_path / "run.db").write_bytes(b"nonsense")
    with pytest.raises(Exception, match="damaged"):
        RunStore.open(tmp_path)
    assert owner(tmp_path) is None
