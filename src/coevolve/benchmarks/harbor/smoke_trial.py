"""A check of an agent before its first trial, with a stub environment and a stub model."""

import json
import threading
from collections.abc import Mapping
from typing import Any

from coevolve.executors.isolation import CallInterrupted, Harness, HarnessFault
from coevolve.models.model_client import StubModel

MOST_CALLS = 12
"""The check passes after this many calls of the model."""
MOST_COMMANDS = 300
SECONDS = 120.0
INSTRUCTION = "This is a check of the agent. There is nothing to do; finish."
_FACTS: dict[str, Any] = {
    "task": "check",
    "user": None,
    "environment": {},
    "model": "openai/check",
    "window": 128_000,
    "session": "check",
}
_DONE = {"analysis": "Nothing to do.", "plan": "Finish.", "commands": [], "task_complete": True}


class _EnoughError(Exception):
    """The agent works; it need not end by itself."""


class StubServices:
    """An environment in which every command succeeds, and a model that ends the task at once."""

    def __init__(self) -> None:
        self._calls = self._commands = 0

    @property
    def services(self) -> Mapping[str, Any]:
        """The services of `harness.call`."""
        return {
            "exec": self._exec,
            "put": lambda path, data: {},
            "get": lambda path: {"data": ""},
            "log": lambda name, text: {},
            "llm": self._llm,
        }

    def _exec(self, command: object, **given: object) -> dict[str, Any]:
        self._commands += 1
        if self._commands > MOST_COMMANDS:
            raise _EnoughError
        return {"stdout": "", "stderr": "", "return_code": 0}

    def _llm(self, messages: object, **given: Any) -> dict[str, Any]:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise _EnoughError
        return ending_answer(given.get("tools"), self._calls)


class EndingModel(StubModel):
    """A stub of the engine whose model ends every task at once, for checks of the benchmark."""

    def __init__(self) -> None:
        super().__init__(window=_FACTS["window"])
        self._calls = 0

    def _model(self, **payload: Any) -> dict[str, Any]:
        self._calls += 1
        return {**ending_answer(payload.get("tools"), self._calls), "cached": False}


def ending_answer(tools: object, number: int) -> dict[str, Any]:
    """An answer that ends a task: in the format of Terminus 2, or as the call of a tool.

    Args:
        tools: Those of the request; one whose name mentions completion is called.
        number: Distinguishes the calls.
    """
    usage = {"tokens_in": 100, "tokens_out": 10, "dollars": 0.0}
    answer = {"finish": "stop", "scores": None, "usage": usage}
    if not isinstance(tools, list) or not tools:
        return {**answer, "text": json.dumps(_DONE)}
    names = [str(tool.get("function", {}).get("name")) for tool in tools]
    name = next((n for n in names if "complete" in n or "finish" in n), names[0])
    call = {
        "id": f"call-{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(_DONE)},
    }
    return {**answer, "text": "", "finish": "tool_calls", "tool_calls": [call]}


def check_agent(harness: Harness, options: Mapping[str, Any]) -> None:
    """Import the agent, set it up, and let it work for a few turns.

    Raises:
        HarnessFault: It cannot be imported, is not a Harbor agent, raises, or does not end.
    """
    services = StubServices().services
    late = threading.Timer(SECONDS, harness.interrupt)
    late.daemon = True
    late.start()
    try:
        harness.call("frame:setup", dict(options), _FACTS, services=services, concurrent=True)
        harness.call("frame:run", INSTRUCTION, services=services, concurrent=True)
    except _EnoughError:
        pass
    except CallInterrupted:
        raise HarnessFault(
            "check-limit", f"did not end its check within {SECONDS:g} s; it may wait too long"
        ) from None
    finally:
        late.cancel()
