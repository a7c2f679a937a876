"""Command lines: of the presets, and of any other agent."""

from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.proposers.command import PRESETS, Agent, Call, Command, custom, preset

CALL = Call(prompt="Write it.", workspace="/workspace", confined=True)
TRUSTED = Call(prompt="Write it.", workspace="/runs/round-001", confined=False)
SKIPS = {
    "claude-code": "--dangerously-skip-permissions",
    "codex": "--dangerously-bypass-approvals-and-sandbox",
    "gemini": "yolo",
    "opencode": "--auto",
}


@pytest.mark.parametrize("name", PRESETS)
def test_the_message_reaches_every_agent_in_a_form_that_can_be_read(name: str) -> None:
    command = preset(name).command(CALL)
    assert (command.stdin or command.arguments[-1]) == "Write it."
    streamed = {"stream-json", "--json", "json", "/workspace/.agent/trajectory.json"}
    assert streamed & set(command.arguments)


@pytest.mark.parametrize(("name", "flag"), SKIPS.items())
def test_only_behind_our_sandbox_an_agent_need_not_ask(name: str, flag: str) -> None:
    assert flag in preset(name).command(CALL).arguments
    assert flag not in preset(name).command(TRUSTED).arguments


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("claude-code", {"model": "opus", "effort": "max"}, ["--model opus", "--effort max"]),
        ("claude-code", {"tools": ["Bash", "Edit"]}, ["--tools Bash,Edit"]),
        ("claude-code", {"dollars": 2.5}, ["--max-budget-usd 2.5"]),
        ("codex", {"model": "gpt-6"}, ["--model gpt-6"]),
        ("codex", {"effort": "high"}, ['--config model_reasoning_effort="high"']),
        ("gemini", {"model": "pro"}, ["--model pro"]),
        ("opencode", {"model": "a/b", "effort": "max"}, ["--model a/b", "--variant max"]),
        ("mini-swe-agent", {"model": "openai/m"}, ["--model openai/m"]),
        ("mini-swe-agent", {"dollars": 1}, ["--cost-limit 1"]),
        (
            "mini-swe-agent",
            {"effort": "low"},
            ["--config mini.yaml --config model.model_kwargs.reasoning_effort=low"],
        ),
        ("gemini", {"arguments": ["--debug"]}, ["--debug"]),
    ],
)
def test_options_become_arguments_of_the_agent(
    name: str, options: dict[str, Any], expected: list[str]
) -> None:
    arguments = " ".join(preset(name, **options).command(CALL).arguments)
    assert all(part in arguments for part in expected)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("codex", "dollars", 1.0), ("gemini", "effort", "high"), ("opencode", "tools", ["bash"])],
)
def test_an_option_that_would_have_no_effect_is_refused(
    name: str, option: str, value: object
) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ConfigError, match=f"{name} has no option for {option}"):
        preset(name, **options)


def test_an_unknown_agent_is_reported_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'claude-code'"):
        preset("claudecode")


def test_any_command_gets_what_its_placeholders_say() -> None:
    words = ["a", "--in={workspace}", "{prompt}", "{instructions}", "{model}-{model}"]
    agent = custom(words, model="m")
    assert agent.command(CALL) == Command(
        arguments=("--in=/workspace", "Write it.", "/workspace/INSTRUCTIONS.md", "m-m")
    )


def test_braces_in_a_message_stay() -> None:
    call = Call(prompt="{workspace} {x}", workspace="/w", confined=True)
    assert custom(["a", "{prompt}{workspace}"]).command(call).arguments == ("{workspace} {x}/w",)


def test_without_a_placeholder_the_message_is_on_standard_input() -> None:
    assert custom(["a", "-v"]).command(CALL) == Command(arguments=("-v",), stdin="Write it.")


@pytest.mark.parametrize("command", ["agent --task", [], ["a", 1]])
def test_a_command_is_a_list_of_words(command: Any) -> None:
    with pytest.raises(ConfigError, match="command must be a list"):
        custom(command)


def test_a_model_that_the_command_does_not_use_is_refused() -> None:
    with pytest.raises(ConfigError, match="command does not contain"):
        custom(["a"], model="m")
    with pytest.raises(ConfigError, match="no model is set"):
        custom(["a", "{model}"])


@pytest.mark.parametrize("path", ["/etc/passwd", "../other", "."])
def test_files_of_the_home_are_inside_the_home(path: str) -> None:
    with pytest.raises(ConfigError, match="inside the home"):
        Agent(name="a", program="a", command=lambda call: Command(arguments=()), home=(path,))


def test_a_misspelt_placeholder_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"unknown placeholder \{promt\}\. Did you mean"):
        custom(["my-agent", "--task", "{promt}"])
    custom(["my-agent", "--format", "{json}"])
