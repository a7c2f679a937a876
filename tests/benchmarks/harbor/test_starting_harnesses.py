"""The starting harnesses: how they wait, what they override, and that they differ."""

import ast
import asyncio
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from harbor.agents.terminus_2 import Terminus2

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


@pytest.mark.skipif(why_not() != "", reason=why_not())
@pytest.mark.filterwarnings("ignore")  # Harbor and LiteLLM warn about their own calls
def test_harnesses_differ_by_what_they_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HARBOR_TELEMETRY", "0")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    # in turn: all solve it; needs the whole output; needs a check; must not type a marker;
    # needs a look at the files
    tasks = ["sqlite-orders", "log-errors", "relink-releases", "vault-passphrase"]
    tasks.append("effective-settings")
    with example_module("scripted_model").ScriptedModel() as server:
        agents = [harness(name, server.url) for name in HARNESSES]
        found = asyncio.run(rewards(tmp_path, agents, tasks, concurrent=4))
    solved = {name: [results[task] for task in tasks] for name, results in found.items()}
    assert solved == {
        "terminus-2": [1, 0, 0, 1, 0],
        "terminus-kira": [1, 1, 1, 0, 0],
        "terminus-2-wait-after": [1, 0, 0, 1, 0],
        "terminus-2-environment-snapshot": [1, 0, 0, 1, 1],
    }
