"""The trace of a trial: its steps in short, from the trajectory that the agent wrote (ATIF)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coevolve.benchmarks.harbor.agent_shim import AgentSession
from coevolve.models.model_client import clipped

MOST_STEPS = 120
LONGEST_TEXT = 1200
MOST_CHARACTERS = 48_000
MOST_FILE = 16 << 20


def trial_trace(result: Any, session: AgentSession, folder: Path) -> dict[str, Any]:
    """What proposers and people see of a trial.

    Args:
        result: Harbor's `TrialResult`.
        session: The agent's side of the trial.
        folder: The folder of the trial, with the agent's trajectory and the verifier's output.
    """
    raised = result.exception_info
    trace: dict[str, Any] = {
        "ended": "finished" if raised is None else raised.exception_type,
        "reward": None if result.verifier_result is None else result.verifier_result.rewards,
        "seconds": {
            phase: _seconds(getattr(result, phase, None))
            for phase in ("environment_setup", "agent_setup", "agent_execution", "verifier")
        },
        "commands": session.commands,
        "model_calls": session.model.asked,
        "verifier": _end_of(folder / "verifier" / "test-stdout.txt"),
    }
    if session.suspicions.count:
        trace["suspicious"] = session.suspicions.count
        trace["suspicious_commands"] = session.suspicions.shown
    steps = read_steps(folder / "agent" / "trajectory.json")
    if not steps:
        steps = [step_of_call(call) for call in session.model.calls]
    return {**trace, **shortened_steps(steps)}


def read_steps(path: Path) -> list[dict[str, Any]]:
    """The steps of a trajectory file, or none if it cannot be read.

    The candidate wrote it, so anything may be in it.
    """
    try:
        if path.stat().st_size > MOST_FILE:
            return []
        data = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return []
    steps = data.get("steps") if isinstance(data, Mapping) else None
    if not isinstance(steps, list):
        return []
    return [_step(step) for step in steps if isinstance(step, Mapping)]


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    """One step: who, what was said, what was called, and what came back."""
    short: dict[str, Any] = {"by": str(step.get("source", ""))[:20]}
    for key, name in (("message", "said"), ("reasoning_content", "thought")):
        if text := _text(step.get(key)):
            short[name] = text
    calls = step.get("tool_calls")
    if isinstance(calls, list) and calls:
        short["called"] = [
            {
                "tool": str(call.get("function_name", ""))[:80],
                "with": _text(call.get("arguments")),
            }
            for call in calls[:20]
            if isinstance(call, Mapping)
        ]
    seen = step.get("observation")
    results = seen.get("results") if isinstance(seen, Mapping) else None
    if isinstance(results, list):
        texts = [_text(one.get("content")) for one in results[:20] if isinstance(one, Mapping)]
        short["saw"] = [text for text in texts if text]
    return short


def step_of_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of the model as a step, for agents that write no trajectory or were cut off.

    >>> asked = [{"role": "system", "content": "Work."}, {"role": "user", "content": "$ "}]
    >>> step_of_call({"messages": asked, "answer": {"text": "ls", "finish": "stop"}})
    {'by': 'agent', 'said': 'ls', 'saw': ['$ ']}
    """
    messages = call.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else call.get("prompt")
    answer = call.get("answer")
    step: dict[str, Any] = {"by": "agent"}
    if not isinstance(answer, Mapping):
        step["failed"] = _text(call.get("error"))
    else:
        for key, name in (("text", "said"), ("reasoning", "thought"), ("reason", "failed")):
            if text := _text(answer.get(key)):
                step[name] = text
        if calls := answer.get("tool_calls"):
            step["called"] = _text(calls)
    seen = last.get("content", last) if isinstance(last, Mapping) else last
    return {**step, "saw": [_text(seen)]}


def _text(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return str(clipped(text, LONGEST_TEXT))


def shortened_steps(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The first and last steps that fit, and how many are left out between them.

    >>> shortened_steps([{"by": "agent", "said": "ls"}])
    {'steps': [{'by': 'agent', 'said': 'ls'}]}
    """
    kept = list(steps)
    left_out = 0
    while len(kept) > 2 and (
        len(kept) > MOST_STEPS or len(json.dumps(kept, default=str)) > MOST_CHARACTERS
    ):
        drop = max(1, len(kept) // 10)
        middle = len(kept) // 3
        del kept[middle : middle + drop]
        left_out += drop
    if not left_out:
        return {"steps": kept}
    return {"steps": kept, "steps_left_out": left_out, "left_out_after": len(kept) // 3}


def _seconds(timing: Any) -> float | None:
    if timing is None or timing.started_at is None or timing.finished_at is None:
        return None
    seconds: float = (timing.finished_at - timing.started_at).total_seconds()
    return round(seconds, 2)


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 4000))
            return file.read().decode("utf-8", "replace")[-2000:]
    except OSError:
        return ""
