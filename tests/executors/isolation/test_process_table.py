"""What the watch reads of a sandbox's processes."""

import subprocess
import sys

import pytest

from coevolve.executors.isolation import Isolation
from coevolve.executors.isolation.process_table import children, private_files
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
