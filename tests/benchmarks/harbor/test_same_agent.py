"""An agent behaves the same in the sandbox and outside: prompts, commands, tokens and reward."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from harbor import Trial, TrialConfig
from harbor.models.trial.config import EnvironmentConfig, TaskConfig
from harbor.models.trial.result import TrialResult

from coevolve.benchmarks.harbor.agent_files import built_in
from coevolve.benchmarks.harbor.harbor_benchmark import NAMESPACE, HarborBenchmark
from coevolve.benchmarks.harbor.namespace_environment import NamespaceEnvironment
from coevolve.core.outcomes import Usage
from tests.benchmarks.harbor.terminal_tasks import EXAMPLE, example_module, harness
from tests.benchmarks.harbor.trials import Bench, FakeModel, needs_trials
from tests.effort import effort

pytestmark = [
    needs_trials,
    pytest.mark.filterwarnings("default"),  # Harbor and LiteLLM warn about themselves
]
TASK = "sales-totals"


class Recorded:
    """What an agent asked the model, what it typed, and what that cost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.prompts: list[Any] = []
        self.typed: list[str] = []
        self.tokens = (0, 0)
        scripted = example_module("scripted_model")
        answer, run = scripted.completion, NamespaceEnvironment.exec

        def completion(request: dict[str, Any]) -> dict[str, Any]:
            self.prompts.append(
                [
                    (message["role"], plain(message.get("content")))
                    for message in request["messages"]
                ]
            )
            found: dict[str, Any] = answer(request)
            used = found["usage"]
            self.tokens = (
                self.tokens[0] + used["prompt_tokens"],
                self.tokens[1] + used["completion_tokens"],
            )
            return found

        async def typed(environment: Any, command: str, *given: Any, **named: Any) -> Any:
            if "send-keys" in command:
                self.typed.append(command)
            return await run(environment, command, *given, **named)

        monkeypatch.setattr(scripted, "completion", completion)
        monkeypatch.setattr(NamespaceEnvironment, "exec", typed)


def plain(content: object) -> str:
    """A prompt without what differs between two runs of one task.

    That is the name of the host, and whether the screen was read a moment before or after the
    shell wrote its next prompt.
    """
    text = content if isinstance(content, str) else str(content)
    text = re.sub(r"(?<=root@)[\w.-]+", "host", text)
    return re.sub(r"(\s*root@host:\S*#)?\s*$", "", text)


class ScriptedClient(FakeModel):
    """The scripted model, asked without a server."""

    def model(self, **request: Any) -> dict[str, Any]:
        request.pop("overflow", None)
        reply = example_module("scripted_model").completion({"model": "scripted", **request})
        (choice,), used = reply["choices"], reply["usage"]
        usage = {
            "tokens_in": used["prompt_tokens"],
            "tokens_out": used["completion_tokens"],
            "dollars": 0.0,
        }
        self.asked += 1
        self.usage += Usage(tokens_in=usage["tokens_in"], tokens_out=usage["tokens_out"])
        message = choice["message"]
        found = {
            "text": message.get("content") or "",
            "finish": choice["finish_reason"],
            "scores": None,
            "usage": usage,
        }
        calls = message.get("tool_calls")
        return {**found, "tool_calls": calls} if calls else found


async def outside(folder: Path, name: str) -> Any:
    """Harbor's own trial, with the agent in this process."""
    with example_module("scripted_model").ScriptedModel() as server:
        config = TrialConfig(
            task=TaskConfig(path=EXAMPLE / "tasks" / TASK),
            trials_dir=folder,
            agent=harness(name, server.url),
            environment=EnvironmentConfig(import_path=NAMESPACE, kwargs={"root": "host"}),
        )
        return await (await Trial.create(config)).run()


@pytest.mark.parametrize("name", effort(["terminus_kira"], ["terminus_2", "terminus_kira"]))
def test_inside_is_as_outside(
    tmp_path: Path, environment_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with monkeypatch.context() as patch:
        free = Recorded(patch)
        result = asyncio.run(outside(tmp_path / "free", name))
    with monkeypatch.context() as patch:
        boxed = Recorded(patch)
        bench = Bench.__new__(Bench)
        bench.folder = tmp_path
        bench.benchmark = HarborBenchmark(
            path=EXAMPLE / "tasks",
            tasks=[TASK],
            starts=["terminus-2", "terminus-kira"],
            environment="namespace",
            environment_options={"root": "host"},
            trials_folder=tmp_path / "trials",
        )
        bench.model = ScriptedClient()
        bench.benchmark._client = bench.model  # type: ignore[assignment]
        source = (built_in()[name.replace("_", "-")] / "harness.py").read_text()
        tried = bench.tried(source, TASK)
    assert tried.score == result.verifier_result.rewards["reward"] == 1.0
    assert boxed.prompts == free.prompts
    assert boxed.typed == free.typed
    (written,) = (tmp_path / "trials").glob("*/result.json")
    for told, recorded in (
        (result.agent_result, free),
        (TrialResult.model_validate_json(written.read_text()).agent_result, boxed),
    ):
        assert told is not None
        assert recorded.tokens == (told.n_input_tokens, told.n_output_tokens)
