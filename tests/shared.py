"""Folders that all processes of a test run share: the first one makes them, the others wait."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made once in a test run, also with pytest-xdist; tests only read it.

    Args:
        factory: The fixture `tmp_path_factory`.
        name: The folder's name, which no other test uses.
        make: Fills the folder, which exists and is empty.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, made = shared / name, shared / f"{name}-made"
    with (shared / f"{name}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that failed
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
