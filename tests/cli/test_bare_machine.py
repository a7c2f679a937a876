"""The commands as root, without bubblewrap, with files that no other user can read."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.cli import demo_command
from coevolve.executors.isolation import detection
from coevolve.executors.isolation.plain_process import PERMISSION
from coevolve.runs.config import read_config
from tests.cli.projects import coevolve, write_doubling

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can run candidates as root")


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of such a machine."""
    private = tmp_path / "private"
    private.mkdir(0o700)
    left = {name: value for name, value in os.environ.items() if name != PERMISSION}
    return {**left, "PATH": "/nowhere", "TMPDIR": str(private)}


def small(folder: Path) -> Path:
    path = write_doubling(folder)
    path.write_text(path.read_text().replace("rounds = 3", "rounds = 1"))
    return path


def test_a_run_that_would_be_root_s_is_refused_and_the_advice_works(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    path = small(tmp_path)
    for kind in ("auto", "process"):
        text = path.read_text().replace('kind = "process"', f'kind = "{kind}"')
        path.with_name(f"{kind}.toml").write_text(text.replace("doubling", kind))
        done = coevolve("run", f"{kind}.toml", cwd=tmp_path, env=bare)
        assert done.returncode == 2
        assert "would run candidates as root, because other users cannot read /" in done.stderr
        assert "apt install bubblewrap" in done.stderr
        done = coevolve("doctor", f"{kind}.toml", cwd=tmp_path, env=bare)
        assert done.returncode == 1
        assert "would run candidates as root" in " ".join(done.stdout.split())

    assert not (tmp_path / "runs" / "auto").exists()
    done = coevolve("run", "auto.toml", cwd=tmp_path, env={**bare, PERMISSION: "1"})
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert first.endswith("isolation process-as-root")
    assert "warning: candidates run as root" in second
    assert second.endswith("apt install bubblewrap")


def test_a_project_that_allows_it_by_name_is_sound(tmp_path: Path, bare: dict[str, str]) -> None:
    path = small(tmp_path)
    path.write_text(path.read_text().replace('"process"', '"process-as-root"'))
    done = coevolve("doctor", path, env=bare)
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert "candidates run as root because isolation.kind is 'process-as-root'" in said
    assert "It runs as root and can do anything on this machine." in said


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, bare: dict[str, str]) -> Iterator[None]:
    """The same for this process."""
    monkeypatch.delenv(PERMISSION)
    monkeypatch.setenv("PATH", bare["PATH"])
    monkeypatch.setattr(tempfile, "tempdir", bare["TMPDIR"])
    detection._bubblewrap.cache_clear()
    yield
    detection._bubblewrap.cache_clear()


@pytest.mark.usefixtures("here")
def test_the_demo_allows_it_for_its_own_candidates(tmp_path: Path) -> None:
    file = demo_command._project(tmp_path / "demo")
    assert read_config(file).isolation.kind == "process-as-root"


def test_the_demo_is_confined_where_that_works(tmp_path: Path) -> None:
    file = demo_command._project(tmp_path / "demo")
    assert read_config(file).isolation.kind == "auto"
