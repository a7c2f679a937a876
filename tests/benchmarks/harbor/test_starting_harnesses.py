"""The starting harnesses: how they wait, what they override, and that they differ."""

import ast
import asyncio
import importlib
import json
import re
from pathlib import Path
from typing import Any

import litellm
import pytest
from harbor.agents.terminus_2 import Terminus2
from harbor.environments.base import ExecResult
from harbor.llms.chat import Chat
from litellm.exceptions import ContextWindowExceededError

from tests.benchmarks.harbor.terminal_tasks import (
    HARNESSES,
    example_module,
    harness,
    rewards,
    why_not,
)

PROMPT = "root@box:/app#"


def module(name: str) -> Any:
    return importlib.import_module(f"coevolve.benchmarks.harbor.harnesses.{name}.harness")


class Screens:
    """A terminal whose screen changes with every look."""

    def __init__(self, *screens: str) -> None:
        self.screens, self.looks, self.waited = screens, 0, 0.0

    async def capture_pane(self) -> str:
        self.looks += 1
        return self.screens[min(self.looks, len(self.screens)) - 1]

    async def send_keys(self, keys: str, block: bool, min_timeout_sec: float) -> None:
        self.waited += min_timeout_sec


def waited(monkeypatch: pytest.MonkeyPatch, keys: str, duration: float, *screens: str) -> float:
    """The seconds that wait_after spends on these screens."""
    terminal = Screens(*screens)

    async def sleep(seconds: float) -> None:
        terminal.waited += seconds

    found = module("wait_after")
    monkeypatch.setattr(found.asyncio, "sleep", sleep)
    asyncio.run(found.wait_after(terminal, keys, duration))
    return terminal.waited


RUNNING, READY = f"{PROMPT} make", f"{PROMPT} make\ndone\n{PROMPT}\n\n"


def test_the_wait_ends_when_the_prompt_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, "make\n", 60, PROMPT, RUNNING, READY, READY) == 0.5 + 0.5 + 0.75


@pytest.mark.parametrize(
    "screens",
    [
        (PROMPT, PROMPT),  # the command has not echoed
        (PROMPT, *(f"{PROMPT} make\n{number}\n{PROMPT}" for number in range(99))),  # not quiet
        (PROMPT, f"{PROMPT} python3\n>>>"),  # another prompt
    ],
)
def test_without_one_of_the_three_conditions_the_wait_is_full(
    monkeypatch: pytest.MonkeyPatch, screens: tuple[str, ...]
) -> None:
    assert waited(monkeypatch, "make\n", 60, *screens) >= 60


@pytest.mark.parametrize("keys", ["C-c", "", "yes"])
def test_keys_that_run_no_command_keep_the_stock_wait(
    monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    assert waited(monkeypatch, keys, 7, PROMPT, READY) == 7


@pytest.mark.parametrize("name", HARNESSES)
def test_a_docstring_names_the_private_methods_that_are_overridden(name: str) -> None:
    source = Path(str(module(name).__file__)).read_text()
    tree = ast.parse(source)
    agent = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {
        node.name
        for node in agent.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and re.match(r"_[^_]", node.name)
        and hasattr(Terminus2, node.name)
    }
    text = ast.get_docstring(tree) or ""
    assert {method for method in methods if f"`{method}`" not in text} == set()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ('{"analysis": "", "plan": "", "commands": [{"keystrokes": "ls\\n"}]}', ""),
        ('{"commands": [{"keystrokes": "ls"', "not as defined"),
        ('{"analysis": ""}', "not as defined"),
        ('["ls"]', "not as defined"),
    ],
)
def test_wrong_arguments_of_a_tool_call_are_reported(arguments: str, error: str) -> None:
    function = {"name": "execute_commands", "arguments": arguments}
    message = {"tool_calls": [{"id": "call_1", "function": function}]}
    calls, errors = module("terminus_kira").parsed_calls(message)
    assert bool(calls) == (not error)
    assert error in " ".join(errors)


def test_an_answer_without_a_tool_call_is_reported() -> None:
    assert "No tool call" in module("terminus_kira").parsed_calls({"content": "Hello"})[1][0]


