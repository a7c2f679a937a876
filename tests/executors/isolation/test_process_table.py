"""What the watch reads of a sandbox's processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coevolve.executors.isolation import Isolation
from coevolve.executors.isolation.launch import Launch
from coevolve.executors.isolation.process_table import _belongs, children, private_files
from tests.executors.projects import until

from .conftest import Make

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_files_of_this_machine_are_not_those_of_a_sandbox_that_is_starting() -> None:
    command = ["sh", "-c", "sleep 600 & wait"]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            assert until(lambda: bool(children(process.pid)))
            assert private_files(process.pid) == 0
        finally:
            for pid in (*children(process.pid), process.pid):
                subprocess.run(["kill", "-9", str(pid)], check=True)


def test_a_process_is_found_by_its_user_whatever_its_name() -> None:
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, {name!r}); print(); input()"
    for name in (b"\xff\xfe", b"Uid:\t4242\t"):
        command = [sys.executable, "-c", rename.format(name=name)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for uid, found in ((os.getuid(), True), (4242, False)):
                launch = Launch(argv=(), env={}, cwd=Path(), uid=uid)
                assert _belongs(launch, process.pid) is found
            process.kill()


def test_files_of_a_sandbox_are_counted(bwrap: Isolation, make: Make) -> None:
    harness = make(
        """
        def act():
            for name in range(300):
                open(f"/tmp/{name}", "w").close()
        """,
        bwrap,
    )
    harness.call("act")
    assert harness._sandbox is not None
    assert 300 <= private_files(harness._sandbox._process.pid) < 400
