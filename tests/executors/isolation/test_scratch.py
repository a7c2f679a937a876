"""Scratch folders of processes that start at the same time."""

import subprocess
import sys
from pathlib import Path

from tests.effort import effort

MAKE = """
import sys
from pathlib import Path
from coevolve.executors.isolation.folders import Scratch
for _ in range(int(sys.argv[2])):
    scratch = Scratch.make(Path(sys.argv[1]))
    (scratch.folder / "file").write_text("mine")
    assert (scratch.folder / "file").exists()
    scratch.remove()
"""


def test_processes_that_start_at_once_keep_their_folders(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKE, str(tmp_path), str(effort(300, 2000))]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
