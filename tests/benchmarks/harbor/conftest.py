"""Environments of the tests share a cache: building one takes a second."""

from pathlib import Path

import pytest

from tests.benchmarks.harbor.trials import ENVIRONMENT

collect_ignore = [] if ENVIRONMENT == "docker" else ["test_docker_environment.py"]
"""Only `make test-docker` runs the tests of Harbor's Docker environment."""


@pytest.fixture
def environment_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A cache folder for roots and layers, used by all tests of this process."""
    folder = tmp_path_factory.getbasetemp() / "harbor-cache"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("COEVOLVE_CACHE", str(folder))
    return folder
