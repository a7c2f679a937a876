"""A protocol of the user's own, used as every other one: run, stopped, resumed, looked at."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coevolve.cli.main import app
from coevolve.core import protocols
from coevolve.errors import ConfigError
from coevolve.runs.config import read_config
from coevolve.runs.session import create_run, read_state, session
from coevolve.search.run_state import RunState
from tests.cli.projects import coevolve, write_doubling

OWN = """
from dataclasses import dataclass
from typing import ClassVar

import coevolve
from coevolve.core.designs import SuccessiveDesign


@dataclass(frozen=True)
class Hardest:
    '''Weights by how many have failed a task so far.'''

    steepness: float = 2.0
    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view):
        return (1.1 - view.history.anchors) ** self.steepness


mine = coevolve.SearchProtocol(name="hardest", weighting=Hardest(), design=SuccessiveDesign())
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(protocols, "PLUGS", dict(protocols.PLUGS))


def forget() -> None:
    """What another process does not know of."""
    protocols.PLUGS.pop("hardest", None)
    sys.modules.pop("my_rules", None)


class HaltError(Exception):
    """The run is stopped here."""


def work(folder: Path, until: str = "") -> RunState:
    def listen(event: Any) -> None:
        if event["type"] == until:
            raise HaltError

    async def search() -> RunState:
        with session(folder, listen=listen) as run:
            return await run.run()

    return asyncio.run(search())


def write_project(folder: Path, protocol: str, *, registers: bool) -> Path:
    file = write_doubling(folder)
    file.write_text(file.read_text().replace('"task-coevolve"', f'"{protocol}"'))
    if registers:
        benchmark = folder / "benchmark.py"
        benchmark.write_text(f"{OWN}\ncoevolve.register(mine)\n{benchmark.read_text()}")
    else:
        (folder / "my_rules.py").write_text(OWN)
    return file


def test_a_protocol_that_benchmark_py_registers_works_on_the_command_line(tmp_path: Path) -> None:
    file = write_project(tmp_path, "hardest", registers=True)
    done = coevolve("run", file, "--json")
    assert done.returncode == 0, done.stderr
    status = coevolve("status", tmp_path / "runs/doubling", "--json")
    assert status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["protocol"] == "hardest"


@pytest.mark.parametrize(
    ("protocol", "registers"),
    [("hardest", True), ("my_rules:mine", False)],
    ids=["registered in benchmark.py", "package.module:name"],
)
def test_a_protocol_of_the_project_stops_and_resumes(
    tmp_path: Path, protocol: str, registers: bool
) -> None:
    (tmp_path / "first").mkdir()
    folder = create_run(write_project(tmp_path / "first", protocol, registers=registers))
    forget()
    with pytest.raises(HaltError):
        work(folder, until="told")
    forget()
    assert read_state(folder).selector.protocol.name == "hardest"

    # The journal holds no path: the project may be moved before it is resumed.
    shutil.move(tmp_path / "first", tmp_path / "moved")
    folder = tmp_path / "moved/runs/doubling"
    forget()
    ended = work(folder)
    assert ended.ended is not None
    assert type(ended.selector.protocol.weighting).__name__ == "Hardest"
    for words in (
        ["status", str(folder)],
        ["show", str(folder), "r3-0"],
        ["query", "top", "--run", str(folder)],
        ["export", str(folder), "--to", str(tmp_path / "out.jsonl")],
        ["analyse", str(folder), "--table", "difficulty", "--out", str(tmp_path)],
        ["doctor", str(folder)],
    ):
        forget()
        looked = CliRunner().invoke(app, words)
        assert looked.exit_code == 0, (words, looked.output, looked.exception)


def test_settings_of_a_protocol_of_the_project_are_keys_of_the_file(tmp_path: Path) -> None:
    file = write_project(tmp_path, "my_rules:mine", registers=False)
    text = file.read_text()
    file.write_text(text.replace("[search]", '[search]\nsteepness = 3.5\nrounding = "floor"', 1))
    folder = create_run(file)
    forget()
    with pytest.raises(HaltError):
        work(folder, until="told")
    forget()
    rule = work(folder).selector.protocol
    assert rule.weighting.steepness == 3.5  # type: ignore[attr-defined]
    assert rule.allocation.rounding == "floor"  # type: ignore[attr-defined]
    file.write_text(text.replace("[search]", "[search]\nsteepnes = 3.5", 1))
    with pytest.raises(ConfigError, match=r"Did you mean 'search\.steepness'"):
        read_config(file)


def test_what_the_project_defines_is_checked_like_the_rest(tmp_path: Path) -> None:
    file = write_project(tmp_path, "hardst", registers=True)
    text = file.read_text()
    (tmp_path / "odd_rules.py").write_text("mine = 3\n")
    for name, message in (
        ("hardst", r"unknown protocol 'hardst'.* Did you mean 'hardest'\?"),
        ("odd_rules:mine", "must be a SearchProtocol, but is of type int"),
        ("odd_rules:mien", r"odd_rules has no 'mien'\. Did you mean 'mine'\?"),
        ("no_rules:mine", "No module named 'no_rules'"),
    ):
        file.write_text(text.replace("hardst", name))
        with pytest.raises(ConfigError, match=rf"'search\.protocol': .*{message}"):
            read_config(file)


def test_recorded_parameters_of_an_own_part_outlive_a_change(tmp_path: Path) -> None:
    folder = create_run(write_project(tmp_path, "hardest", registers=True))
    benchmark = tmp_path / "benchmark.py"
    benchmark.write_text(
        benchmark.read_text().replace("steepness: float = 2.0", "steepness: float = 5.0")
    )
    forget()
    weighting: Any = read_state(folder).selector.protocol.weighting
    assert weighting.steepness == 2.0


def test_a_run_whose_protocol_is_gone_says_so(tmp_path: Path) -> None:
    folder = create_run(write_project(tmp_path, "my_rules:mine", registers=False))
    (tmp_path / "my_rules.py").unlink()
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    forget()
    with pytest.raises(ConfigError, match="No module named 'my_rules'"):
        read_state(folder)
