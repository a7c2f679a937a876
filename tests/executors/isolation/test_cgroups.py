"""Control groups: where they are used, and what they limit."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation, Limits, Program, cgroups
from tests.executors.isolation.conftest import Make

needs_groups = pytest.mark.skipif(
    bool(cgroups.why_no_groups()), reason=f"no control groups: {cgroups.why_no_groups()}"
)
SOCKETS = """
import os, socket, time

def fill():
    kept = [end for _ in range(100) for end in socket.socketpair()]
    for end in kept:
        end.setblocking(False)
        try:
            while True:
                end.send(bytes(1 << 15))
        except BlockingIOError:
            pass
    return kept

def hoard(children):
    for _ in range(children):
        if os.fork() == 0:
            kept = fill()
            time.sleep(60)
    time.sleep(60)

def count():
    return len(fill())

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ.clear()
            time.sleep(600)
        os._exit(0)
    os.wait()
"""
LIMITS = Limits(seconds=30, memory_mb=300, processes=32, file_mb=8)


@needs_groups
def test_socket_buffers_of_many_processes_are_memory(make: Make, isolation: Isolation) -> None:
    harness = make(SOCKETS, isolation, LIMITS)
    assert harness.call("count") == 200
    with pytest.raises(HarnessFault, match="more than 300 MB of memory, that of the kernel") as f:
        harness.call("hoard", 25)
    assert f.value.kind == "memory-limit"
    assert harness.call("count") == 200


@needs_groups
def test_a_group_ends_with_its_sandbox_and_takes_all_processes_along(
    make: Make, isolation: Isolation
) -> None:
    parent = cgroups.parent_group()
    assert isinstance(parent, Path)
    harness = make(SOCKETS, isolation, LIMITS)
    harness.call("daemon")
    [group] = parent.glob("coevolve-sandbox-*")
    pids = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    assert len(pids) > 1
    harness.close()
    assert not list(parent.glob("coevolve-sandbox-*"))
    assert not any(Path("/proc", str(pid), "root").exists() for pid in pids)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Makes a file system of control groups, in which this process is in the group "ours"."""
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_OWN", tmp_path / "own")
    (tmp_path / "own").write_text("0::/ours\n")
    (tmp_path / "cgroup.controllers").touch()

    def make(controllers: str = "cpu memory pids", enabled: str = "", others: str = "") -> Path:
        group = tmp_path / "ours"
        group.mkdir()
        (group / "cgroup.type").write_text("domain\n")
        (group / "cgroup.controllers").write_text(controllers)
        (group / "cgroup.subtree_control").write_text(enabled)
        (group / "cgroup.procs").write_text(f"{os.getpid()}\n{others}")
        return group

    cgroups.parent_group.cache_clear()
    yield make
    cgroups.parent_group.cache_clear()


def test_a_group_of_our_own_is_divided(fresh: Callable[..., Path]) -> None:
    group = fresh()
    assert cgroups.why_no_groups() == ""
    assert (group / "coevolve-engine" / "cgroup.procs").read_text() == str(os.getpid())
    assert (group / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_worker_uses_the_group_that_its_engine_divided(fresh: Callable[..., Path]) -> None:
    group = fresh(enabled="memory pids", others="1\n")
    (group.parent / "own").write_text("0::/ours/coevolve-engine\n")
    stale = group / "coevolve-sandbox-4194999-0"
    stale.mkdir()
    assert cgroups.parent_group() == group
    assert not stale.exists()


def test_a_shared_group_is_left_alone(fresh: Callable[..., Path]) -> None:
    group = fresh(others="1\n")
    assert "is shared with process 1" in cgroups.why_no_groups()
    assert not (group / "coevolve-engine").exists()
    assert (group / "cgroup.subtree_control").read_text() == ""


def test_a_group_without_its_controllers_is_not_used(fresh: Callable[..., Path]) -> None:
    fresh(controllers="cpu pids")
    assert cgroups.why_no_groups().endswith("ours has no controller for memory")


@pytest.mark.parametrize("own", ["0::/../other\n", "4:memory:/\n"])
def test_a_group_that_is_not_visible_is_not_used(fresh: Callable[..., Path], own: str) -> None:
    (fresh().parent / "own").write_text(own)
    assert "not visible" in cgroups.why_no_groups()


def test_a_system_with_other_groups_has_none(fresh: Callable[..., Path]) -> None:
    (fresh().parent / "cgroup.controllers").unlink()
    assert "version 2" in cgroups.why_no_groups()


def test_a_sandbox_without_a_group_starts_as_before(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "parent_group", lambda: "none")
    launch = isolation.launch(Program(folder=tmp_path, limits=LIMITS))
    launch.started()
    launch.close()
    assert launch.group is None
    assert "sh" not in launch.argv[0].split("/")
