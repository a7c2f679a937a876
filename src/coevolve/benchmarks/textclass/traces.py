"""What is kept of a trial for people and proposers."""

import json
from typing import Any

from coevolve.benchmarks.textclass.data import DataSet
from coevolve.benchmarks.textclass.evaluators import Verdict
from coevolve.benchmarks.textclass.rows import Row
from coevolve.models.client import ModelClient, clipped

MOST = 40_000
"""Characters of a trace as JSON; what the candidate prints goes beside it."""
_LENGTHS = (16_000, 8_000, 4_000, 2_000, 1_000, 400)


def validation_trace(
    data: DataSet, row: Row, answer: str, verdict: Verdict, client: ModelClient
) -> dict[str, Any]:
    """Everything about a trial: question, calls of the model, answer, and the right answer."""
    prompts = [call["prompt"] for call in client.calls if isinstance(call.get("prompt"), str)]
    task = len(data.words.prompt(row.question))
    trace = {
        "set": data.name,
        "question": row.question,
        "answer": answer,
        "read_as": verdict.answer,
        "gold": row.answer,
        "correct": verdict.correct,
        "metrics": dict(verdict.metrics),
        "context_chars": max(0, len(prompts[-1]) - task) if prompts else 0,
        "calls": client.calls,
        "calls_left_out": client.left_out,
    }
    return shortened(trace)


def failure_trace(data: DataSet, row: Row, client: ModelClient) -> dict[str, Any]:
    """What was asked until a trial broke down."""
    trace = {
        "set": data.name,
        "question": row.question,
        "gold": row.answer,
        "calls": client.calls,
        "calls_left_out": client.left_out,
    }
    return shortened(trace)


def test_trace(data: DataSet, verdict: Verdict) -> dict[str, Any]:
    """Which set, and whether the answer was right: nothing by which a harness could be fitted."""
    return {"set": data.name, "correct": verdict.correct}


def shortened(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace of a bounded length: long texts lose their middle, then the last calls go."""
    short = trace
    for longest in _LENGTHS:
        if _fits(short):
            return short
        short = _clip(trace, longest)
    calls = list(short["calls"])
    while calls and not _fits(short):
        dropped = (len(calls) + 1) // 2
        calls = calls[: len(calls) - dropped]
        short = {**short, "calls": calls, "calls_left_out": short["calls_left_out"] + dropped}
    return short


def _fits(trace: dict[str, Any]) -> bool:
    return len(json.dumps(trace)) <= MOST


def _clip(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return {key: _clip(part, longest) for key, part in value.items()}
    if isinstance(value, list):
        return [_clip(part, longest) for part in value]
    return clipped(value, longest)
