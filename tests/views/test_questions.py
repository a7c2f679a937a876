"""The query command, inside a workspace and by itself."""

import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.proposers.workspace import lay_out
from coevolve.proposers.workspace.workspace import program
from coevolve.search.proposal import View
from coevolve.views.history import source_of
from coevolve.views.questions import QUERIES, QueryError, answer, in_workspace
from tests.effort import effort
from tests.proposers.workspace.histories import history, small, standing

SYSTEM = shutil.which("python3", path="/usr/bin:/bin") or sys.executable


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    lay_out(small(), folder, count=1)
    return folder


def ask(*words: str, view: View | None = None) -> str:
    return answer(source_of(view or small()), words)


def found(*words: str) -> Any:
    return json.loads(ask(*words, "--json"))


def ran(folder: Path, words: Sequence[str], **named: Any) -> subprocess.CompletedProcess[str]:
    """What the command does for an agent that has nothing but a Python of the system."""
    program = folder / "bin" / "coevolve"
    return subprocess.run(
        [SYSTEM, "-I", program, *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
        **named,
    )


def test_it_runs_in_a_workspace_with_nothing_installed(workspace: Path) -> None:
    for words in (
        ["top", "5"],
        ["show", "second"],
        ["diff", "plain", "second"],
        ["failures", "first"],
        ["task", "t1"],
        ["tasks", "--never"],
        ["trace", "second", "t3"],
        ["top", "2", "--json"],
    ):
        done = ran(workspace, ["query", *words], env={"LC_ALL": "C"})
        assert done.returncode == 0, done.stderr
        assert done.stdout == answer(in_workspace(workspace), words)


def test_it_is_found_on_the_path_and_from_anywhere_below(workspace: Path) -> None:
    path = os.pathsep.join([str(workspace / "bin"), os.environ["PATH"]])
    for place in (workspace, workspace / "candidates" / "second", Path("/")):
        done = subprocess.run(
            ["coevolve", "query", "top", "1"],
            cwd=place,
            env={"PATH": path},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "second" in done.stdout


def test_mistakes_end_with_2_and_what_to_do(workspace: Path) -> None:
    done = ran(workspace, ["query", "show", "secnd"])
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "coevolve: there is no candidate 'secnd'. Did you mean 'second'?\n"
    assert ran(workspace, ["query"]).stdout.startswith("coevolve query top [N]")
    assert ran(workspace, ["top", "1"]).returncode == 0  # `query` may be left out


def test_it_says_where_it_does_not_work(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "coevolve").write_bytes(program())
    done = ran(tmp_path, ["query", "top"], cwd=tmp_path)
    assert done.returncode == 2
    assert "not a workspace" in done.stderr


def test_a_reader_who_has_read_enough_is_no_error(workspace: Path) -> None:
    command = f"'{SYSTEM}' '{workspace}/bin/coevolve' query top | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, text=True)
    assert done.stderr == ""


def test_the_program_needs_no_more_than_python_3_9(tmp_path: Path) -> None:
    (tmp_path / "program.zip").write_bytes(program())
    with zipfile.ZipFile(tmp_path / "program.zip") as archive:
        sources = {name: archive.read(name).decode() for name in archive.namelist()}
    assert len(sources) > 4
    assert program() == program()
    for name, source in sources.items():
        tree = ast.parse(source, name, feature_version=(3, 9))
        modules = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        for module in filter(None, modules):
            own = f"{module.replace('.', '/')}.py" in sources
            assert own or module.split(".")[0] in sys.stdlib_module_names, f"{name}: {module}"
        assert "def " not in source or "from __future__ import annotations" in source


def test_both_sources_give_the_same_answers(workspace: Path) -> None:
    for words in (["top"], ["diff", "first", "second"], ["failures", "second"], ["task", "t2"]):
        inside = json.loads(answer(in_workspace(workspace), [*words, "--json"]))
        outside = found(*words)
        for one in (inside, outside):
            one.pop("file", None)
        assert inside == outside


def test_top_ranks_by_estimate_and_names_who_has_none() -> None:
    top = found("top", "2")
    assert [(row["rank"], row["name"]) for row in top["candidates"]] == [
        (1, "second"),
        (2, "plain"),
    ]
    assert top["more"] == 2
    assert [row["name"] for row in top["without_score"]] == ["bad"]
    assert "0.700 ± 0.050  0.600 to 0.800  2/4    +0.200" in ask("top", "1")
    assert "check failed: SyntaxError" in ask("top", "1")


def test_equals_share_a_rank() -> None:
    view = history([standing("a", value=0.5), standing("b", value=0.7), standing("c", value=0.5)])
    rows = json.loads(ask("top", "--json", view=view))["candidates"]
    assert [(row["rank"], row["name"]) for row in rows] == [(1, "b"), (2, "a"), (2, "c")]


def test_show_tells_where_a_candidate_comes_from_and_leads_to() -> None:
    shown = found("show", "first")
    assert shown["parents"] == ["plain"]
    assert shown["children"] == ["second"]
    assert (shown["tried"], shown["solved"], shown["missing"]) == (2, 0, 0)
    assert found("show", "second")["missing"] == 1
    assert "reason      check failed: SyntaxError" in ask("show", "bad")


def test_diff_shows_files_and_tasks_won_and_lost() -> None:
    text = ask("diff", "plain", "first")
    assert "-NAME = 'plain'\n+NAME = 'first'" in text
    data = found("diff", "plain", "first")
    assert data["tasks_of_both"] == 2
    assert data["won"] == [{"task": "t3", "from": 0.0, "to": 0.5}]
    assert data["lost"] == [{"task": "t1", "from": 1.0, "to": 0.0}]
    assert found("diff", "plain", "second")["tasks_of_both"] == 2  # t2 is missing, not lost
    assert "the files are identical" in ask("diff", "first", "first")


def test_diff_takes_any_files() -> None:
    view = history(
        [
            standing("a", files={"x.bin": b"\xff\x00", "same": b"1"}),
            standing("b", files={"x.bin": b"\xfe\x00", "same": b"1", "new.py": b"hello\n"}),
        ]
    )
    text = ask("diff", "a", "b", view=view)
    assert "+++ b/new.py\n@@ -0,0 +1 @@\n+hello" in text
    assert "Binary files a/x.bin and b/x.bin differ" in text
    assert "same" not in text


def test_failures_begin_with_what_others_solved() -> None:
    data = found("failures", "first")
    assert [row["task"] for row in data["failures"]] == ["t1", "t3"]
    assert data["failures"][0]["better"] == ["second", "plain"]
    assert data["failures"][1]["better"] == []
    assert "question: what of t1?, answer: first" in ask("failures", "first")
    missing = found("failures", "second")["missing"]
    assert missing == [{"task": "t2", "score": None, "says": "the service was down"}]


def test_task_lists_who_solved_it_first_and_missing_last() -> None:
    data = found("task", "t2")
    assert [(row["candidate"], row["score"]) for row in data["outcomes"]] == [
        ("plain", 1.0),
        ("other", 1.0),
        ("second", None),
    ]
    assert "second     missing  the service was down" in ask("task", "t2")
    assert found("task", "unseen")["outcomes"] == []


def test_a_task_is_found_by_the_name_of_its_file(tmp_path: Path) -> None:
    view = history([standing("a", outcomes={"two days / x": 1.0})], tasks=["two days / x"])
    lay_out(view, tmp_path, count=1)
    (stem,) = [path.stem for path in (tmp_path / "candidates/a/traces").iterdir()]
    data = json.loads(answer(in_workspace(tmp_path), ["task", stem, "--json"]))
    assert data["task"] == "two days / x"


def test_tasks_are_listed_hardest_first_and_by_kind() -> None:
    assert [row["task"] for row in found("tasks")["tasks"]] == ["t4", "t3", "t1", "t2", "unseen"]
    assert [row["task"] for row in found("tasks", "--never")["tasks"]] == ["t4"]
    assert [row["task"] for row in found("tasks", "--mixed")["tasks"]] == ["t3", "t1"]
    both = found("tasks", "--mixed", "--never")["tasks"]
    assert [row["task"] for row in both] == ["t4", "t3", "t1"]


def test_a_trace_is_shown_with_its_lines() -> None:
    trace = {
        "trace": {
            "question": "which?",
            "calls": [{"prompt": "Look:\nwhich?", "choices": ["a", "b"]}],
            "answer": None,
        },
        "error": "Traceback\n  line 3\nKeyError: 'x'",
    }
    view = replace(small(), trace=lambda candidate, task: json.dumps(trace))
    text = ask("trace", "plain", "t1", view=view)
    assert "calls:\n  1.\n    prompt:\n      Look:\n      which?\n    choices: a, b\n" in text
    assert "answer: null" in text
    assert "  KeyError: 'x'" in text
    assert "KeyError: 'x', question: which?, answer: null" in ask("task", "t1", view=view)


def test_a_trace_need_not_be_json_nor_be_there() -> None:
    view = replace(small(), trace=lambda candidate, task: "bare \x1b[31m text")
    assert "bare \\x1b[31m text" in ask("trace", "plain", "t1", view=view)
    none = replace(small(), trace=lambda candidate, task: None)
    assert "score      1" in ask("trace", "plain", "t1", view=none)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tip"], "there is no query 'tip'. Did you mean 'top'?"),
        (["top", "0"], "N must be a number above 0, got '0'"),
        (["top", "ten"], "got 'ten'"),
        (["top", "1", "2"], "top got 1 2; the usage is: coevolve query top [N]"),
        (["diff", "plain"], "diff got plain; the usage is: coevolve query diff A B"),
        (["top", "--never"], "top got --never"),
        (["failures"], "failures got nothing"),
        (["task", "unsen"], "there is no task 'unsen'. Did you mean 'unseen'?"),
        (["show", "zzz"], "Known: plain, other, first, bad, second."),
        (["trace", "first", "t2"], "first has no outcome on 't2'"),
    ],
)
def test_what_cannot_be_answered_is_said(words: list[str], message: str) -> None:
    with pytest.raises(QueryError) as error:
        ask(*words)
    assert message in str(error.value)


@settings(max_examples=effort(15, 60), deadline=None)
@given(
    st.lists(
        st.one_of(st.sampled_from([*QUERIES, "--json", "first", "t1"]), st.text()), max_size=4
    )
)
def test_any_words_get_an_answer_or_a_reason(words: list[str]) -> None:
    with contextlib.suppress(QueryError):
        assert ask(*words).endswith("\n")


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=effort(15, 60), deadline=None)
@given(_JSON)
def test_any_trace_can_be_shown(content: Any) -> None:
    view = replace(small(), trace=lambda candidate, task: json.dumps(content))
    for words in (["trace", "plain", "t1"], ["failures", "plain"], ["task", "t1"]):
        assert "plain" in ask(*words, view=view)
