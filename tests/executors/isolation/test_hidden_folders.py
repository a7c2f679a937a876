"""Folders that are hidden although they are among installed packages."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coevolve
from coevolve.errors import StopRun
from coevolve.executors.isolation import Isolation, find_isolation
from coevolve.executors.isolation.system_paths import interpreter, masked, system_paths

from .conftest import Make

PARENT = """
import json, sys
from pathlib import Path
import coevolve
from coevolve.executors.isolation import Harness, Limits, find_isolation

candidate, project, *looked_at = map(Path, sys.argv[1:])
isolation = find_isolation("bwrap", hidden=[project])
with Harness(candidate, isolation=isolation, limits=Limits(seconds=60)) as harness:
    places = [Path(coevolve.__file__).parent, project, *looked_at]
    print(json.dumps([harness.call("names", str(place)) for place in places]))
"""

CANDIDATE = """
import os

def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return type(error).__name__
"""


def installed(tmp_path: Path) -> Path:
    """An environment into which this package is copied, as a wheel would be."""
    home = tmp_path / "environment"
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(home)]
    subprocess.run(command, check=True)
    (site,) = home.glob("lib/python*/site-packages")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(coevolve.__file__).parent, site / "coevolve", ignore=ignored)
    (site / "others.pth").write_text("\n".join(p for p in sys.path if p.endswith("-packages")))
    for folder in (tmp_path, home, home / "lib"):
        folder.chmod(0o755)
    return home


def test_an_installed_package_its_cache_and_the_project_are_empty_inside(
    bwrap: Isolation, tmp_path: Path
) -> None:
    home = installed(tmp_path)
    project, cache, other = (home / "lib" / name for name in ("project", "cache", "other"))
    for folder in (project, cache, other):
        folder.mkdir()
        (folder / "answers.json").write_text("[]")
    candidate = tmp_path / "candidate"
    candidate.mkdir()
    (candidate / "harness.py").write_text(CANDIDATE)
    done = subprocess.run(
        [home / "bin" / "python", "-c", PARENT, candidate, project, cache, other],
        env={**os.environ, "COEVOLVE_CACHE": str(cache)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == [[], [], [], ["answers.json"]]


def test_this_package_is_not_visible_here_either(bwrap: Isolation, make: Make) -> None:
    harness = make(CANDIDATE, bwrap)
    package = Path(coevolve.__file__).resolve().parent
    for folder in (package, package / "benchmarks"):
        assert harness.call("names", str(folder)) in ([], "FileNotFoundError")


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    """A folder that is visible inside, with two folders in it."""
    for name in ("project/runs", "other"):
        (tmp_path / "lib" / name).mkdir(parents=True)
    return tmp_path / "lib"


def test_only_what_is_visible_is_covered_up_and_each_once(shown: Path, tmp_path: Path) -> None:
    def covered(*hidden: Path) -> list[Path]:
        return masked([shown], hidden)

    project = shown / "project"
    assert covered(tmp_path, shown / "absent", tmp_path / "elsewhere") == []
    assert covered(project, project / "runs") == covered(project / "runs", project) == [project]


@pytest.mark.parametrize("variable", ["COEVOLVE_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_the_cache_is_covered_up_wherever_it_is(
    shown: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    below = {"COEVOLVE_CACHE": "", "XDG_CACHE_HOME": "coevolve", "HOME": ".cache/coevolve"}
    for name in below:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv(variable, str(shown / "other"))
    cache = shown / "other" / below[variable]
    cache.mkdir(parents=True, exist_ok=True)
    assert masked([shown]) == [cache]


def test_a_project_that_holds_this_python_is_refused() -> None:
    with pytest.raises(StopRun, match="cannot be hidden from candidates"):
        masked([interpreter().parent], [interpreter().parent])


def test_a_folder_around_this_python_is_not_hidden() -> None:
    assert Path(sys.prefix).resolve() not in masked(
        system_paths(network=False), [Path(sys.prefix)]
    )


def test_a_plain_process_hides_nothing(shown: Path) -> None:
    assert find_isolation("process", hidden=[shown]) == find_isolation("process")
