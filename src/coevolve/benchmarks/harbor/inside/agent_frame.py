"""Runs a Harbor agent inside the sandbox; its environment and its model are served from outside.

The benchmark sends this file to the sandbox, where it is executed before the candidate is
imported. It is trusted no more than the candidate. `coevolve_host.ask_async` reaches the services:
`exec`, `put`, `get` and `log` of the environment, and `llm` of the model.
"""

import asyncio
import base64
import inspect
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import coevolve_host  # type: ignore[import-not-found]

os.environ.update(
    HARBOR_TELEMETRY="0", LITELLM_LOCAL_MODEL_COST_MAP="True", HOME=tempfile.gettempdir()
)

Facts = dict[str, Any]
CLASS = "AgentHarness"
LOG_SECONDS = 30
MOST_LOG = 4 << 20
LLM_FIELDS = (
    "max_tokens",
    "temperature",
    "stop",
    "top_p",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
)

_agent_class: Any = None
_trial: Any = None


def load(name: str) -> Any:
    """Import the candidate's module and find its agent."""
    global _agent_class
    sys.meta_path.insert(0, ServedModel())
    module = __import__(name)
    from harbor import BaseAgent

    found = getattr(module, CLASS, None)
    if not (inspect.isclass(found) and issubclass(found, BaseAgent)):
        raise TypeError(f"harness.py must define a class {CLASS} that derives from a Harbor agent")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise TypeError(f"{CLASS} does not define {', '.join(missing)}")
    _agent_class = found
    return module


class ServedModel:
    """Replaces the functions of litellm that call a model, as soon as it is imported.

    Importing it takes seconds, so agents that do not use it do not wait for it.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "litellm":
            return None
        sys.meta_path.remove(self)
        spec: Any = find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_replace(module: Any) -> None:
            execute(module)
            module.acompletion, module.completion = acompletion, completion
            module.aresponses = module.responses = _no_responses

        spec.loader.exec_module = execute_and_replace
        return spec


def setup(options: Facts, facts: Facts) -> Facts:
    """Make the agent and let it set up the environment; returns its name and version."""
    global _trial
    _trial = Trial(options, facts)
    said: Facts = _trial.setup()
    return said


def run(instruction: str) -> Facts:
    """Let the agent work on the task; returns what it says of its run."""
    said: Facts = _trial.run(instruction)
    return said


class Trial:
    """One agent at work: its event loop, its log folder and the environment that it sees."""

    def __init__(self, options: Facts, facts: Facts) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.logs = Path(tempfile.mkdtemp(prefix="agent-"))
        self.sent: dict[str, int] = {}
        register(facts)
        self.agent = _agent_class(
            logs_dir=self.logs, model_name=facts["model"], **accepted(_agent_class, options)
        )
        self.environment = environment_class()(facts, self.logs)

    def setup(self) -> Facts:
        self.loop.run_until_complete(self.agent.setup(self.environment))
        return {"name": str(self.agent.name())[:100], "version": str(self.agent.version())[:100]}

    def run(self, instruction: str) -> Facts:
        from harbor.models.agent.context import AgentContext

        context = AgentContext()
        self.loop.run_until_complete(self._run(instruction, context))
        return {"metadata": plain(context.metadata)}

    async def _run(self, instruction: str, context: Any) -> None:
        sending = asyncio.ensure_future(self._send_logs())
        try:
            await self.agent.run(instruction, self.environment, context)
            post = getattr(self.agent, "populate_context_post_run", None)
            if post is not None:
                post(context)
        finally:
            sending.cancel()
            await self._send_new()

    async def _send_logs(self) -> None:
        """Send the log files regularly, so that those of a killed agent are kept."""
        while True:
            await asyncio.sleep(LOG_SECONDS)
            await self._send_new()

    async def _send_new(self) -> None:
        for path in sorted(self.logs.glob("*.json"))[:20]:
            try:
                data = path.read_bytes()[:MOST_LOG]
            except OSError:
                continue
            if self.sent.get(path.name) != hash(data):
                self.sent[path.name] = hash(data)
                await coevolve_host.ask_async(
                    "log", name=path.name, text=data.decode("utf-8", "replace")
                )


def accepted(agent: Any, options: Facts) -> Facts:
    """The options that an agent takes: all of them if it takes any."""
    takes = inspect.signature(agent.__init__).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values()):
        model = getattr(agent, "options_model", None)
        known = set(takes) | (set(model.model_fields) if model is not None else set())
    else:
        known = set(takes)
    return {name: value for name, value in options.items() if name in known}


def environment_class() -> Any:
    """The environment as the agent sees it; every method asks the host."""
    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.environments.capabilities import EnvironmentCapabilities
    from harbor.models.task.config import EnvironmentConfig
    from harbor.models.trial.paths import TrialPaths

    class ServedEnvironment(BaseEnvironment):
        """The environment of the task, on the other side of the pipe."""

        def __init__(self, facts: Facts, logs: Path) -> None:
            super().__init__(
                environment_dir=logs,
                environment_name=facts["task"],
                session_id=facts["session"],
                trial_paths=TrialPaths(trial_dir=logs),
                task_env_config=EnvironmentConfig(**facts["environment"]),
            )
            self.default_user = facts["user"]

        @staticmethod
        def type() -> str:
            return "served"

        @property
        def capabilities(self) -> EnvironmentCapabilities:
            return EnvironmentCapabilities(disable_internet=True)

        def _validate_definition(self) -> None:
            pass

        async def start(self, force_build: bool) -> None:
            raise RuntimeError("the environment has started already")

        async def stop(self, delete: bool) -> None:
            raise RuntimeError("the environment ends with the trial")

        async def exec(
            self,
            command: str,
            cwd: Any = None,
            env: dict[str, str] | None = None,
            timeout_sec: Any = None,
            user: str | int | None = None,
        ) -> ExecResult:
            done = await coevolve_host.ask_async(
                "exec",
                command=command,
                cwd=None if cwd is None else str(cwd),
                env=env,
                timeout_sec=timeout_sec,
                user=user,
            )
            raise_error(done)
            return ExecResult(
                stdout=done["stdout"], stderr=done["stderr"], return_code=done["return_code"]
            )

        async def upload_file(self, source_path: Any, target_path: Any) -> None:
            data = base64.b64encode(Path(source_path).read_bytes()).decode()
            raise_error(await coevolve_host.ask_async("put", path=str(target_path), data=data))

        async def upload_dir(self, source_dir: Any, target_dir: Any) -> None:
            for path in sorted(Path(source_dir).rglob("*")):
                if path.is_file():
                    target = Path(str(target_dir)) / path.relative_to(source_dir)
                    await self.upload_file(path, target)

        async def download_file(self, source_path: Any, target_path: Any) -> None:
            done = await coevolve_host.ask_async("get", path=str(source_path))
            raise_error(done)
            Path(target_path).parent.mkdir(parents=True, exist_ok=True)
            Path(target_path).write_bytes(base64.b64decode(done["data"]))

        async def download_dir(self, source_dir: Any, target_dir: Any) -> None:
            listed = await self.exec(f"cd {str(source_dir)!r} && find . -type f | head -n 1000")
            for name in (listed.stdout or "").splitlines():
                await self.download_file(
                    f"{source_dir}/{name.removeprefix('./')}",
                    Path(target_dir) / name.removeprefix("./"),
                )

    return ServedEnvironment


def raise_error(done: Facts) -> None:
    """Raise an error of the environment, as Harbor's environments do."""
    if "error" in done:
        kind = TimeoutError if done.get("kind") == "TimeoutError" else RuntimeError
        raise kind(done["error"])


