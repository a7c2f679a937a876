"""Getting published sets from servers and folders."""

import hashlib
import json
import socket
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass import set_download as fetch
from coevolve.benchmarks.textclass.published_sets import KNOWN, LAWBENCH, SPLITS, KnownSet, Source
from coevolve.benchmarks.textclass.set_download import FetchError, get_set, is_complete
from coevolve.errors import ConfigError
from tests.benchmarks.textclass.files import PUBLISHED, needs_published
from tests.benchmarks.textclass.mirrors import mirror
from tests.benchmarks.textclass.test_law_split import lawbench

FILES = {
    split: json.dumps({"question": f"{split}?", "answer": "yes"}).encode() + b"\n"
    for split in SPLITS
}
TOY = KnownSet(
    name="toy",
    title="A toy",
    answer="answer",
    rows=dict.fromkeys(SPLITS, 1),
    labels=1,
    checksums={split: hashlib.sha256(data).hexdigest() for split, data in FILES.items()},
    folders=(
        Source(repository="gone/away", commit="abc", path="data"),
        Source(repository="some/body", commit="def", path="deep/toy"),
    ),
)
PUBLIC = {f"some/body/def/deep/toy/{split}.jsonl": data for split, data in FILES.items()}
PLAIN = {f"toy/{split}.jsonl": data for split, data in FILES.items()}


def assert_nothing_written(folder: Path) -> None:
    assert not folder.exists() or not list(folder.iterdir())


def test_from_the_public_repositories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mirror(PUBLIC) as address:
        monkeypatch.setattr(fetch, "PUBLIC", address)
        got = get_set(TOY, to=tmp_path / "new")
    assert (got.folder, got.origin) == (tmp_path / "new" / "toy", address)
    assert {path.name: path.read_bytes() for path in got.folder.iterdir()} == {
        f"{split}.jsonl": data for split, data in FILES.items()
    }
    assert [path.name for path in got.folder.parent.iterdir()] == ["toy"]


@pytest.mark.parametrize("files", [PUBLIC, PLAIN], ids=["as published", "by set"])
def test_from_a_mirror(tmp_path: Path, files: dict[str, bytes]) -> None:
    with mirror(files) as address:
        assert get_set(TOY, origin=f"{address}/", to=tmp_path).origin == address
    assert is_complete(TOY, tmp_path / "toy")


@pytest.mark.parametrize("below", ["toy", "deep/toy", "some/body/def/deep/toy"])
def test_from_a_folder(tmp_path: Path, below: str) -> None:
    source = tmp_path / "from" / below
    source.mkdir(parents=True)
    for split, data in FILES.items():
        (source / f"{split}.jsonl").write_bytes(data)
    get_set(TOY, origin=str(tmp_path / "from"), to=tmp_path / "to")
    assert is_complete(TOY, tmp_path / "to" / "toy")


def test_what_is_there_already_is_not_fetched(tmp_path: Path) -> None:
    with mirror(PLAIN) as address:
        get_set(TOY, origin=address, to=tmp_path)
    assert get_set(TOY, origin="http://127.0.0.1:1", to=tmp_path).origin is None


def test_damaged_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.jsonl").write_text("damaged")
    (tmp_path / "toy" / "notes.txt").write_text("mine")
    with mirror(PLAIN) as address:
        get_set(TOY, origin=address, to=tmp_path)
    assert is_complete(TOY, tmp_path / "toy")
    assert (tmp_path / "toy" / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_other_bytes_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    files = {**PLAIN, "toy/test.jsonl": b'{"question": "?", "answer": "no"}\n'}
    with mirror(files) as address, pytest.raises(ConfigError) as caught:
        get_set(TOY, origin=address, to=tmp_path / "new")
    for part in ("test.jsonl of toy", TOY.checksums["test"], " and is ", "--from FOLDER"):
        assert part in str(caught.value)
    assert_nothing_written(tmp_path / "new")


def test_wrong_bytes_in_one_source_do_not_hide_the_next(tmp_path: Path) -> None:
    files = {**PUBLIC, **dict.fromkeys(PLAIN, b"<html>")}
    with mirror(files) as address:
        get_set(TOY, origin=address, to=tmp_path)
    assert is_complete(TOY, tmp_path / "toy")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "does not have all files of"),
        ({k: v for k, v in PLAIN.items() if "test" not in k}, "does not have all files of"),
        ({**PLAIN, "toy/val.jsonl": 503}, "toy/val.jsonl returned 503"),
        ({**PLAIN, "toy/val.jsonl": 0}, "toy/val.jsonl: the download ended 100 bytes early"),
    ],
    ids=["empty", "incomplete", "broken", "truncated"],
)
def test_a_mirror_that_does_not_help(
    tmp_path: Path, files: dict[str, bytes | int], message: str
) -> None:
    with mirror(files) as address, pytest.raises(FetchError, match=message) as caught:
        get_set(TOY, origin=address, to=tmp_path / "new")
    assert "--from FOLDER" in str(caught.value)
    assert_nothing_written(tmp_path / "new")


def test_a_file_that_is_far_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coevolve.benchmarks.textclass.set_download.MOST_BYTES", 10)
    with mirror(PLAIN) as address, pytest.raises(FetchError, match="is larger than"):
        get_set(TOY, origin=address, to=tmp_path)


def test_no_network_says_how_to_do_without(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(FetchError, match=r"cannot fetch .*refused.*--from FOLDER"):
            get_set(TOY, origin=address, to=tmp_path / "new")
    assert_nothing_written(tmp_path / "new")


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ("/does/not/exist", "there is no folder /does/not/exist"),
        ("ftp://example.org", "an address must begin with https://"),
        ("http://", "cannot fetch"),
    ],
)
def test_a_place_that_is_none(tmp_path: Path, origin: str, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        get_set(TOY, origin=origin, to=tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with mirror(PLAIN) as address, pytest.raises(FetchError, match="cannot write"):
        get_set(TOY, origin=address, to=tmp_path / "file")


def test_every_published_source_is_pinned_to_a_commit() -> None:
    for source in [LAWBENCH, *(s for known in KNOWN.values() for s in known.folders)]:
        assert len(bytes.fromhex(source.commit)) == 20
        assert not source.path.startswith("/")


@needs_published
@pytest.mark.parametrize("name", KNOWN)
def test_the_real_sets_from_a_folder(tmp_path: Path, name: str) -> None:
    get_set(KNOWN[name], origin=str(PUBLISHED), to=tmp_path)
    for split in SPLITS:
        given = (PUBLISHED / name / f"{split}.jsonl").read_bytes()
        assert (tmp_path / name / f"{split}.jsonl").read_bytes() == given


@needs_published
def test_law_is_made_from_lawbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mirror({LAWBENCH.address: lawbench()}) as address:
        monkeypatch.setattr(fetch, "PUBLIC", address)
        get_set(KNOWN["law"], to=tmp_path)
    assert is_complete(KNOWN["law"], tmp_path / "law")


@needs_published
def test_a_damaged_lawbench_does_not_hide_the_published_split(tmp_path: Path) -> None:
    folder = KNOWN["law"].folders[0].address
    files = {
        f"{folder}/{split}.jsonl": (PUBLISHED / "law" / f"{split}.jsonl").read_bytes()
        for split in SPLITS
    }
    with mirror({LAWBENCH.address: b"[]", **files}) as address:
        get_set(KNOWN["law"], origin=address, to=tmp_path)
    assert is_complete(KNOWN["law"], tmp_path / "law")
