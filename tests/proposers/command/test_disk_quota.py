"""The disk quota of an agent."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from coevolve.proposers.command import agent_process as process
from coevolve.proposers.command import command_proposer
from coevolve.proposers.command.agent_process import Amount, DiskQuota
from coevolve.proposers.workspace import Workspace

ROOT = Path(__file__).parents[3]


class Disks:
    """Disks with the free space that a test sets, the same for all folders by default."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = Amount(bytes=100e9, files=10e6)
        self.of: dict[Path, Amount] = {}
        monkeypatch.setattr(process, "free", lambda place: self.of.get(place, self.left))


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Disks:
    return Disks(monkeypatch)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "workspace"
    for name in ("candidates", "proposals"):
        (folder / name).mkdir(parents=True)
    (folder / "candidates" / "big").write_bytes(b"x" * 200_000)
    return Workspace(folder=folder, proposals=folder / "proposals", prompt="")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_BYTES", 100_000)
    monkeypatch.setattr(process, "MOST_FILES", 50)


def test_what_others_write_to_the_same_disk_is_not_the_agent_s(
    disks: Disks, workspace: Workspace
) -> None:
    quota = DiskQuota(workspace)
    disks.left = Amount(bytes=50e9, files=1e6)
    assert quota.exceeded() == ""


@pytest.mark.parametrize("place", ["scratch/new", "new", "proposals/new"])
def test_what_it_wrote_is_bounded(
    place: str, disks: Disks, workspace: Workspace, small: None
) -> None:
    quota = DiskQuota(workspace)
    file = workspace.folder / place
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(os.urandom(200_000))
    assert quota.exceeded() == ""  # while the disk has not noticed
    disks.left = Amount(bytes=100e9 - 200_000, files=10e6)
    assert quota.exceeded() == "it wrote more than 0.0001 GB"


def test_the_number_of_its_files_is_bounded(
    disks: Disks, workspace: Workspace, small: None
) -> None:
    quota = DiskQuota(workspace)
    (workspace.folder / "scratch").mkdir()
    for number in range(60):
        (workspace.folder / "scratch" / str(number)).mkdir()
    disks.left = Amount(bytes=100e9, files=10e6 - 60)
    assert quota.exceeded() == "it created more than 50 files"


def test_its_private_home_counts(
    disks: Disks, workspace: Workspace, small: None, home: Path
) -> None:
    quota = DiskQuota(workspace)
    quota.add(home)
    (home / "new").write_bytes(os.urandom(200_000))
    disks.left = Amount(bytes=100e9 - 200_000, files=10e6)
    assert "0.0001 GB" in quota.exceeded()


@pytest.mark.skipif(
    not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == Path("/tmp").stat().st_dev,
    reason="there is only one disk",
)
def test_the_disk_of_the_private_home_is_watched_too(disks: Disks, workspace: Workspace) -> None:
    quota = DiskQuota(workspace)
    quota.add(Path("/dev/shm"))
    disks.of[Path("/dev/shm")] = Amount(bytes=10.0, files=10e6)
    assert quota.exceeded() == "the disk is nearly full"


@pytest.mark.parametrize(
    ("began", "left", "full"),
    [
        (Amount(bytes=100e9, files=10e6), Amount(bytes=0.9e9, files=10e6), True),
        (Amount(bytes=100e9, files=10e6), Amount(bytes=99e9, files=1_000), True),
        (Amount(bytes=0.6e9, files=10e6), Amount(bytes=0.4e9, files=10e6), False),
        (Amount(bytes=0.6e9, files=10e6), Amount(bytes=0.2e9, files=10e6), True),
        (Amount(bytes=100e9, files=float("inf")), Amount(bytes=99e9, files=float("inf")), False),
    ],
)
def test_the_last_of_a_disk_is_left_alone(
    began: Amount, left: Amount, full: bool, disks: Disks, workspace: Workspace
) -> None:
    disks.left = began
    quota = DiskQuota(workspace)
    disks.left = left
    assert quota.exceeded() == ("the disk is nearly full" if full else "")


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Root can look everywhere, so root becomes another user for the test."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("ordinary_user")
def test_what_is_hidden_counts_as_too_much() -> None:
    with TemporaryDirectory() as name:
        assert process.disk_use([name]).bytes < float("inf")
        locked = Path(name, "locked")
        locked.mkdir(mode=0)
        assert process.disk_use([name]).bytes == float("inf")
        locked.chmod(0o700)


def test_links_and_deep_trees_are_measured(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    os.makedirs(tree / "/".join(["d"] * 500))  # noqa: PTH103 - pathlib recurses
    (tree / "loop").symlink_to(tree)
    (tree / "system").symlink_to("/usr")
    found = process.disk_use([str(tree)])
    assert found.files == 503
    assert found.bytes < 50_000_000


def test_a_disk_says_what_is_free(tmp_path: Path) -> None:
    assert process.free(tmp_path).bytes > 0
    assert process.free(tmp_path).files > 0


def test_a_workspace_that_was_removed_uses_no_disk(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "proposals").mkdir(parents=True)
    folder = tmp_path / "workspace"
    quota = DiskQuota(Workspace(folder=folder, proposals=folder / "proposals", prompt=""))
    (folder / "proposals").rmdir()
    folder.rmdir()
    assert quota.exceeded() == ""


def test_the_page_has_these_numbers() -> None:
    page = re.sub(r"\s+", " ", (ROOT / "docs" / "proposers.md").read_text())
    assert f"{process.MOST_BYTES / process.GIGABYTE:g} GB or {process.MOST_FILES:,} files" in page
    least = process.LEAST_BYTES / process.GIGABYTE
    assert f"below {least:g} GB or {process.LEAST_FILES:,} free files" in page
    assert f"first {process.MOST_TRANSCRIPT // process.MEGABYTE // 2} MB" in page
    assert f"after {process.MOST_LOG // process.MEGABYTE} MB" in page
    assert f"at most {command_proposer._MOST_REPORT // process.MEGABYTE} MB" in page
