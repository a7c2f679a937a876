"""Whole runs, from the command line, whose candidates are written by an agent or a model."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import CoevolveError
from coevolve.executors.isolation import find_isolation
from coevolve.runs.session import read_state
from coevolve.search.run_state import Status
from tests.cli.projects import coevolve, write_doubling
from tests.models.endpoint import Act, Endpoint, says

KEY = "sk-meta-agent-0123456789"
RIGHT = "def double(n):\n    return 2 * n\n"
SLIP = "def double(n)\n    return 2 * n\n"
QUESTION = "What is twice the number of apples that Eve had left on Tuesday?"
SECRETS = f"""

def secrets():
    return {{"3": ({QUESTION!r}, "6")}}
"""
LLM = """[proposer]
kind = "llm"
[proposer.model]
name = "tiny"
base_url = "{url}"
key = "META_KEY"
price_in = 1.0
price_out = 2.0
"""
MINI = """[proposer]
kind = "command"
agent = "mini-swe-agent"
model = "openai/unpriced"
seconds = 120
"""


def written(source: str, name: str = "doubling", **form: Any) -> str:
    """A candidate as a model writes it."""
    data = {"name": name, "parent": "same", "kind": "exploit", "hypothesis": "It doubles.", **form}
    head = f"## Candidate 1\n\n```json\n{json.dumps(data)}\n```\n\n"
    return f"{head}````python path=harness.py\n{source}````\n"


def project(folder: Path, proposer: str, *, rounds: int = 1, leaks: str = "report") -> Path:
    """The doubling project with another proposer, one candidate a round."""
    file = write_doubling(folder)
    text = file.read_text().replace(
        '[proposer]\nkind = "function"\nfile = "propose.py"\n', proposer
    )
    text = text.replace("rounds = 3\ncandidates = 2\n", f'rounds = {rounds}\nleaks = "{leaks}"\n')
    file.write_text(text.replace('[isolation]\nkind = "process"\n', ""))
    return file


def environment(endpoint: Endpoint) -> dict[str, str]:
    return {
        **os.environ,
        "META_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "OPENAI_API_BASE": endpoint.base_url,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def bash(command: str) -> Act:
    """A reply of the model that calls the only tool of mini-swe-agent."""
    arguments = json.dumps({"command": command})
    call = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return says("I go on.", finish="tool_calls", tool_calls=[call])


@pytest.fixture
def bwrap() -> None:
    try:
        find_isolation("bwrap")
    except CoevolveError as error:
        pytest.skip(f"bubblewrap does not work here: {error}")


class TestAModel:
    def test_writes_a_candidate_that_wins(self, tmp_path: Path) -> None:
        with Endpoint([says("yes"), says(written(RIGHT))], key=KEY) as endpoint:
            file = project(tmp_path, LLM.format(url=endpoint.base_url))
            done = coevolve("run", file, "--json", env=environment(endpoint), litellm=True)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["chosen"]["candidate"] == "doubling"
        state = read_state(tmp_path / "runs/doubling")
        entry = state.candidates["doubling"]
        assert entry.status == Status.EVALUATED
        assert entry.candidate.parents == ("same",)
        assert entry.candidate.kind == "exploit"
        assert (
            state.proposing.tokens_in == 20
        )  # the short request before Phase 0, and the proposal
        assert state.proposing.dollars > 0
        shown = coevolve("show", tmp_path / "runs/doubling", "doubling")
        assert "It doubles." in shown.stdout
        transcript = coevolve("show", tmp_path / "runs/doubling", "doubling", "--transcript")
        assert "return 2 * n" in transcript.stdout
        assert KEY not in transcript.stdout

    def test_repairs_a_syntax_error_on_the_second_try(self, tmp_path: Path) -> None:
        script = [says("yes"), says(written(SLIP)), says(written(RIGHT))]
        with Endpoint(script) as endpoint:
            file = project(tmp_path, LLM.format(url=endpoint.base_url))
            done = coevolve("run", file, env=environment(endpoint), litellm=True)
        assert done.returncode == 0, done.stderr
        assert len(endpoint.seen) == 3
        assert "SyntaxError" in json.dumps(endpoint.seen[2].body["messages"])
        assert "doubling failed its check; sent back for repair: " in done.stdout
        assert "doubling repaired" in done.stdout
        assert read_state(tmp_path / "runs/doubling").candidates["doubling"].status == "evaluated"

    def test_a_wrong_key_is_found_before_anything_is_paid(self, tmp_path: Path) -> None:
        with Endpoint(answer=lambda _: says(written(RIGHT)), key=KEY) as endpoint:
            file = project(tmp_path, LLM.format(url=endpoint.base_url))
            wrong = {**environment(endpoint), "META_KEY": "sk-wrong"}
            stopped = coevolve("run", file, env=wrong, litellm=True)
            assert stopped.returncode == 2
            assert "sk-wrong" not in stopped.stderr + stopped.stdout
            assert not (tmp_path / "runs/doubling").exists()
            done = coevolve("run", file, env=environment(endpoint), litellm=True)
        assert done.returncode == 0, done.stderr

    def test_that_knows_answers_by_heart_is_refused(self, tmp_path: Path) -> None:
        table = f"KNOWN = {{{QUESTION!r}: 6}}\n{RIGHT}"
        with Endpoint([says("yes"), says(written(table))]) as endpoint:
            file = project(tmp_path, LLM.format(url=endpoint.base_url), leaks="refuse")
            benchmark = tmp_path / "benchmark.py"
            benchmark.write_text(benchmark.read_text() + SECRETS)
            done = coevolve("run", file, env=environment(endpoint), litellm=True)
        entry = read_state(tmp_path / "runs/doubling").candidates["doubling"]
        assert entry.leaks
        assert entry.status == Status.REFUSED
        assert "mentions tasks it must not know" in done.stdout
        assert QUESTION not in done.stdout
        shown = coevolve("show", tmp_path / "runs/doubling", "doubling")
        assert "may know answers" in shown.stdout

    def test_propose_spends_no_evaluation(self, tmp_path: Path) -> None:
        with Endpoint([says(written(RIGHT))]) as endpoint:
            file = project(tmp_path, LLM.format(url=endpoint.base_url))
            made = coevolve(
                "propose", file, "--json", cwd=tmp_path, env=environment(endpoint), litellm=True
            )
        assert made.returncode == 0, made.stderr
        (candidate,) = json.loads(made.stdout)["candidates"]
        assert (candidate["name"], candidate["fault"]) == ("doubling", "")
        assert (tmp_path / "proposal/candidates/doubling/harness.py").read_text() == RIGHT
        assert not (tmp_path / "runs").exists()

    def test_propose_gives_as_many_as_asked_for(self, tmp_path: Path) -> None:
        file = project(tmp_path, '[proposer]\nkind = "function"\nfile = "propose.py"\n')
        (tmp_path / "propose.py").write_text(
            "def propose(view, count):\n"
            "    return [\n"
            "        {'name': name, 'files': {'harness.py': f'# {name}'.encode()}}\n"
            "        for name in ('transcript.txt', 'second')\n"
            "    ]\n"
        )
        made = coevolve("propose", file, "--count", "1", "--json", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        said = json.loads(made.stdout)
        assert [one["name"] for one in said["candidates"]] == ["transcript.txt"]
        assert said["notes"] == ["2 candidates were proposed, but 1 were requested."]


@pytest.mark.usefixtures("bwrap")
class TestAnAgent:
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        if shutil.which("mini", path=str(Path(sys.executable).parent)) is None:
            pytest.skip("mini-swe-agent is not installed beside this Python")

    def run(self, folder: Path, *commands: str) -> Any:
        finish = bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")  # ends the probe too
        with Endpoint([finish, *map(bash, commands), finish], key=KEY) as endpoint:
            file = project(folder, MINI)
            env = environment(endpoint)
            env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
            return coevolve("run", file, env=env), endpoint

    def test_writes_a_candidate_that_is_checked_evaluated_told_and_shown(
        self, tmp_path: Path
    ) -> None:
        form = {"name": "by-agent", "parent": "same", "hypothesis": "Two.", "kind": "explore"}
        write = (
            "coevolve query top 2 && mkdir -p proposals/by-agent && cd proposals/by-agent && "
            f"printf 'def double(n):\\n    return 2 * n\\n' > harness.py && "
            f"echo '{json.dumps(form)}' > proposal.json"
        )
        done, endpoint = self.run(tmp_path, write)
        assert done.returncode == 0, done.stderr + done.stdout
        folder = tmp_path / "runs/doubling"
        state = read_state(folder)
        assert state.chosen is not None
        assert state.chosen["candidate"] == "by-agent"
        assert state.proposing.tokens > 0
        assert "square" in json.dumps(endpoint.seen[2].body["messages"])  # what the query said
        shown = coevolve("show", folder, "by-agent")
        assert "Two." in shown.stdout
        assert "explore" in shown.stdout

    def test_finds_neither_labels_nor_journal_nor_keys_of_others(self, tmp_path: Path) -> None:
        look = (
            f"cat {tmp_path}/benchmark.py {tmp_path}/runs/doubling/run.db; ls {tmp_path}; "
            f"echo x >> {tmp_path}/runs/doubling/run.db; "
            "echo '# mi''ne' >> candidates/same/files/harness.py; "
            "cat candidates/same/files/harness.py; env | grep META_KEY"
        )
        done, endpoint = self.run(tmp_path, look)
        said = json.dumps(endpoint.seen[-1].body["messages"])
        assert "TEST_TASKS" not in said
        assert "SQLite format" not in said
        assert "META_KEY=" not in said
        assert "def double" in said
        assert "# mine" not in said
        assert "Read-only file system" in said
        state = read_state(tmp_path / "runs/doubling")  # whose seals are checked
        assert state.candidates["same"].status == Status.EVALUATED
        assert "proposed nothing" in done.stdout
