"""Which isolation is found, and the message where none works."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.errors import InputError, StopRun
from coevolve.executors.isolation import Isolation, Limits, PlainProcess, find_isolation
from coevolve.executors.isolation import detection as finding
from coevolve.executors.isolation.launch import unused_uid
from coevolve.executors.isolation.system_paths import site_packages, system_paths
from coevolve.formatting import one_line


@pytest.fixture
def fresh() -> Iterator[None]:
    finding._bubblewrap.cache_clear()
    yield
    finding._bubblewrap.cache_clear()


def test_auto_is_bwrap_where_it_works(bwrap: Isolation) -> None:
    assert find_isolation("auto").name == "bwrap"


@pytest.mark.usefixtures("fresh")
def test_without_bwrap_auto_is_a_process_and_bwrap_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert isinstance(find_isolation("auto"), PlainProcess)
    with pytest.raises(StopRun, match="install it"):
        find_isolation("bwrap")


@pytest.mark.usefixtures("fresh")
def test_a_bwrap_that_fails_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert isinstance(find_isolation("auto"), PlainProcess)
    with pytest.raises(StopRun, match="No permissions to create new namespace"):
        find_isolation("bwrap")


def test_an_unknown_isolation_is_named() -> None:
    with pytest.raises(InputError, match="Did you mean 'process'"):
        find_isolation("proces")


def test_nothing_of_the_system_is_a_home_or_a_project() -> None:
    paths = system_paths(network=True)
    package = Path(__file__).parents[3]
    for path in paths:
        assert not package.is_relative_to(path), path
        assert not Path.home().is_relative_to(path), path
        assert path not in (Path("/"), Path("/usr"), Path("/etc"), Path("/usr/local"))
    for site in site_packages():
        assert any(Path(site).is_relative_to(path) for path in paths)


def test_users_of_sandboxes_differ_and_exist() -> None:
    uids = [unused_uid(slot) for slot in range(8)]
    if uids[0] is None:
        pytest.skip("this user namespace has no users to spare")
    assert len(set(uids)) == 8


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "60", True, None])
def test_a_limit_is_a_positive_number(value: object) -> None:
    with pytest.raises(InputError, match="seconds must be a positive number"):
        Limits(seconds=value)  # type: ignore[arg-type]


def test_what_a_candidate_says_is_one_printable_line() -> None:
    shown = one_line("a\n\tb \x1b[2J\x00\u202e\ud800" + "x" * 10_000)
    assert shown.isprintable()
    assert shown.startswith("a b \\x1b[2J\\x00\\u202e\\ud800xxx")
    assert len(shown) == 500
