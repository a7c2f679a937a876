"""`coevolve demo`: the file it runs, and what it does with a folder."""

import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass.harness_files import BUILT_IN, built_in
from coevolve.cli.demo_command import FILE
from coevolve.errors import ConfigError
from coevolve.models.embedded.model_weights import find_weights
from coevolve.proposers.proposer_settings import ScriptedSettings
from coevolve.runs.config import read_config
from coevolve.runs.session import read_state
from tests.cli.projects import COMMAND

EXAMPLES = Path(__file__).parents[2] / "examples" / "text_classification"


def test_the_demo_runs_the_example() -> None:
    shipped = files("coevolve.benchmarks.textclass").joinpath(FILE)
    assert shipped.read_bytes() == (EXAMPLES / FILE).read_bytes()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_is_a_run(path: Path) -> None:
    config = read_config(path)
    assert config.benchmark.kind == "textclass"
    assert config.model is not None


def test_the_script_proposes_the_whole_family_once() -> None:
    proposer = read_config(EXAMPLES / "family.toml").proposer
    assert isinstance(proposer, ScriptedSettings)
    proposed = [name for item in proposer.folders for name in item]
    assert sorted(proposed) == sorted(set(built_in()) - set(BUILT_IN))


def test_a_stopped_demo_can_be_resumed(tmp_path: Path) -> None:
    try:
        find_weights()
    except ConfigError as error:
        pytest.skip(f"the embedded model is needed: {error}")
    command = [str(COMMAND), "demo", "--to", "here"]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert "96 tasks and 120 sealed, 6 rounds of 2" in first.stdout.readline()
    first.terminate()
    rest = first.communicate(timeout=60)[0]
    assert first.returncode == 143
    assert "coevolve resume" in rest
    run = tmp_path / "here" / "runs" / "service-desk"
    assert read_state(run).sessions == 1
    second = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert second.stdout is not None
    second.stdout.readline()
    second.terminate()
    second.communicate(timeout=60)
    assert read_state(run).sessions == 2
