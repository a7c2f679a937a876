"""The pages on proposers say what the code does, and show what a run really lays out."""

import math
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from coevolve.proposers import PLUGS
from coevolve.proposers.base import Broken, Proposal, Proposed, Standing, View
from coevolve.proposers.best_of_n import ATTEMPTS
from coevolve.proposers.command import PRESETS, preset
from coevolve.proposers.command import agents as presets
from coevolve.proposers.command.agent_settings import AgentSettings
from coevolve.proposers.command.agents import SERVICES
from coevolve.proposers.proposal_folder import collect
from coevolve.proposers.proposer_settings import FactoryProposer
from coevolve.proposers.workspace import lay_out, summary
from coevolve.registry import find
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.proposal_trial import proposal_trial
from coevolve.search.acceptance import MOST_LEAKS
from coevolve.search.candidate import MOST_BYTES, MOST_FILES
from coevolve.search.evaluation import EMPTY_ROUNDS
from coevolve.search.leaks import LONG
from coevolve.views import answer_text
from tests.command import coevolve

ROOT = Path(__file__).parent.parent
NAMES = ("proposers", "write-a-proposer", "meta-agent")
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in NAMES}
AGENT = re.compile(r"^\| `([\w-]+)` \| `(\w+)` \| `(.+?)` \| (.+?) \| (.+?) \| (.*?) ?\|$", re.M)


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGES[page], flags=re.M | re.S)


def tables() -> Iterator[Any]:
    for page in PAGES:
        for number, text in enumerate(blocks(page, "toml"), 1):
            yield pytest.param(text, id=f"{page}-{number}")


def completed(text: str) -> RunConfig:
    """The configuration that a part of one belongs to."""
    given = tomllib.loads(text)
    offline = given.get("proposer", {}).get("kind") == "offline"
    model = {"model": {"name": "embedded"}} if offline else {}
    rest = {
        "search": {"rounds": 1},
        "benchmark": {"kind": "textclass" if offline else "synthetic"},
        "proposer": {"kind": "synthetic"},
    }
    return RunConfig.from_json({**rest, **model, **given})


@pytest.fixture(autouse=True)
def _own_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages that the pages name as the reader's own."""
    text = "\n".join(PAGES.values())
    for module, name in re.findall(r'^kind = "([\w.]+):(\w+)"$', text, flags=re.M):
        for number in range(1, module.count(".") + 2):
            path = ".".join(module.split(".")[:number])
            if path not in sys.modules:
                monkeypatch.setitem(sys.modules, path, ModuleType(path))
        setattr(sys.modules[module], name, list)


@pytest.mark.parametrize("text", list(tables()))
def test_every_table_can_be_used(text: str) -> None:
    proposer = completed(text).proposer
    if isinstance(proposer, AgentSettings):
        proposer.preset(Path())  # it knows all options that are given


def test_there_is_a_table_for_every_kind_and_every_agent() -> None:
    given = [completed(text).proposer for text in blocks("proposers", "toml")]
    built_in = {find("proposers", name) for name in PLUGS}
    assert {type(proposer) for proposer in given} == built_in | {FactoryProposer}
    agents = {p.agent for p in given if isinstance(p, AgentSettings)}
    assert agents == {*PRESETS, None}
    listed = re.findall(r'^\| `"(.+?)"` \|', PAGES["proposers"], flags=re.M)
    assert sorted(listed) == sorted([*PLUGS, "package.module:factory"])


def test_the_agents_are_listed_as_they_are() -> None:
    rows = {row[0]: row[1:] for row in AGENT.findall(PAGES["proposers"])}
    assert list(rows) == list(PRESETS)
    for name, (program, install, keys, home, lacking) in rows.items():
        agent = preset(name)
        assert (program, install) == (agent.program, agent.install)
        seen = [key for key in re.findall(r"`(\w+)`", keys) if key != "opencode"]
        if "those of `opencode`" in keys:
            seen = [*SERVICES, *seen]
        assert seen == list(agent.keys)
        assert re.findall(r"`([^`]+)`", home) == list(agent.home)
        assert tuple(re.findall(r"`(\w+)`", lacking)) == PRESETS[name][1]


def test_the_versions_are_those_the_presets_were_tried_with() -> None:
    tried = re.findall(r"([\w-]+) (\d+\.\d+\.\d+)", presets.__doc__ or "")
    assert len(tried) == len(PRESETS)
    for program, version in tried:
        assert f"{program} {version}" in PAGES["proposers"]


