"""The real mini-swe-agent behind our sandbox, with a model of ours that says what to do."""

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import StopRun
from coevolve.proposers.base import View
from coevolve.proposers.command import CommandProposer, examine, preset
from coevolve.testing import propose_once

from ...models.endpoint import Act, Endpoint, says

pytest.importorskip("minisweagent", reason="mini-swe-agent is not installed")
pytestmark = pytest.mark.usefixtures("bwrap")

FORM = {"name": "by-mini", "parent": "start", "hypothesis": "Ones win.", "kind": "exploit"}
WRITE = f"""mkdir -p proposals/by-mini && cd proposals/by-mini
cp ../../candidates/start/files/harness.py .
sed -i 's/0/1/' harness.py
cat > proposal.json <<'END'
{json.dumps(FORM)}
END
"""


TEXT = ("--model-class", "litellm_textbased", "--config", "mini_textbased.yaml")
FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def call(command: str) -> Act:
    """A reply of the model that calls the agent's only tool."""
    arguments = json.dumps({"command": command})
    made = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return says("I go on.", finish="tool_calls", tool_calls=[made])


def bash(command: str) -> Act:
    """A reply of a model that knows no tools."""
    return says(f"I go on.\n```mswea_bash_command\n{command}\n```")


@pytest.fixture
def ask(view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if shutil.which("mini", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("the program mini is not beside this Python")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mini-secret-1")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")

    def ask(endpoint: Endpoint, arguments: Sequence[str] = TEXT) -> Any:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.base_url)
        agent = preset("mini-swe-agent", model="openai/unpriced", arguments=arguments)
        work = CommandProposer(agent, folder=tmp_path / "work", seconds=300)
        return asyncio.run(propose_once(work, view, 1))

    return ask


def test_a_candidate_is_written_and_paid_for(ask: Any) -> None:
    script = [bash("cat INSTRUCTIONS.md; env"), bash(WRITE), bash(FINISH)]
    with Endpoint(script, key="sk-mini-secret-1") as endpoint:
        made = ask(endpoint)
    (proposal,) = made.proposals
    assert proposal.name == "by-mini"
    assert proposal.files == {"harness.py": b"answer = 1\n"}
    assert (proposal.parents, proposal.hypothesis) == (("start",), "Ones win.")
    assert made.usage.tokens_in == 30
    assert made.usage.tokens_out > 9
    assert made.notes == ("mini-swe-agent did not report dollars.",)
    assert "sk-mini-secret-1" not in made.transcript
    assert "by-mini" in made.transcript
    assert "INSTRUCTIONS.md" in endpoint.seen[0].body["messages"][1]["content"]


@pytest.mark.long
def test_tools_can_be_called(ask: Any) -> None:
    pytest.importorskip("mcp", reason="litellm[mcp] is not installed, which tool calls need")
    with Endpoint([call(WRITE), call(FINISH)]) as endpoint:
        made = ask(endpoint, arguments=())
    assert [proposal.name for proposal in made.proposals] == ["by-mini"]
    assert made.usage.tokens_in == 20


@pytest.mark.long
def test_a_refused_key_stops_the_run(ask: Any) -> None:
    with (
        Endpoint(key="another") as endpoint,
        pytest.raises(StopRun, match=r"mini-swe-agent ended with exit status 1 .*set one of"),
    ):
        ask(endpoint)


def test_the_doctor_knows_its_version() -> None:
    found = {one.about: one for one in examine(preset("mini-swe-agent", model="openai/m"))}
    assert found["agent"].kind == "passed"
    assert "mini-swe-agent 2." in found["agent"].detail
