"""No candidate runs as root unless that is allowed by name."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.errors import StopRun
from coevolve.executors.isolation import Limits, PlainProcess, Program, detection, find_isolation
from coevolve.executors.isolation import plain_process as module
from coevolve.executors.isolation.plain_process import AS_ROOT, PERMISSION
from tests.executors.isolation.conftest import Make

AS_WHOM = "import os\ndef user(): return os.getuid()"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can run candidates as root")


@pytest.fixture
def unpermitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PERMISSION)


@pytest.fixture
def bare(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unpermitted: None
) -> Iterator[pytest.MonkeyPatch]:
    """No bubblewrap, and a folder for temporary files that no other user can read."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    detection._bubblewrap.cache_clear()
    yield monkeypatch
    detection._bubblewrap.cache_clear()


@needs_root
@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("kind", ["auto", "process"])
def test_an_isolation_that_would_run_candidates_as_root_is_refused(kind: str) -> None:
    with pytest.raises(StopRun) as found:
        find_isolation(kind)
    for part in ("as root, because other users cannot read /", "apt install", AS_ROOT, PERMISSION):
        assert part in str(found.value)
    assert ("bubblewrap is not installed" in str(found.value)) == (kind == "auto")


@needs_root
@pytest.mark.usefixtures("bare")
def test_an_isolation_that_was_made_by_hand_starts_nothing_as_root(tmp_path: Path) -> None:
    with pytest.raises(StopRun, match="as root"):
        PlainProcess().launch(Program(folder=tmp_path, limits=Limits()))


@needs_root
def test_root_by_name_runs_as_root_and_says_so(bare: pytest.MonkeyPatch, make: Make) -> None:
    by_name = find_isolation(AS_ROOT)
    assert by_name.name == AS_ROOT
    assert by_name.exposes[0] == "It runs as root and can do anything on this machine."
    assert make(AS_WHOM, by_name).call("user") == 0
    bare.setenv(PERMISSION, "1")
    for kind in ("auto", "process"):
        assert find_isolation(kind).name == AS_ROOT


@pytest.mark.usefixtures("unpermitted")
def test_a_process_that_is_not_called_root_is_not_root(make: Make) -> None:
    try:
        isolation = find_isolation("process")
    except StopRun:
        pytest.skip("this is root, and other users cannot read this Python")
    assert isolation.name == find_isolation(AS_ROOT).name == "process"
    assert make(AS_WHOM, isolation).call("user") != 0


@pytest.mark.usefixtures("unpermitted")
def test_a_file_for_one_program_that_others_cannot_read_is_no_reason_to_run_it_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    monkeypatch.setattr("os.getuid", lambda: 0)
    monkeypatch.setattr(module, "unused_uid", lambda slot: 2_100_000_000)
    monkeypatch.setattr(module, "_reachable", lambda path: path != secret)
    assert PlainProcess().refusal() == ""
    program = Program(folder=tmp_path, limits=Limits(), readable=[secret])
    with pytest.raises(StopRun, match=f"cannot read {secret}.*readable by all users"):
        PlainProcess().launch(program)
