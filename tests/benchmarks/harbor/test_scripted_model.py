"""The scripted model: its protocol, its moves and its faults."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from harbor.agents.terminus_2.terminus_json_plain_parser import TerminusJSONPlainParser

from tests.benchmarks.harbor.terminal_tasks import EXAMPLE, TASKS, example_module

TOOLS = [{"type": "function", "function": {"name": "execute_commands", "parameters": {}}}]
PARSER: Any = TerminusJSONPlainParser


@pytest.fixture
def server() -> Iterator[Any]:
    with example_module("scripted_model").ScriptedModel() as running:
        yield running


def post(url: str, body: Any) -> Any:
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=20) as response:
        return json.load(response)


def ask(server: Any, messages: list[dict[str, Any]], **options: Any) -> Any:
    body = {"model": "scripted", "messages": messages, **options}
    return post(f"{server.url}/chat/completions", body)


def prompt(task: str, extra: str = "") -> list[dict[str, Any]]:
    text = (EXAMPLE / "tasks" / task / "instruction.md").read_text()
    return [{"role": "user", "content": f"Task Description:\n{text}{extra}\n"}]


def said(server: Any, messages: list[dict[str, Any]]) -> Any:
    """The next answer as Terminus 2 parses it; it is appended to the messages."""
    message = ask(server, messages)["choices"][0]["message"]
    messages.append(message)
    return PARSER().parse_response(message["content"])


def hear(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    messages.append({"role": "user", "content": text})
    return messages


def test_it_answers_in_the_format_of_terminus_2(server: Any) -> None:
    for folder in TASKS:
        found = said(server, prompt(folder.name))
        broken = folder.name == "sqlite-orders"
        assert bool(found.error) == broken, folder.name
        assert bool(found.commands) != broken, folder.name
        assert not found.is_task_complete


def test_it_answers_with_tool_calls_if_the_request_has_tools(server: Any) -> None:
    choice = ask(server, prompt("slow-build"), tools=TOOLS)["choices"][0]
    function = choice["message"]["tool_calls"][0]["function"]
    assert choice["finish_reason"] == "tool_calls"
    assert function["name"] == "execute_commands"
    assert json.loads(function["arguments"])["commands"][0]["keystrokes"].endswith("\n")


def test_the_same_messages_get_the_same_answer(server: Any) -> None:
    messages = prompt("log-errors")
    assert ask(server, messages) == ask(server, messages)


def test_it_counts_a_quarter_of_the_characters_as_tokens(server: Any) -> None:
    answer = ask(server, [{"role": "user", "content": "x" * 401}])
    content = answer["choices"][0]["message"]["content"]
    assert answer["usage"] == {
        "prompt_tokens": 101,
        "completion_tokens": -(-len(content) // 4),
        "total_tokens": 101 - (-len(content) // 4),
    }


def test_it_counts_only_the_errors_it_is_shown(server: Any) -> None:
    messages = prompt("log-errors")
    said(server, messages)
    shown = "00:00:00 ERROR [mail] a\n[... output limited ...]\n00:00:01 ERROR [login] b\n"
    found = said(server, hear(messages, shown))
    assert '{"mail": 1, "login": 1}' in found.commands[0].keystrokes


@pytest.mark.parametrize(
    ("question", "checks"),
    [("Are you sure you want to mark it as complete?", False), ("Verify each requirement.", True)],
)
def test_it_corrects_its_work_only_if_asked_to_check(
    server: Any, question: str, checks: bool
) -> None:
    messages = prompt("relink-releases")
    said(server, messages)
    assert said(server, hear(messages, "done")).is_task_complete
    assert bool(said(server, hear(messages, question)).commands) == checks


@pytest.mark.parametrize(
    ("snapshot", "tool"), [("", "jq -s"), ("\npython3: Python 3.11.2\nNot found: jq", "python3")]
)
def test_it_plans_with_the_tools_it_is_told_of(server: Any, snapshot: str, tool: str) -> None:
    found = said(server, prompt("event-report", snapshot))
    assert found.commands[0].keystrokes.startswith(tool)


def test_an_impatient_move_asks_for_more_than_half_of_the_time_budget(server: Any) -> None:
    found = said(server, prompt("queue-worker"))
    assert found.commands[0].duration > 30


def test_an_unknown_task_ends(server: Any) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Paint the fence."}]
    assert said(server, messages).commands
    assert said(server, hear(messages, "fence")).is_task_complete


@pytest.mark.parametrize(
    ("fault", "status"), [("rate-limit", 429), ("error", 500), ("overflow", 400)]
)
def test_a_fault_meets_as_many_requests_as_set(server: Any, fault: str, status: int) -> None:
    control = server.url.removesuffix("/v1") + "/control"
    post(control, {"fault": fault, "count": 1, "after": 1})
    ask(server, prompt("slow-build"))
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(server, prompt("slow-build"))
    caught.value.close()
    assert caught.value.code == status
    ask(server, prompt("slow-build"))
    with urllib.request.urlopen(control, timeout=20) as response:
        assert json.load(response) == {"requests": 3}


@pytest.mark.parametrize("fault", ["die", "hang"])
def test_a_server_that_ends_does_not_answer(server: Any, fault: str) -> None:
    server.fail(fault)
    request = urllib.request.Request(f"{server.url}/chat/completions", b'{"messages": []}')
    with pytest.raises(OSError, match=r"timed out|closed|reset"):
        urllib.request.urlopen(request, timeout=0.5)


def test_wrong_requests_are_refused_with_a_reason(server: Any) -> None:
    with pytest.raises(ValueError, match="choose one of"):
        server.fail("thunder")
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(server, prompt("slow-build"), stream=True)
    assert "does not stream" in caught.value.read().decode()
    caught.value.close()
