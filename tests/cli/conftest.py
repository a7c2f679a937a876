from pathlib import Path

import pytest

from tests.cli.projects import coevolve, write_doubling


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project whose run has ended; tests only read it."""
    folder = tmp_path_factory.mktemp("doubling")
    done = coevolve("run", write_doubling(folder), "--quiet")
    assert done.returncode == 0, done.stderr
    return folder