def register(facts: Facts) -> None:
    """Tell litellm the window of the model, which agents look up."""
    litellm = sys.modules.get("litellm")
    if litellm is None:
        return
    known: Facts = {
        "litellm_provider": "openai",
        "mode": "chat",
        "supports_function_calling": True,
    }
    if facts["window"]:
        known |= {"max_input_tokens": facts["window"], "max_tokens": facts["window"]}
    litellm.register_model({facts["model"]: known, facts["model"].split("/", 1)[-1]: known})


async def acompletion(model: Any = None, messages: Any = (), **given: Any) -> Any:
    """What agents call as `litellm.acompletion`: asks the model of the run."""
    request = llm_request(messages, given)
    return reply_of(model, await coevolve_host.ask_async("llm", **request))


def completion(model: Any = None, messages: Any = (), **given: Any) -> Any:
    """What agents call as `litellm.completion`."""
    return reply_of(model, coevolve_host.ask("llm", **llm_request(messages, given)))


def llm_request(messages: Any, given: Facts) -> Facts:
    """The request to the model: the messages, and the fields that the host knows."""
    if given.get("stream"):
        raise bad_request("stream=True is not available here; leave it out")
    request = {name: given[name] for name in LLM_FIELDS if given.get(name) is not None}
    if "max_completion_tokens" in given and "max_tokens" not in request:
        request["max_tokens"] = given["max_completion_tokens"]
    schema: Any = request.get("response_format")
    if hasattr(schema, "model_json_schema"):
        request["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": schema.__name__, "schema": schema.model_json_schema()},
        }
    if request.get("reasoning_effort") in ("default", "none"):
        del request["reasoning_effort"]
    return {"messages": [message_of(message) for message in messages], **request}


def message_of(message: Any) -> Any:
    """A message as plain JSON, without fields that the host does not know."""
    if hasattr(message, "model_dump"):
        message = message.model_dump(exclude_none=True)
    known = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content")
    return plain({name: message[name] for name in known if message.get(name) is not None})


def reply_of(model: object, answer: Facts) -> Any:
    """The answer of the model as litellm's own response."""
    import litellm.exceptions

    if "refused" in answer:
        raise bad_request(answer["refused"])
    if answer.get("overflow"):
        raise litellm.exceptions.ContextWindowExceededError(
            message=answer["reason"], model=str(model), llm_provider="openai"
        )
    message = {"role": "assistant", "content": answer["text"]}
    if answer.get("tool_calls"):
        message["tool_calls"] = answer["tool_calls"]
    if answer.get("reasoning"):
        message["reasoning_content"] = answer["reasoning"]
    usage = answer["usage"]
    tokens_in, tokens_out = usage["tokens_in"], usage["tokens_out"]
    response: Any = litellm.ModelResponse(
        id=f"call-{time.monotonic_ns()}",
        model=str(model),
        choices=[{"index": 0, "message": message, "finish_reason": answer["finish"]}],
        usage={
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    )
    response._hidden_params = {"response_cost": usage.get("dollars", 0.0)}
    return response


def bad_request(text: str) -> Exception:
    """The error of a request that the host refuses."""
    import litellm.exceptions

    return litellm.exceptions.BadRequestError(message=text, model="", llm_provider="openai")


def _no_responses(*args: object, **kwargs: object) -> Any:
    raise bad_request("the Responses API is not available here; use litellm.acompletion")


def plain(value: Any) -> Any:
    """A value as JSON; anything else in it becomes text."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(exclude_none=True))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
