"""Control groups of both versions, and what is said where there are none."""

from pathlib import Path

import pytest

from coevolve.benchmarks.harbor import namespace_limits, namespace_support
from coevolve.benchmarks.harbor.namespace_limits import (
    NamespaceLimits,
    control_groups,
    process_limits,
    why_no_limits,
)

LIMITS = NamespaceLimits(memory_mb=512, cpus=1.5, processes=99)


def test_groups_of_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    monkeypatch.setattr(namespace_limits, "group_parents", lambda: {"": tmp_path})
    [group] = control_groups("one", LIMITS)
    assert group["folder"] == str(tmp_path / "one")
    assert group["files"]["memory.max"] == str(512 << 20)
    assert group["files"]["pids.max"] == "99"
    assert group["files"]["cpu.max"] == "150000 100000"
    assert process_limits(LIMITS) == {}
    assert why_no_limits() == ""


def test_groups_of_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parents = {name: tmp_path / name for name in ("memory", "pids")}
    monkeypatch.setattr(namespace_limits, "group_parents", lambda: parents)
    files = {group["folder"]: group["files"] for group in control_groups("one", LIMITS)}
    assert files == {
        str(tmp_path / "pids/one"): {"pids.max": "99"},
        str(tmp_path / "memory/one"): {"memory.limit_in_bytes": str(512 << 20)},
    }
    assert process_limits(LIMITS) == {}
    assert "no limit on processors: " in why_no_limits()


def test_without_groups_processes_are_limited_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(namespace_limits, "group_parents", dict)
    assert control_groups("one", LIMITS) == []
    assert process_limits(LIMITS) == {"RLIMIT_NPROC": 99, "RLIMIT_DATA": 512 << 20}
    assert "no limit on memory, processes, processors: " in why_no_limits()


def test_an_ordinary_user_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    namespace_support.why_unavailable.cache_clear()
    try:
        assert "it needs root" in namespace_support.why_unavailable()
    finally:
        monkeypatch.undo()
        namespace_support.why_unavailable.cache_clear()