class Model:
    """Answers of a model, in turn; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), list[Any]()

    async def __call__(self, **request: Any) -> Any:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        message = {"role": "assistant", **answer}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        return litellm.ModelResponse(choices=[{"index": 0, "message": message}], usage=usage)


def called(tool: str, **arguments: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call_{tool}", "type": "function", "function": function}]}


def kira(folder: Path, monkeypatch: pytest.MonkeyPatch, model: Model) -> tuple[Any, Chat]:
    monkeypatch.setattr(litellm, "acompletion", model)
    agent = module("terminus_kira").AgentHarness(logs_dir=folder, model_name="openai/scripted")
    agent._chat = Chat(agent._llm)
    agent._session = Screens(PROMPT)
    return agent, agent._chat


class Files:
    """An environment whose files are all the same image."""

    async def exec(self, command: str, timeout_sec: int) -> ExecResult:
        return ExecResult(stdout="iVBORw0KGgo=\n", stderr="", return_code=0)


@pytest.mark.filterwarnings("ignore")  # LiteLLM warns about its own calls
def test_an_image_is_shown_to_the_model_and_its_answer_is_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = called("image_read", file_path="/app/a.png", image_read_instruction="What is it?")
    model = Model(look, {"content": "A cat."}, called("task_complete"))
    agent, chat = kira(tmp_path, monkeypatch, model)
    agent._environment = Files()
    _, complete, feedback, *_ = asyncio.run(agent._handle_llm_interaction(chat, "Look."))
    image = model.requests[1]["messages"][0]["content"][1]["image_url"]["url"]
    assert (complete, feedback) == (True, "")
    assert image == "data:image/png;base64,iVBORw0KGgo="
    assert model.requests[2]["messages"][-1]["content"] == "A cat."
    assert chat.total_input_tokens == 30


@pytest.mark.filterwarnings("ignore")  # LiteLLM warns about its own calls
def test_a_conversation_that_is_too_long_continues_from_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflow = ContextWindowExceededError("too long", "scripted", "openai")
    model = Model(overflow, {"content": "The file is written."}, called("task_complete"))
    agent, chat = kira(tmp_path, monkeypatch, model)
    complete = asyncio.run(agent._handle_llm_interaction(chat, "Output.", "Write a file."))[1]
    (first,) = model.requests[2]["messages"]
    assert complete
    assert "Write a file." in first["content"]
    assert "The file is written." in first["content"]


@pytest.fixture
def trial_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for trials, with the settings they need in the environment."""
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HARBOR_TELEMETRY", "0")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return tmp_path


@pytest.mark.skipif(why_not() != "", reason=why_not())
@pytest.mark.filterwarnings("ignore")  # Harbor and LiteLLM warn about their own calls
def test_harnesses_differ_by_what_they_do(trial_folder: Path) -> None:
    # in turn: all solve it; needs the whole output; needs a check; must not type a marker;
    # needs a look at the files
    tasks = ["sqlite-orders", "log-errors", "relink-releases", "vault-passphrase"]
    tasks.append("effective-settings")
    with example_module("scripted_model").ScriptedModel() as server:
        agents = [harness(name, server.url) for name in HARNESSES]
        found = asyncio.run(rewards(trial_folder, agents, tasks, concurrent=4))
    solved = {name: [results[task] for task in tasks] for name, results in found.items()}
    assert solved == {
        "terminus-2": [1, 0, 0, 1, 0],
        "terminus-kira": [1, 1, 1, 0, 0],
        "terminus-2-wait-after": [1, 0, 0, 1, 0],
        "terminus-2-environment-snapshot": [1, 0, 0, 1, 1],
    }


@pytest.mark.long  # 40 seconds of waiting; the waits themselves are tested above
@pytest.mark.skipif(why_not() != "", reason=why_not())
@pytest.mark.filterwarnings("ignore")  # Harbor and LiteLLM warn about their own calls
def test_a_harness_that_looks_at_the_terminal_finishes_where_fixed_waits_run_out_of_time(
    trial_folder: Path,
) -> None:
    with example_module("scripted_model").ScriptedModel() as server:
        agents = [harness(name, server.url, 40) for name in ("terminus_2", "wait_after")]
        found = asyncio.run(rewards(trial_folder, agents, ["slow-build"]))
    assert found == {"terminus-2": {"slow-build": 0}, "terminus-2-wait-after": {"slow-build": 1}}
