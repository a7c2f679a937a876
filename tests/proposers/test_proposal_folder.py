"""What is taken over from an agent, and what is said of the rest."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.proposers.base import as_proposal
from coevolve.proposers.proposal_folder import (
    MOST_ENTRIES,
    MOST_NOTES,
    MOST_REFUSED,
    Collected,
    collect,
    read_form,
)
from coevolve.search.acceptance import clean
from coevolve.search.proposal import View
from tests.effort import effort
from tests.proposers.views import view

HARNESS = "def answer(question):\n    return 42\n"
FORM: dict[str, Any] = {
    "name": "ask-twice",
    "parent": "plain",
    "hypothesis": "Two answers are better than one.",
    "kind": "exploit",
    "components": ["second look", "vote"],
}


def seen() -> View:
    return view(candidates={"plain": {"harness.py": b"1"}, "other": {"harness.py": b"2"}})


def write(folder: Path, form: object = None, files: dict[str, str] | None = None) -> Path:
    """A candidate as an agent writes it; a form of None is left out."""
    for path, text in (files or {"harness.py": HARNESS}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    if form is not None:
        text = form if isinstance(form, str) else json.dumps(form)
        (folder / "proposal.json").write_text(text)
    return folder


def taken(folder: Path, count: int = 3) -> Collected:
    """What is collected, fit to be recorded whatever it was."""
    collected = collect(folder, seen(), count=count, source="agent")
    for proposal in collected.proposals:
        as_proposal(proposal)
        clean(proposal.name)
        texts = [proposal.name, proposal.hypothesis, *proposal.parents, *proposal.components]
        json.dumps(texts, ensure_ascii=False).encode()
    for note in collected.notes:
        assert note.startswith("agent: ")
        assert "\x1b" not in note
        note.encode()
    return collected


def names(collected: Collected) -> list[str]:
    return [proposal.name for proposal in collected.proposals]


def test_a_candidate_comes_with_its_files_and_what_it_says_of_itself(tmp_path: Path) -> None:
    write(tmp_path / "a", FORM, {"harness.py": HARNESS, "lib/near.py": "x = 1"})
    collected = taken(tmp_path)
    assert collected.notes == ()
    (proposal,) = collected.proposals
    assert proposal.files == {"harness.py": HARNESS.encode(), "lib/near.py": b"x = 1"}
    assert proposal.name == "ask-twice"
    assert proposal.parents == ("plain",)
    assert proposal.hypothesis == "Two answers are better than one."
    assert proposal.kind == "exploit"
    assert proposal.components == ("second look", "vote")


def test_nothing_written_is_nothing_taken(tmp_path: Path) -> None:
    assert taken(tmp_path) == Collected(proposals=(), notes=())
    (gone,) = taken(tmp_path / "gone").notes
    assert "cannot be read" in gone


def test_work_without_a_form_is_taken(tmp_path: Path) -> None:
    write(tmp_path / "cleverer")
    collected = taken(tmp_path)
    assert names(collected) == ["cleverer"]
    assert "'cleverer': it has no proposal.json" in collected.notes[0]


def test_an_unknown_parent_is_dropped_and_the_candidate_kept(tmp_path: Path) -> None:
    write(tmp_path / "a", FORM | {"parent": "plian", "parents": ["other", "plian", "nobody"]})
    collected = taken(tmp_path)
    assert collected.proposals[0].parents == ("other",)
    assert any(
        "'plian' is not an earlier candidate" in n and "'plain'?" in n for n in collected.notes
    )


@pytest.mark.parametrize("given", [None, "", []])
def test_a_candidate_may_have_no_parent(tmp_path: Path, given: object) -> None:
    write(tmp_path / "a", FORM | {"parent": given})
    collected = taken(tmp_path)
    assert collected.proposals[0].parents == ()
    assert collected.notes == ()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (
            {"hypotesis": "x"},
            "'hypotesis' in proposal.json; it was ignored. Did you mean 'hypothesis'?",
        ),
        ({"name": 3}, "the name must be text, got 3; it was ignored."),
        ({"hypothesis": ["x"]}, "the hypothesis must be text, got ['x']; it was ignored."),
        ({"hypothesis": "x" * 9_000}, "the hypothesis has 9,000 characters; 4,000 are kept."),
        ({"kind": "bold"}, "the kind must be 'exploit' or 'explore', got 'bold'"),
        ({"kind": ["exploit"]}, "the kind must be 'exploit' or 'explore', got ['exploit']"),
        ({"components": "vote"}, "components must be a list of texts, got 'vote'"),
        ({"components": [1]}, "components must be a list of texts, got [1]"),
        ({"components": ["x"] * 99}, "components has 99 items; the first 20 are kept."),
        ({"parent": {"name": "plain"}}, "parent must be a list of texts, got {'name': 'plain'}"),
    ],
)
def test_what_is_wrong_in_a_form_is_left_out_and_said(
    tmp_path: Path, change: dict[str, Any], note: str
) -> None:
    write(tmp_path / "folder", FORM | change)
    collected = taken(tmp_path)
    assert len(collected.proposals) == 1
    assert any(note in said for said in collected.notes), collected.notes
    if "name" in change:
        assert names(collected) == ["folder"]


def test_kinds_are_known_by_their_nouns_too(tmp_path: Path) -> None:
    write(tmp_path / "a", FORM | {"kind": "Exploration "})
    collected = taken(tmp_path)
    assert collected.proposals[0].kind == "explore"
    assert collected.notes == ()


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"\xef\xbb\xbf" + json.dumps(FORM).encode(), ""),
        (json.dumps(FORM).encode("utf-16"), ""),
        (b"```json\n" + json.dumps(FORM).encode() + b"\n```\n", ""),
        (json.dumps(FORM).encode() + b"\nThis is my form.", "has more text after its object"),
    ],
)
def test_a_form_is_read_through_what_surrounds_it(tmp_path: Path, data: bytes, note: str) -> None:
    write(tmp_path / "a")
    (tmp_path / "a" / "proposal.json").write_bytes(data)
    collected = taken(tmp_path)
    assert names(collected) == ["ask-twice"]
    assert len(collected.notes) == bool(note)
    assert all(note in said for said in collected.notes)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"", "is not JSON"),
        (b"{'name': 'x'}", "is not JSON"),
        (b"[1, 2]", "must be an object, got [1, 2]"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"name": ' + b"9" * 10_000 + b"}", "is not JSON"),
        (b'{"name": "' + b"x" * 2_000_000 + b'"}', "bytes, more than 1,000,000; it was ignored"),
    ],
)
def test_rubbish_for_a_form_does_not_cost_the_candidate(
    tmp_path: Path, data: bytes, note: str
) -> None:
    write(tmp_path / "kept")
    (tmp_path / "kept" / "proposal.json").write_bytes(data)
    collected = taken(tmp_path)
    assert names(collected) == ["kept"]
    assert any(note in said for said in collected.notes), collected.notes


def test_what_cannot_be_recorded_or_would_command_a_terminal_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "a", {"name": "a\x1b[2Jb", "hypothesis": "x\ud800y\0\u202ez"})
    (proposal,) = taken(tmp_path).proposals
    assert proposal.name == "a\\x1b[2Jb"
    assert proposal.hypothesis == "x\\ud800y\\x00\\u202ez"


def test_empty_folders_and_forms_without_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "form").mkdir()
    (tmp_path / "form" / "proposal.json").write_text(json.dumps(FORM))
    (tmp_path / "cache" / "__pycache__").mkdir(parents=True)
    (tmp_path / "cache" / "__pycache__" / "x.pyc").touch()
    (tmp_path / "README.md").touch()
    collected = taken(tmp_path)
    assert collected.proposals == ()
    notes = "\n".join(collected.notes)
    assert "'empty' was ignored" in notes
    assert "'form' was ignored: it has no file except proposal.json." in notes
    assert "'cache' was ignored" in notes
    assert "'README.md' is a link, or not a folder" in notes


def test_hidden_files_and_caches_are_left_behind(tmp_path: Path) -> None:
    files = {"harness.py": "", ".git/config": "", "__pycache__/h.pyc": "", ".env": "", "a.pyc": ""}
    write(tmp_path / "a", FORM, files)
    write(tmp_path / ".hidden", FORM)
    write(tmp_path / "__pycache__", FORM)
    collected = taken(tmp_path)
    assert [set(p.files) for p in collected.proposals] == [{"harness.py"}]
    assert collected.notes == ()


def test_of_too_many_the_first_finished_are_taken(tmp_path: Path) -> None:
    for age, name in ((40, "d"), (10, "c"), (20, "b"), (30, "a")):
        write(tmp_path / name, FORM | {"name": name})
        os.utime(tmp_path / name / "proposal.json", (1000 - age, 1000 - age))
    write(tmp_path / "unfinished")
    os.utime(tmp_path / "unfinished", (1, 1))
    collected = taken(tmp_path, count=2)
    assert names(collected) == ["d", "a"]
    assert "3 more than requested were ignored: 'b', 'c', 'unfinished'." in collected.notes[-1]


def test_a_bad_one_does_not_take_the_place_of_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write(tmp_path / "b", FORM | {"name": "b"})
    write(tmp_path / "c", FORM | {"name": "c"})
    assert sorted(names(taken(tmp_path, count=2))) == ["b", "c"]


def test_a_copy_of_an_earlier_one_is_left_to_the_engine(tmp_path: Path) -> None:
    write(tmp_path / "same", FORM, {"harness.py": "1"})
    assert len(taken(tmp_path).proposals) == 1


def test_a_candidate_copied_with_all_that_lies_around_it(tmp_path: Path) -> None:
    files = {
        "files/harness.py": "old",
        "files/b.py": "",
        "standing.json": "{}",
        "traces/t.json": "",
    }
    write(tmp_path / "within", FORM, files)
    write(tmp_path / "beside", FORM | {"name": "beside"}, {**files, "harness.py": "new"})
    write(tmp_path / "only", FORM | {"name": "only"}, {"files/harness.py": "new"})
    found = {p.name: p.files for p in taken(tmp_path).proposals}
    assert found["ask-twice"] == {"harness.py": b"old", "b.py": b""}
    assert found["beside"] == {"harness.py": b"new", "b.py": b""}
    assert found["only"] == {"harness.py": b"new"}
    assert len(taken(tmp_path).notes) == 3


def test_a_folder_called_files_may_belong_to_a_candidate(tmp_path: Path) -> None:
    write(tmp_path / "a", FORM, {"harness.py": "", "files/words.txt": "x"})
    (proposal,) = taken(tmp_path).proposals
    assert set(proposal.files) == {"harness.py", "files/words.txt"}


def test_a_single_candidate_beside_its_folder_is_taken(tmp_path: Path) -> None:
    write(tmp_path, FORM)
    collected = taken(tmp_path)
    assert names(collected) == ["ask-twice"]
    assert set(collected.proposals[0].files) == {"harness.py"}
    assert "is in proposals itself" in collected.notes[0]


# Those who mean harm


def test_links_are_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    write(secret, FORM, {"harness.py": "the key"})
    home = tmp_path / "proposals"
    write(home / "file", FORM).joinpath("data.txt").symlink_to("/etc/passwd")
    write(home / "form").joinpath("proposal.json").symlink_to(secret / "proposal.json")
    write(home / "inner", FORM).joinpath("lib").symlink_to(secret)
    write(home / "loop", FORM).joinpath("again").symlink_to(".")
    (home / "whole").symlink_to(secret)
    collected = taken(home, count=9)
    assert collected.proposals == ()
    assert len(collected.notes) == 5
    assert sum("is not a regular file" in note for note in collected.notes) == 4
    (tmp_path / "linked").symlink_to(secret.parent)
    assert taken(tmp_path / "linked").proposals == ()


def test_pipes_and_sockets_are_never_opened(tmp_path: Path, monkeypatch: Any) -> None:
    os.mkfifo(write(tmp_path / "pipe", FORM) / "harness2.py")
    os.mkfifo(write(tmp_path / "form") / "proposal.json")
    os.mkfifo(tmp_path / "bare")
    monkeypatch.chdir(write(tmp_path / "socket", FORM))  # a path of its own may be too long
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        collected = taken(tmp_path)
    assert collected.proposals == ()
    assert len(collected.notes) == 4


def test_huge_files_are_never_read(tmp_path: Path) -> None:
    with (write(tmp_path / "file", FORM) / "index.bin").open("wb") as file:
        file.truncate(10_000_000_000)
    with (write(tmp_path / "form") / "proposal.json").open("wb") as file:
        file.truncate(10_000_000_000)
    collected = taken(tmp_path)
    assert collected.proposals == ()
    assert all("more than 1,000 files or 20,000,000 bytes" in note for note in collected.notes)


def test_too_many_files_and_folders(tmp_path: Path) -> None:
    write(tmp_path / "files", FORM, {f"{number}.py": "" for number in range(1_200)})
    write(tmp_path / "folders", FORM, {f"{number}/x/.keep": "" for number in range(600)})
    collected = taken(tmp_path)
    assert collected.proposals == ()
    assert "'files' was ignored: it has more than 1,000 files" in "\n".join(collected.notes)
    assert "'folders' was ignored: it has more than 1,000 folders." in "\n".join(collected.notes)


def test_a_tree_deeper_than_any_path(tmp_path: Path, monkeypatch: Any) -> None:
    write(tmp_path / "deep", FORM)
    monkeypatch.chdir(tmp_path / "deep")
    for _ in range(100):
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)
    Path("harness.py").touch()
    os.chdir(tmp_path)
    collected = taken(tmp_path)
    assert len(collected.proposals) + len(collected.notes) >= 1


def test_names_that_no_file_should_have(tmp_path: Path) -> None:
    write(tmp_path / "line\nbreak \x1b[31m", FORM, {"harness.py": ""})
    write(tmp_path / "inside", FORM, {"a\nb.py": ""})
    write(tmp_path / "stray", FORM).joinpath("back\\slash").touch()
    os.mkdir(os.fsencode(tmp_path) + b"/\xff\xfe")  # noqa: PTH102
    collected = taken(tmp_path)
    assert names(collected) == ["ask-twice"]
    assert len(collected.notes) == 3


def test_a_flood_of_rubbish_is_a_few_notes(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}").mkdir()
    collected = taken(tmp_path)
    assert len(collected.notes) == MOST_NOTES + 1
    assert "20 more notes are not shown." in collected.notes[-1]


def test_a_flood_of_folders_is_not_looked_through(tmp_path: Path, monkeypatch: Any) -> None:
    looked: list[Path] = []

    def read(folder: Path) -> dict[str, bytes]:
        looked.append(folder)
        return {}

    monkeypatch.setattr("coevolve.proposers.proposal_folder.read_folder", read)
    for number in range(MOST_ENTRIES + 10):
        (tmp_path / f"c{number:04}").mkdir()
    notes = taken(tmp_path).notes
    assert len(looked) == MOST_REFUSED
    assert f"agent: only the first {MOST_ENTRIES:,} entries of proposals were read." in notes


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=effort(37, 150), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*FORM, "parents"]) | st.text(max_size=9), _JSON | st.just("plain")
    )
    | _JSON
)
def test_any_json_is_a_form_or_a_reason(said: object) -> None:
    form, notes = read_form(json.dumps(said).encode())
    as_proposal(
        {
            "name": form.name or "folder",
            "files": {"harness.py": ""},
            "parents": form.parents,
            "hypothesis": form.hypothesis,
            "kind": form.kind,
            "components": form.components,
        }
    )
    "".join([form.name, form.hypothesis, *form.parents, *form.components, *notes]).encode()


@settings(max_examples=effort(25, 100), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_form_or_a_reason(data: bytes) -> None:
    form, notes = read_form(data)
    assert form.given
    assert notes


def test_a_form_that_is_a_folder_is_no_form(tmp_path: Path) -> None:
    write(tmp_path / "odd", files={"harness.py": HARNESS, "proposal.json/x": "1"})
    collected = taken(tmp_path)
    assert collected.proposals == ()
    assert "proposal.json is a folder" in collected.notes[0]
