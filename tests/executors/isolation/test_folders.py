"""Temporary folders of executors."""

import subprocess
import sys
from pathlib import Path

from coevolve.executors.isolation.folders import Scratch


def test_a_folder_is_gone_after_removal(tmp_path: Path) -> None:
    scratch = Scratch.make(tmp_path)
    (scratch.folder / "file").write_text("x")
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_and_what_a_living_one_holds_is_not(
    tmp_path: Path,
) -> None:
    code = (
        "import os, sys; from pathlib import Path; "
        "from coevolve.executors.isolation.folders import Scratch;"
        "Scratch.make(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    held = Scratch.make(tmp_path)
    other = Scratch.make(tmp_path)
    assert set(tmp_path.iterdir()) == {held.folder, other.folder}
    held.remove()
    other.remove()
