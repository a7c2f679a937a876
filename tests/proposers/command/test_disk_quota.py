"""How much of a disk an agent may take."""

import os
import re
from pathlib import Path

import pytest

from coevolve.proposers.command import agent_process as recording
from coevolve.proposers.command import agent_process as room
from coevolve.proposers.command import command_proposer as judging
from coevolve.proposers.command.agent_process import Amount, Room
from coevolve.proposers.workspace import Workspace

ROOT = Path(__file__).parents[3]


class Disks:
    """Disks that say what a test tells them, the same for all folders unless one is named."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = Amount(bytes=100e9, files=10e6)
        self.of: dict[Path, Amount] = {}
        monkeypatch.setattr(room, "free", lambda place: self.of.get(place, self.left))


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
    monkeypatch.setattr(room, "MOST_BYTES", 100_000)
    monkeypatch.setattr(room, "MOST_FILES", 50)


def test_what_others_write_to_the_same_disk_is_not_the_agent_s(
    disks: Disks, workspace: Workspace
) -> None:
    watched = Room(workspace)
    disks.left = Amount(bytes=50e9, files=1e6)
    assert watched.exceeded() == ""


@pytest.mark.parametrize("place", ["scratch/new", "new", "proposals/new"])
def test_what_it_wrote_is_bounded(
    place: str, disks: Disks, workspace: Workspace, small: None
) -> None:
    watched = Room(workspace)
    file = workspace.folder / place
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(os.urandom(200_000))
    assert watched.exceeded() == ""  # while the disk has not noticed
    disks.left = Amount(bytes=100e9 - 200_000, files=10e6)
    assert watched.exceeded() == "it had written more than 0.0001 GB"


def test_the_number_of_its_files_is_bounded(
    disks: Disks, workspace: Workspace, small: None
) -> None:
    watched = Room(workspace)
    (workspace.folder / "scratch").mkdir()
    for number in range(60):
        (workspace.folder / "scratch" / str(number)).mkdir()
    disks.left = Amount(bytes=100e9, files=10e6 - 60)
    assert watched.exceeded() == "it had made more than 50 files"


def test_its_private_home_counts(
    disks: Disks, workspace: Workspace, small: None, home: Path
) -> None:
    watched = Room(workspace)
    watched.add(home)
    (home / "new").write_bytes(os.urandom(200_000))
    disks.left = Amount(bytes=100e9 - 200_000, files=10e6)
    assert "0.0001 GB" in watched.exceeded()


@pytest.mark.skipif(
    not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == Path("/tmp").stat().st_dev,
    reason="there is only one disk",
)
def test_the_disk_of_the_private_home_is_watched_too(disks: Disks, workspace: Workspace) -> None:
    watched = Room(workspace)
    watched.add(Path("/dev/shm"))
    disks.of[Path("/dev/shm")] = Amount(bytes=10.0, files=10e6)
    assert watched.exceeded() == "the disk is nearly full"


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
    watched = Room(workspace)
    disks.left = left
    assert watched.exceeded() == ("the disk is nearly full" if full else "")


@pytest.mark.skipif(os.getuid() == 0, reason="root can look everywhere")
def test_what_is_hidden_counts_as_too_much(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    assert room.taken([str(tmp_path)]).bytes == float("inf")
    (tmp_path / "locked").chmod(0o700)


def test_links_and_deep_trees_are_measured(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    os.makedirs(tree / "/".join(["d"] * 500))  # noqa: PTH103 - pathlib recurses
    (tree / "loop").symlink_to(tree)
    (tree / "system").symlink_to("/usr")
    found = room.taken([str(tree)])
    assert found.files == 503
    assert found.bytes < 50_000_000


def test_a_disk_says_what_is_free(tmp_path: Path) -> None:
    assert room.free(tmp_path).bytes > 0
    assert room.free(tmp_path).files > 0


def test_a_workspace_that_was_removed_takes_no_room(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "proposals").mkdir(parents=True)
    folder = tmp_path / "workspace"
    watched = Room(Workspace(folder=folder, proposals=folder / "proposals", prompt=""))
    (folder / "proposals").rmdir()
    folder.rmdir()
    assert watched.exceeded() == ""


def test_the_page_has_these_numbers() -> None:
    page = re.sub(r"\s+", " ", (ROOT / "docs" / "proposers.md").read_text())
    assert f"{room.MOST_BYTES / room.GIGABYTE:g} GB or {room.MOST_FILES:,} files" in page
    assert f"under {room.LEAST_BYTES / room.GIGABYTE:g} GB or {room.LEAST_FILES:,} files" in page
    assert f"first {recording.MOST_TRANSCRIPT // recording.MEGABYTE // 2} MB" in page
    assert f"after {recording.MOST_LOG // recording.MEGABYTE} MB" in page
    assert f"at most {judging._MOST_REPORT // recording.MEGABYTE} MB" in page
