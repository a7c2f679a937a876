"""What lies in a workspace."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.core.outcomes import Missing
from coevolve.errors import InputError
from coevolve.proposers.proposal_folder import collect
from coevolve.proposers.workspace import lay_out
from coevolve.proposers.workspace.workspace import set_aside, sweep
from coevolve.search.proposal import Broken, Proposal
from tests.effort import effort
from tests.proposers.workspace.histories import history, large, small, standing


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def all_text(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "bin"]
    names = "\n".join(str(path.relative_to(folder)) for path in files)
    return names + "".join(path.read_text("utf-8") for path in files)


def test_every_candidate_lies_there_with_files_standing_and_traces(tmp_path: Path) -> None:
    lay_out(small(), tmp_path, count=2)
    assert (tmp_path / "candidates/plain/files/harness.py").read_text() == "NAME = 'plain'\n"
    second = read(tmp_path / "candidates/second/standing.json")
    assert second["estimate"]["value"] == 0.7
    assert second["rank"] == 1
    assert second["delta"] == 0.2
    assert second["parents"] == ["plain", "first"]
    assert (second["kind"], second["components"]) == ("explore", ["two looks", "short prompt"])
    trace = tmp_path / second["outcomes"]["t3"]["trace"]
    assert trace == tmp_path / "candidates/second/traces/t3.json"
    assert read(trace)["trace"]["question"] == "what of t3?"
    bad = read(tmp_path / "candidates/bad/standing.json")
    assert (bad["status"], bad["reason"]) == ("refused", "check failed: SyntaxError")
    assert (bad["rank"], bad["estimate"], bad["outcomes"]) == (None, None, {})


def test_a_missing_outcome_is_missing_and_not_0(tmp_path: Path) -> None:
    lay_out(small(), tmp_path, count=1)
    outcome = read(tmp_path / "candidates/second/standing.json")["outcomes"]["t2"]
    assert outcome["score"] is None
    assert outcome["missing"] == "the service was down"
    assert "1 outcome missing (not 0): the service was down (1)." in (
        tmp_path / "SUMMARY.md"
    ).read_text("utf-8")


def test_tasks_show_how_often_they_were_solved(tmp_path: Path) -> None:
    view = replace(small(), pools=dict.fromkeys(("t1", "t2"), "easy") | {"t3": "hard"})
    lay_out(view, tmp_path, count=1)
    tasks = {row["task"]: row for row in read(tmp_path / "tasks.json")}
    assert (tasks["t1"]["mean"], tasks["t1"]["candidates"]) == (0.5, 4)
    assert tasks["t1"]["pool"] == "easy"
    assert (tasks["unseen"]["mean"], tasks["unseen"]["candidates"]) == (None, 0)
    page = (tmp_path / "tasks.md").read_text("utf-8")
    assert page.index("| `t1` | `easy` | 0.50 | 4 |") < page.index("## Solved by no candidate")
    assert page.index("## Not evaluated yet") < page.index("| `unseen` |")


def test_only_tasks_with_an_outcome_are_asked_for_their_traces(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def trace(candidate: str, task: str) -> str:
        asked.append((candidate, task))
        return json.dumps({"trace": {"gold": f"the answer of {task}"}})

    lay_out(replace(small(), trace=trace), tmp_path, count=1)
    assert ("second", "t3") in asked
    assert ("second", "t2") in asked  # missing, but it may say why
    assert ("second", "t4") not in asked
    text = all_text(tmp_path)
    assert "the answer of t4" in text  # of the starting harnesses
    assert "the answer of unseen" not in text
    assert not list(tmp_path.rglob("unseen*"))


def test_an_outcome_without_a_trace_has_no_file(tmp_path: Path) -> None:
    lay_out(replace(small(), trace=lambda candidate, task: None), tmp_path, count=1)
    assert read(tmp_path / "candidates/plain/standing.json")["outcomes"]["t1"]["trace"] == ""
    assert not list((tmp_path / "candidates/plain/traces").iterdir())


def test_the_instructions_hold_the_briefing_the_rules_and_the_form(tmp_path: Path) -> None:
    view = replace(small(), seconds=2400.0)
    workspace = lay_out(view, tmp_path, count=3)
    page = (tmp_path / "INSTRUCTIONS.md").read_text("utf-8")
    assert page.startswith("# Write 3 new candidates for round 3\n")
    assert "### A harness\nIt answers." in page
    assert "You have about 40 minutes" in page
    assert "at least one should exploit and at least one explore" in page
    assert "The last three rounds had 1 exploit, 1 explore." in page
    assert "candidates/second/files" in page
    assert "coevolve query failures second" in page
    example = json.loads(page.split("```json\n")[1].split("```")[0])
    assert example["parent"] == "second"
    assert "INSTRUCTIONS.md" in workspace.prompt
    assert "write 3 new candidates in proposals/" in workspace.prompt
    assert "40 minutes" in workspace.prompt
    assert workspace.proposals == tmp_path / "proposals"
    assert not list(workspace.proposals.iterdir())
    assert "{" not in page.replace(page.split("```json\n")[1].split("```")[0], "")


def test_a_single_candidate_without_a_time_limit(tmp_path: Path) -> None:
    workspace = lay_out(small(), tmp_path, count=1)
    page = (tmp_path / "INSTRUCTIONS.md").read_text("utf-8")
    assert page.startswith("# Write 1 new candidate for round 3\n")
    assert "**Time.**" not in page
    assert "minutes" not in workspace.prompt


def test_before_the_first_round_there_are_the_starting_harnesses(tmp_path: Path) -> None:
    view = history([standing("plain", round=0), standing("other", round=0)], round=1)
    lay_out(replace(view, parent="plain"), tmp_path, count=2)
    assert "No candidate has a score yet." in (tmp_path / "SUMMARY.md").read_text("utf-8")
    page = (tmp_path / "INSTRUCTIONS.md").read_text("utf-8")
    assert "Read the starting harnesses (round 0)" in page
    assert "candidates/plain/files" in page


def test_the_summary_says_who_is_best_what_failed_and_what_was_tried(tmp_path: Path) -> None:
    lay_out(small(), tmp_path, count=1)
    page = (tmp_path / "SUMMARY.md").read_text("utf-8")
    assert "`second`, estimate 0.700 ± 0.050 (2/4 tasks, delta +0.200)" in page
    assert "Reason: highest of all." in page
    assert "Tied with `twin`." in page
    assert "| 1 | `second` | 2 | explore | 0.700 ± 0.050 | 0.600 to 0.800 | +0.200 |" in page
    assert "two ¦ looks are better" in page
    assert "- `bad` (round 1): check failed: SyntaxError" in page
    assert "- `first` -0.100: shorter prompts" in page
    assert "| short prompt | 2 | `second` 0.700 ± 0.050 | 2 |" in page
    assert "Of 5 tasks, 1 were solved by all candidates evaluated on them, 2 by some" in page
    assert "1 were not evaluated yet" in page


def test_deltas_are_those_of_the_view(tmp_path: Path) -> None:
    view = history([standing("a", value=0.9, delta=-0.25), standing("b", value=0.1, delta=0.75)])
    lay_out(view, tmp_path, count=1)
    page = (tmp_path / "SUMMARY.md").read_text("utf-8")
    assert "0.800 to 1.000 | -0.250 |" in page
    assert "+0.750 in round 1" in page


def test_a_starting_harness_above_all_candidates_is_said_to_be(tmp_path: Path) -> None:
    view = history([standing("plain", round=0, value=0.9), standing("new", value=0.4)])
    assert view.best is not None
    best = replace(view.best, candidate="new", better_start="plain")
    lay_out(replace(view, best=best), tmp_path, count=1)
    page = (tmp_path / "SUMMARY.md").read_text("utf-8")
    assert "`plain`, estimate" in page
    assert "no candidate has a higher estimate yet. The best candidate is `new`" in page


def test_a_long_search_is_summed_up(tmp_path: Path) -> None:
    lay_out(large(300, 50, 400), tmp_path, count=3)
    summary = (tmp_path / "SUMMARY.md").read_text("utf-8").splitlines()
    assert len(summary) < 200
    assert max(map(len, summary)) < 2_000
    assert any("250 more: `coevolve query top 50`." in line for line in summary)
    assert len((tmp_path / "tasks.md").read_text("utf-8").splitlines()) < 300
    assert len(list((tmp_path / "candidates").iterdir())) == 300
    assert len(list((tmp_path / "candidates/candidate-0/traces").iterdir())) == 50


def test_a_broken_candidate_can_be_repaired(tmp_path: Path) -> None:
    proposal = Proposal(
        name="new one",
        files={"harness.py": b"def (", "lib/a.py": b""},
        parents=("plain",),
        hypothesis="why",
        kind="explore",
        components=("x",),
    )
    broken = Broken(proposal=proposal, error="import: SyntaxError (harness.py, line 1)\n````")
    workspace = lay_out(small(), tmp_path, count=1, broken=broken)
    (home,) = workspace.proposals.iterdir()
    assert (home / "lib/a.py").read_bytes() == b""
    page = (tmp_path / "INSTRUCTIONS.md").read_text("utf-8")
    assert page.startswith(f"# Repair the candidate in proposals/{home.name}\n")
    assert "import: SyntaxError (harness.py, line 1)" in page
    assert page.count("````") == 2
    assert "### A harness" in page
    assert f"proposals/{home.name}/" in workspace.prompt
    collected = collect(workspace.proposals, small(), count=1, source="agent")
    assert collected.proposals == (proposal,)
    assert collected.notes == ()


def test_a_long_error_loses_its_middle(tmp_path: Path) -> None:
    proposal = Proposal(name="new", files={"harness.py": b""})
    broken = Broken(proposal=proposal, error="start" + "x" * 100_000 + "end")
    workspace = lay_out(replace(small(), seconds=90.0), tmp_path, count=1, broken=broken)
    assert "90 seconds" in workspace.prompt
    page = (tmp_path / "INSTRUCTIONS.md").read_text("utf-8")
    assert len(page) < 30_000
    assert "startxx" in page
    assert "xxend" in page


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(InputError, match="is not empty"):
        lay_out(small(), tmp_path, count=1)


def test_files_of_a_candidate_cannot_hide_its_standing(tmp_path: Path) -> None:
    files = {"standing.json": b"mine", "traces/t1.json": b"mine", "files/a.py": b"mine"}
    view = history([standing("odd", files=files, value=0.5, outcomes={"t1": 1.0})])
    lay_out(view, tmp_path, count=1)
    home = tmp_path / "candidates/odd"
    assert read(home / "standing.json")["name"] == "odd"
    assert read(home / "traces/t1.json")["trace"]["answer"] == "odd"
    assert (home / "files/standing.json").read_bytes() == b"mine"
    assert (home / "files/files/a.py").read_bytes() == b"mine"


@settings(max_examples=effort(10, 40), deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=6, unique=True),
    st.text(max_size=50),
    st.text(max_size=50),
)
def test_any_id_and_any_text_can_be_laid_out(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[str], hypothesis: str, trace: str
) -> None:
    folder = tmp_path_factory.mktemp("workspace")
    outcomes: dict[str, float | Missing] = dict.fromkeys(tasks, 1.0)
    view = history(
        [standing("a", value=0.5, outcomes=outcomes, hypothesis=hypothesis)], tasks=tasks
    )
    lay_out(replace(view, trace=lambda candidate, task: trace + task), folder, count=1)
    found = read(folder / "history.json")["candidates"][0]["outcomes"]
    assert set(found) == {_kept(task) for task in tasks}
    paths = {outcome["trace"] for outcome in found.values()}
    assert len(paths) == len(tasks)
    home = folder / "candidates/a/traces"
    assert {os.fspath(folder / path) for path in paths} == {
        os.fspath(path) for path in home.iterdir()
    }


def _kept(text: str) -> str:
    return text.encode(errors="replace").decode()


def test_what_was_taken_over_is_kept_and_the_rest_is_set_aside(tmp_path: Path) -> None:
    workspace = lay_out(small(), tmp_path / "one", count=2)
    (workspace.folder / "scratch").mkdir()
    (workspace.proposals / "refused").mkdir()
    files = {"harness.py": b"1", "lib/a.py": b"2"}
    same = [Proposal(name="twice", files=files), Proposal(name="twice", files={"b.py": b"3"})]
    workspace.put_away([*same, Proposal(name="../..", files=files)])
    left = {path.name for path in workspace.folder.iterdir()}
    assert left == {"INSTRUCTIONS.md", "SUMMARY.md", "proposals"}
    assert (workspace.proposals / "twice/lib/a.py").read_bytes() == b"2"
    assert (workspace.proposals / "twice-2/b.py").read_bytes() == b"3"
    assert len(list(workspace.proposals.iterdir())) == 3
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [workspace.folder]


@pytest.mark.parametrize("kind", ["gone", "file", "link", "pages"])
def test_a_workspace_that_is_no_more_is_put_away_without_harm(kind: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "INSTRUCTIONS.md").write_text("mine")
    workspace = lay_out(small(), tmp_path / "work" / "one", count=1)
    if kind == "pages":
        (workspace.folder / "INSTRUCTIONS.md").unlink()
        (workspace.folder / "INSTRUCTIONS.md").symlink_to(mine / "INSTRUCTIONS.md")
        (workspace.folder / "SUMMARY.md").unlink()
        (workspace.folder / "SUMMARY.md").mkdir()
    else:
        shutil.rmtree(workspace.folder)
    if kind == "file":
        workspace.folder.write_text("")
    elif kind == "link":
        workspace.folder.symlink_to(mine)
    workspace.put_away([Proposal(name="new", files={"harness.py": b"1"})])
    sweep(tmp_path / "work")
    assert [path.name for path in workspace.folder.iterdir()] == ["proposals"]
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["one"]
    assert (mine / "INSTRUCTIONS.md").read_text() == "mine"


def test_any_tree_is_swept(tmp_path: Path) -> None:
    tree = tmp_path / "one"
    tree.mkdir()
    for depth in range(1, 1_200):
        (tree / "/".join(["d"] * depth)).mkdir()
    (tree / "locked" / "inner").mkdir(parents=True)
    (tree / "locked").chmod(0)
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "pipe")
    for number in range(2_000):
        (tree / str(number)).touch()
    tree.chmod(0)
    set_aside(tree)
    assert not tree.exists()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