@pytest.mark.parametrize("record", [View, Standing, Proposal, Proposed])
def test_every_field_of_a_record_has_a_row(record: type[Any]) -> None:
    page = PAGES["write-a-proposer"]
    found = re.search(rf"^\| `{record.__name__}` \| \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.M)
    assert found is not None
    listed = re.findall(r"^\| `(\w+)` \|", found[1], flags=re.M)
    assert sorted(listed) == sorted(field.name for field in fields(record))


def test_numbers_are_those_of_the_code() -> None:
    made, seen = PAGES["write-a-proposer"], PAGES["meta-agent"]
    assert f"at most {MOST_FILES:,} files and {MOST_BYTES // 1_000_000} MB" in made
    assert f"leaderboard | {summary._TOP} candidates" in seen
    assert f"rounds | the last {summary._ROUNDS}, {summary._OF_A_ROUND} candidates of each" in seen
    assert f"what failed | {summary._FAILED} refused, {summary._FAILED} far below" in seen
    assert f"the {summary._COMPONENTS} most frequent components" in seen
    assert f"| {summary._MOST_TASKS} tasks of each kind |" in seen
    assert f"| {answer_text.MOST_ROWS} rows |" in seen
    assert f"or {LONG} letters or digits in a row" in PAGES["proposers"]
    assert f"at most {MOST_LEAKS} of them" in PAGES["proposers"]
    page, words = PAGES["proposers"], {3: "three", 4: "four"}
    assert f"asked again, at most {words[ATTEMPTS]} times in all" in page
    assert f"{words[EMPTY_ROUNDS].capitalize()} rounds in a row without a candidate" in page
    assert f"# for one proposal; {AgentSettings.model_fields['seconds'].default:g} " in page


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)", text):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.is_file(), f"{page} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(), flags=re.M)
            known = [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in known, f"{page} links to {target}#{anchor}"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the page on meta-agents, after its run."""
    folder = tmp_path_factory.mktemp("page") / "readings"
    assert coevolve("init", folder).returncode == 0
    file = folder / "coevolve.toml"
    text = file.read_text().replace("rounds = 8", "rounds = 3")
    file.write_text(text.replace('protocol = "adaptive"', 'protocol = "task-coevolve"'))
    for words in (["run", "coevolve.toml", "--quiet"], ["propose", "--view", "--to", "view"]):
        assert coevolve(*words, cwd=folder).returncode == 0
    return folder


class TestTheWorkspace:
    def test_every_excerpt_is_in_a_file_of_it(self, project: Path) -> None:
        files = [path for path in (project / "view").rglob("*") if path.is_file()]
        texts = [path.read_text(errors="replace") for path in files]
        shown = [
            b for b in blocks("meta-agent", "text") if not b.startswith(("view/", "$", "# Repair"))
        ]
        assert len(shown) == 5
        for block in shown:
            parts = [part.strip("\n") for part in block.split("...\n")]
            assert any(all(part in text for part in parts) for text in texts), block

    def test_the_tree_is_that_of_the_page(self, project: Path) -> None:
        (tree,) = [b for b in blocks("meta-agent", "text") if b.startswith("view/")]
        listed = {name for line in tree.splitlines()[1:] for name in _named(line)}
        view = project / "view"
        for name in listed:
            places = [view / name, view / "candidates" / name, view / "candidates/r2-0" / name]
            assert any(place.exists() for place in places), name
        assert {path.name for path in view.iterdir()} <= {Path(n).parts[0] for n in listed}

    def test_queries_are_answered_as_shown(self, project: Path) -> None:
        (shown,) = [b for b in blocks("meta-agent", "text") if b.startswith("$")]
        asked = re.findall(r"^\$ coevolve query (.*)\n((?:(?!\$ ).*\n)*)", shown, flags=re.M)
        assert len(asked) == 4
        for words, answer in asked:
            done = subprocess.run(
                [sys.executable, "bin/coevolve", "query", *shlex.split(words)],
                cwd=project / "view",
                capture_output=True,
                text=True,
                check=True,
            )
            for part in answer.split("...\n"):
                assert part.strip("\n") in done.stdout, words

    def test_a_candidate_to_repair_comes_with_its_error(
        self, project: Path, tmp_path: Path
    ) -> None:
        (shown,) = [b for b in blocks("meta-agent", "text") if b.startswith("# Repair")]
        files = {"harness.py": b"def reed(text, kind): ..."}
        slip = Proposal(files=files, name="reads-halves", parents=("r2-0",))
        error = "check failed: the harness has no function 'read'"
        config = read_config(project / "coevolve.toml")
        with proposal_trial(config, project, project / "runs/readings") as attempt:
            assert math.isfinite(attempt.view.seconds)
            broken = Broken(proposal=slip, error=error)
            space = lay_out(attempt.view, tmp_path / "repair", count=1, broken=broken)
            back = collect(space.proposals, attempt.view, count=1, source="agent")
        told = (space.folder / "INSTRUCTIONS.md").read_text().replace("````text\n", "")
        assert shown.strip() in told
        assert [p.name for p in back.proposals] == ["reads-halves"]


def _named(line: str) -> list[str]:
    """The files and folders that a line of the tree names."""
    names = re.split(r"\s{2,}", line.strip())[0]
    return [name.strip().rstrip("/") for name in names.split(",") if name.strip() != "..."]


def test_the_agent_of_the_page_does_what_the_page_shows(tmp_path: Path) -> None:
    (agent,) = [b for b in blocks("proposers", "sh") if b.startswith("#!/bin/sh")]
    (table,) = [b for b in blocks("proposers", "toml") if "bin/my-agent" in b]
    (shown,) = [b for b in blocks("proposers", "text") if b.startswith("$ coevolve propose")]
    (said,) = [b for b in blocks("proposers", "text") if b.startswith("$ coevolve show")]
    folder = tmp_path / "readings"
    assert coevolve("init", folder).returncode == 0
    (folder / "my-agent").write_text(agent)
    (folder / "my-agent").chmod(0o755)
    table = table.replace("/home/me/bin/my-agent", "./my-agent") + 'isolation = "none"\n'
    file = folder / "coevolve.toml"
    text = re.sub(r"rounds = 8", "rounds = 1", file.read_text())
    text = re.sub(r"candidates = 2", "candidates = 1", text)
    file.write_text(re.sub(r"\[proposer\]\n.*?\n\n", f"{table}\n", text, flags=re.S))

    def ran(*words: str) -> str:
        done = coevolve(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = [line.rstrip() for line in ran("propose", "coevolve.toml").splitlines()]
    assert made == shown.splitlines()[1:]
    ran("run", "coevolve.toml", "--quiet")
    transcript = ran("show", "reads-fortnights", "--transcript").splitlines()
    assert transcript[0].startswith("at work in ")  # the workspace, which is elsewhere unconfined
    assert transcript[1:3] == said.splitlines()[2:4]
