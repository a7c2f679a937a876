"""The agent that Harbor sees: it runs the candidate's agent in our sandbox.

Harbor imports an agent into the process that controls the container engine and has the keys. This
agent calls the candidate's agent in the sandbox instead, and gives it environment and model.
"""

import asyncio
import base64
import contextlib
import contextvars
import functools
import shlex
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, override

from harbor import AgentContext, BaseAgent, BaseEnvironment
from harbor.agents.installed.base import NonZeroAgentExitCodeError

from coevolve.benchmarks.harbor.reward_guard import (
    Suspicions,
    forget_processes,
    remember_processes,
)
from coevolve.executors.isolation import CallInterrupted, Harness, HarnessFault
from coevolve.models.model_client import ModelClient

MOST_OUTPUT = 1 << 20
"""Characters of one stream of a command that reach the agent; the middle of more is left out."""
MOST_FILE = 16 << 20
"""Bytes of a file that the agent uploads or downloads."""
FILE_PIECE = 6 << 20
"""Bytes of a file that one command reads."""
MOST_LOGS = 64 << 20
"""Bytes of log files of one trial."""
LONGEST_COMMAND = 1 << 20
"""Characters of a command."""


@dataclass(slots=True, kw_only=True)
class AgentSession:
    """What the agent of one trial needs, and how it ended.

    Attributes:
        harness: The candidate.
        model: The model of the run, within the caps of the trial.
        facts: What the agent may know of the task and the model.
        options: Arguments of the agent's constructor.
        thread: Where the candidate is called. The kernel ends a sandbox with the thread that
            started it, so that it must last as long.
        error: Why the agent ended early, if it did.
        broken: The error of the environment when a command could not be run, if that happened.
        commands: How many commands it ran.
        suspicions: Commands that touch what only the verifier should.
        waited: For how many seconds the agent had waited for the model when its time was up.
    """

    harness: Harness
    model: ModelClient
    facts: Mapping[str, Any]
    options: Mapping[str, Any]
    thread: Executor
    error: BaseException | None = None
    broken: str = ""
    commands: int = 0
    suspicions: Suspicions = field(default_factory=Suspicions)
    waited: float = 0.0
    _asked: dict[object, float] = field(default_factory=dict, init=False)

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Note that a request to the model is under way."""
        key = object()
        self._asked[key] = time.monotonic()
        try:
            yield
        finally:
            del self._asked[key]

    def time_is_up(self) -> None:
        """Note for how long the agent has waited for the model."""
        begun = min(list(self._asked.values()), default=None)
        self.waited = 0.0 if begun is None else time.monotonic() - begun


_sessions: dict[str, AgentSession] = {}
"""Sessions by name: Harbor builds its agents from plain JSON."""


def open_session(name: str, session: AgentSession) -> None:
    """Make a session known to the agent that Harbor will build."""
    _sessions[name] = session


def close_session(name: str) -> None:
    """Forget a session."""
    _sessions.pop(name, None)
    forget_processes(name)


class SandboxedAgent(BaseAgent):
    """The candidate's agent, behind the pipe of its sandbox.

    Args:
        session: The name of an open `AgentSession`.
        arguments: Those of `BaseAgent`.
    """

    def __init__(self, *arguments: Any, session: str, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._session = _sessions[session]
        self._said: dict[str, str] = {}

    @staticmethod
    @override
    def name() -> str:
        return "coevolve-sandboxed"

    @override
    def version(self) -> str:
        return self._said.get("version", "1")

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        session = self._session
        await remember_processes(environment)
        facts = {**session.facts, "session": environment.session_id}
        said = await self._call(environment, "frame:setup", dict(session.options), facts)
        if isinstance(said, dict):
            self._said = {name: str(said.get(name, "")) for name in ("name", "version")}

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        try:
            said = await self._call(environment, "frame:run", instruction)
            metadata = said.get("metadata") if isinstance(said, dict) else None
            context.metadata = metadata if isinstance(metadata, dict) else None
        finally:
            used = self._session.model.usage
            context.n_input_tokens, context.n_output_tokens = used.tokens_in, used.tokens_out
            context.cost_usd = used.dollars

    async def _call(self, environment: BaseEnvironment, function: str, *arguments: object) -> Any:
        """Call a function of the frame in the thread of the sandbox; cancelling it ends both."""
        session = self._session
        served = EnvironmentServices(session, environment, self.logs_dir)
        call = functools.partial(
            session.harness.call,
            function,
            *arguments,
            services={**served.services, **model_services(session)},
            concurrent=True,
        )
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(session.thread, contextvars.copy_context().run, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            session.time_is_up()
            session.harness.interrupt()
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # the interruption, which is known
            raise
        except CallInterrupted:
            raise
        except HarnessFault as fault:
            # Harbor runs the verifier after this error, and the task may be solved.
            session.error = fault
            raise NonZeroAgentExitCodeError(str(fault)) from fault
        except BaseException as error:
            session.error = error
            raise


def model_services(session: AgentSession) -> Mapping[str, Callable[..., Any]]:
    """The model as the frame asks for it."""

    def llm(messages: object, **given: object) -> dict[str, Any]:
        with session.asking():
            return session.model.model(messages=messages, overflow="reply", **given)

    return {"llm": llm}


class EnvironmentServices:
    """The environment of a task as the frame asks for it.

    Errors that a command can cause are returned, and the frame raises them in the agent: they are
    the agent's to handle.

    Args:
        session: The trial.
        environment: Harbor's environment.
        logs: Where log files of the agent are kept.
    """

    def __init__(self, session: AgentSession, environment: BaseEnvironment, logs: Path) -> None:
        self._session, self._environment, self._logs = session, environment, logs
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._logged: dict[str, int] = {}

    @property
    def services(self) -> Mapping[str, Callable[..., Any]]:
        """The services of `harness.call`."""
        return {"exec": self.exec, "put": self.put, "get": self.get, "log": self.log}

    def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: float | None = None,
        user: str | int | None = None,
    ) -> Future[dict[str, Any]]:
        """Run a command in the environment."""
        session = self._session
        session.commands += 1
        session.suspicions.look(command)
        return self._scheduled(self._exec(command, cwd, env, timeout_sec, user))

    def put(self, path: str, data: str) -> Future[dict[str, Any]]:
        """Write a file, given in base64, into the environment."""
        self._session.suspicions.look(path)
        return self._scheduled(self._put(path, data))

    def get(self, path: str) -> Future[dict[str, Any]]:
        """Read a file of the environment, in base64."""
        self._session.suspicions.look(path)
        return self._scheduled(self._get(path))

    def log(self, name: str, text: str) -> dict[str, Any]:
        """Keep a log file of the agent, such as its trajectory."""
        safe = PurePosixPath(str(name)).name
        if not safe.endswith(".json") or safe.startswith("."):
            return {"error": f"a log file must be named *.json, not {name!r:.80}"}
        others = sum(size for other, size in self._logged.items() if other != safe)
        data = str(text).encode("utf-8", "replace")
        if others + len(data) > MOST_LOGS or len(self._logged) > 100:
            return {"error": "the agent has written too many logs"}
        self._logged[safe] = len(data)
        self._logs.mkdir(parents=True, exist_ok=True)
        (self._logs / safe).write_bytes(data)
        return {}

    async def _exec(
        self,
        command: str,
        cwd: str | None,
        env: dict[str, str] | None,
        timeout_sec: float | None,
        user: str | int | None,
    ) -> dict[str, Any]:
        if not isinstance(command, str) or len(command) > LONGEST_COMMAND:
            return {"error": f"a command must be a text of at most {LONGEST_COMMAND:,} characters"}
        seconds = None if timeout_sec is None else max(1, int(timeout_sec))
        done = await self._environment.exec(
            command, cwd=cwd, env=env, timeout_sec=seconds, user=user
        )
        return {
            "stdout": shortened(done.stdout),
            "stderr": shortened(done.stderr),
            "return_code": done.return_code,
        }

    async def _put(self, path: str, data: str) -> dict[str, Any]:
        content = base64.b64decode(data, validate=True)
        if len(content) > MOST_FILE:
            return {"error": f"a file must have at most {MOST_FILE:,} bytes"}
        with tempfile.TemporaryDirectory(prefix="coevolve-put-") as folder:
            source = Path(folder, "file")
            source.write_bytes(content)
            await self._environment.upload_file(source, path)
        return {}

    async def _get(self, path: str) -> dict[str, Any]:
        # Read by a command in the environment: a link there must not lead to a file out here.
        # In pieces, because environments keep a limited output of one command.
        quoted = shlex.quote(str(path))
        data = bytearray()
        while len(data) <= MOST_FILE:
            done = await self._environment.exec(
                f"test -f {quoted} && tail -c +{len(data) + 1} {quoted} | head -c {FILE_PIECE} "
                "| base64 -w 0"
            )
            try:
                piece = base64.b64decode(done.stdout or "", validate=True)
            except ValueError:
                piece = b""
            if done.return_code or (done.stdout and not piece):
                reason = shortened(done.stderr or done.stdout)
                return {"error": f"{path} cannot be read: {reason}"}
            data += piece
            if len(piece) < FILE_PIECE:
                return {"data": base64.b64encode(data).decode("ascii")}
        return {"error": f"a file must have at most {MOST_FILE:,} bytes"}

    async def _told(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """The result of some work in the environment, or its error as data."""
        try:
            return await work
        except Exception as error:
            kind, said = type(error).__name__, str(error)
            if not isinstance(error, TimeoutError) and "timed out" not in said:
                self._session.broken = f"{kind}: {said}"[:500]
            return {"error": f"{kind}: {said}"[:2000], "kind": kind}

    def _scheduled(self, work: Coroutine[Any, Any, dict[str, Any]]) -> Future[dict[str, Any]]:
        """Run something in Harbor's event loop, in the context of the agent's phase."""
        future: Future[dict[str, Any]] = Future()

        def start() -> None:
            task = self._loop.create_task(self._told(work), context=self._context)
            task.add_done_callback(functools.partial(_settle, future))
            future.add_done_callback(
                lambda done: (
                    self._loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None
                )
            )

        self._loop.call_soon_threadsafe(start)
        return future


def _settle(future: Future[dict[str, Any]], task: asyncio.Task[dict[str, Any]]) -> None:
    if future.cancelled():
        return
    if task.cancelled():
        future.cancel()
    else:
        future.set_result(task.result())


def shortened(text: str | None) -> str:
    """An output; the middle of a long one is left out.

    >>> len(shortened("x" * (MOST_OUTPUT + 1000))) < MOST_OUTPUT + 100
    True
    """
    if text is None:
        return ""
    if len(text) <= MOST_OUTPUT:
        return text
    half = MOST_OUTPUT // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"
