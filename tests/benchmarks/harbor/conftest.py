"""Environments of the tests share a cache: building one takes a second."""

from pathlib import Path

import pytest


@pytest.fixture
def environment_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A cache folder for roots and layers, used by all tests of this process."""
    folder = tmp_path_factory.getbasetemp() / "harbor-cache"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("COEVOLVE_CACHE", str(folder))
    return folder
