"""What the agents print: recorded from their programs before a model of ours, and cut short.

claude 2.1.325, codex-cli 0.166.0, gemini 0.61.0 and opencode 1.18.33, each of which was told to
write a candidate and did so with one command; the trajectory is of mini-swe-agent 2.4.6.
"""

import json
from typing import Any

_SHELL = "mkdir -p proposals/new && echo 'x = 1' > proposals/new/harness.py && echo done"


def lines(*events: dict[str, Any]) -> str:
    """A stream of events, one in each line."""
    return "".join(f"{json.dumps(event)}\n" for event in events)


def _claude_message(name: str, block: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 30,
        "output_tokens": 1,
    }
    message = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [block],
        "stop_reason": None,
        "usage": usage,
    }
    return {
        "type": "assistant",
        "message": message,
        "parent_tool_use_id": None,
        "session_id": "40ceeb06",
    }


CLAUDE_WORK = lines(
    {
        "type": "system",
        "subtype": "init",
        "cwd": "/workspace",
        "session_id": "40ceeb06",
        "tools": ["Bash", "Read", "Write"],
        "mcp_servers": [],
        "model": "claude-sonnet-5-5",
        "permissionMode": "bypassPermissions",
        "apiKeySource": "ANTHROPIC_API_KEY",
        "claude_code_version": "2.1.325",
    },
    _claude_message("msg_1", {"type": "text", "text": "Working."}),
    _claude_message(
        "msg_1",
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": _SHELL}},
    ),
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"tool_use_id": "toolu_1", "type": "tool_result", "content": "done"}],
        },
        "tool_use_result": {"stdout": "done", "stderr": "", "interrupted": False},
    },
    _claude_message("msg_2", {"type": "text", "text": "All done."}),
)

CLAUDE_RESULT = lines(
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 527,
        "num_turns": 2,
        "result": "All done.",
        "session_id": "40ceeb06",
        "total_cost_usd": 0.001306,
        "usage": {
            "input_tokens": 200,
            "cache_creation_input_tokens": 40,
            "cache_read_input_tokens": 60,
            "output_tokens": 80,
        },
        "modelUsage": {
            "claude-sonnet-5-5": {
                "inputTokens": 200,
                "outputTokens": 80,
                "cacheReadInputTokens": 60,
                "cacheCreationInputTokens": 40,
                "costUSD": 0.001306,
            }
        },
    }
)

CLAUDE = CLAUDE_WORK + CLAUDE_RESULT

CLAUDE_REFUSED = lines(
    {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "num_turns": 1,
        "result": "Invalid API key · Please run /login",
        "total_cost_usd": 0,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "modelUsage": {},
    }
)

_CODEX_COMMAND = {
    "id": "item_1",
    "type": "command_execution",
    "command": f'/bin/bash -lc "{_SHELL}"',
    "aggregated_output": "done\n",
    "exit_code": 0,
    "status": "completed",
}

CODEX_WORK = lines(
    {"type": "thread.started", "thread_id": "01a1dfe5"},
    {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 2/5 (unexpected status 404 Not Found)"},
    {
        "type": "item.started",
        "item": {**_CODEX_COMMAND, "exit_code": None, "status": "in_progress"},
    },
    {"type": "item.completed", "item": _CODEX_COMMAND},
    {
        "type": "item.completed",
        "item": {"id": "item_2", "type": "agent_message", "text": "All done."},
    },
)

CODEX = CODEX_WORK + lines(
    {
        "type": "turn.completed",
        "usage": {
            "input_tokens": 200,
            "cached_input_tokens": 60,
            "cache_write_input_tokens": 0,
            "output_tokens": 80,
            "reasoning_output_tokens": 10,
        },
    }
)

CODEX_FAILED = lines(
    {"type": "thread.started", "thread_id": "01a1dfe5"},
    {"type": "turn.started"},
    {"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized"}},
)

GEMINI_WORK = lines(
    {"type": "init", "timestamp": "t", "session_id": "f71f194b", "model": "gemini-2.5-pro"},
    {"type": "message", "timestamp": "t", "role": "user", "content": "Write a candidate\n"},
    {
        "type": "tool_use",
        "timestamp": "t",
        "tool_name": "run_shell_command",
        "tool_id": "run_shell_command_0",
        "parameters": {"command": _SHELL},
    },
    {
        "type": "tool_result",
        "timestamp": "t",
        "tool_id": "run_shell_command_0",
        "status": "success",
        "output": "done",
    },
    {
        "type": "message",
        "timestamp": "t",
        "role": "assistant",
        "content": "All done.",
        "delta": True,
    },
)

GEMINI = GEMINI_WORK + lines(
    {
        "type": "result",
        "timestamp": "t",
        "status": "success",
        "stats": {
            "total_tokens": 294,
            "input_tokens": 200,
            "output_tokens": 80,
            "cached": 60,
            "input": 140,
            "duration_ms": 782,
            "tool_calls": 1,
        },
    }
)


def _opencode_step(number: int, reason: str) -> dict[str, Any]:
    part = {
        "id": f"prt_{number}",
        "reason": reason,
        "type": "step-finish",
        "tokens": {
            "total": 140,
            "input": 70,
            "output": 35,
            "reasoning": 5,
            "cache": {"write": 0, "read": 30},
        },
        "cost": 0.00015,
    }
    return {"type": "step_finish", "timestamp": 1, "sessionID": "ses_e2", "part": part}


OPENCODE_WORK = lines(
    {
        "type": "step_start",
        "timestamp": 1,
        "sessionID": "ses_e2",
        "part": {"type": "step-start"},
    },
    {
        "type": "tool_use",
        "timestamp": 1,
        "sessionID": "ses_e2",
        "part": {
            "type": "tool",
            "tool": "bash",
            "callID": "t1",
            "state": {"status": "completed", "input": {"command": _SHELL}, "output": "done\n"},
        },
    },
    _opencode_step(1, "tool-calls"),
)

OPENCODE = OPENCODE_WORK + lines(
    {
        "type": "text",
        "timestamp": 1,
        "sessionID": "ses_e2",
        "part": {"type": "text", "text": "All done."},
    },
    _opencode_step(2, "stop"),
)


def trajectory(*, cost: float = 0.0) -> dict[str, Any]:
    """What mini-swe-agent leaves after two calls of its model."""
    usage = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
    said = {
        "role": "assistant",
        "content": "Working.",
        "extra": {"response": {"usage": usage}, "cost": cost / 2},
    }
    return {
        "info": {
            "model_stats": {"instance_cost": cost, "api_calls": 2},
            "mini_version": "2.4.6",
            "exit_status": "Submitted",
            "submission": "",
        },
        "messages": [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "Please solve this issue"},
            said,
            {"role": "tool", "content": "{}"},
            said,
            {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }
