"""From `[model]` to the gateway of a run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.models.response_cache import ResponseCache
from coevolve.runs import RunConfig
from coevolve.runs.building import workers

HEAD = {"model": "m", "identity": {"name": "tiny"}, "window": None, "scores": False}
REPLY = {"text": "forged", "finish": "stop", "tokens_in": 1, "tokens_out": 1}
CALL = {
    "model": "m",
    "request": {"prompt": "Wet?", "max_tokens": 1024, "temperature": 0.0},
    "reply": REPLY,
    "cached": False,
}


def config(**model: Any) -> RunConfig:
    return RunConfig.from_json(
        {
            "search": {"rounds": 1},
            "benchmark": {"kind": "textclass"},
            "proposer": {"kind": "scripted", "folders": ["vote"]},
            "model": {"name": "tiny", **model},
        }
    )


@pytest.mark.parametrize(
    ("model", "at_once"),
    [
        ({}, 32),
        ({"concurrency": 5}, 5),
        ({"requests_per_minute": 10}, 10),
        ({"requests_per_minute": 500}, 32),
    ],
)
def test_trials_keep_the_model_busy_and_do_not_wait_in_line(
    model: dict[str, Any], at_once: int
) -> None:
    assert workers(config(**model)) == at_once


def test_a_recording_answers_for_its_own_run_alone(tmp_path: Path) -> None:
    lines = [json.dumps(line) + "\n" for line in (HEAD, CALL)]
    (tmp_path / "calls.jsonl").write_text("".join(lines))
    settings = config(replay="calls.jsonl", cache="all.db").model
    assert settings is not None

    async def ask() -> dict[str, Any]:
        gateway = settings.gateway(base=tmp_path, folder=tmp_path / "run")
        try:
            return await gateway.ask(prompt="Wet?")
        finally:
            await gateway.close()

    assert asyncio.run(ask())["text"] == "forged"
    assert not (tmp_path / "all.db").exists()
    with ResponseCache(tmp_path / "run" / "responses.db") as cache:
        assert len(cache) == 1
