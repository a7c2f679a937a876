"""Calls of a candidate's functions in a sandbox.

Every message may be forged, because the candidate can write to the pipe itself. It can only
change its own answer that way.
"""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from coevolve.errors import InputError
from coevolve.executors.isolation.execution import Executed, execute
from coevolve.executors.isolation.launch import (
    HarnessFault,
    Isolation,
    Launch,
    Limits,
    Program,
    ReportedFault,
    SandboxError,
)
from coevolve.executors.isolation.sandbox import Sandbox, exit_fault
from coevolve.executors.isolation.system_paths import site_packages
from coevolve.search.candidate import only_text, read_folder

Services = Mapping[str, Callable[..., object]]
Message = dict[str, Any]


def await_start(sandbox: Sandbox, limits: Limits) -> None:
    """Wait until the runner works; a failure before that is not the candidate's fault."""
    late = SandboxError(f"the sandbox did not start within {limits.startup_seconds:g} s.")
    try:
        sandbox.receive(time.monotonic() + limits.startup_seconds, lambda: late)
    except HarnessFault as fault:
        if sandbox.has_message():  # it has started, so that the candidate is at fault
            raise
        printed = " ".join(sandbox.output.text.split())[-500:]
        raise SandboxError(f"the sandbox did not start: {fault.reason}. {printed}") from None


def frame_candidate(sandbox: Sandbox, limits: Limits, source: str) -> None:
    """Make the runner execute the benchmark's frame, before any code of the candidate."""
    sandbox.send({"frame": source})
    late = InputError(f"the benchmark's frame took longer than {limits.startup_seconds:g} s.")
    try:
        message = sandbox.receive(time.monotonic() + limits.startup_seconds, lambda: late)
    except HarnessFault as fault:
        if sandbox.has_message():
            raise
        raise SandboxError(f"the sandbox did not start: {fault.reason}.") from None
    if message.get("framed") is not True:
        reason = reported(message, limits).reason
        raise InputError(f"the benchmark's frame failed: {reason}.")


def await_import(sandbox: Sandbox, limits: Limits) -> bool:
    """Wait until the candidate's module is imported; whether a process can be forked from it."""
    late = HarnessFault(
        "import-limit", f"importing it took longer than {limits.startup_seconds:g} s"
    )
    message = sandbox.receive(time.monotonic() + limits.startup_seconds, lambda: late)
    if message.get("loaded") is not True:
        raise reported(message, limits)
    return message.get("forks") is True


def converse(sandbox: Sandbox, call: int, limits: Limits, services: Services) -> Message:
    """Serve the requests of a call until it is answered; time in services does not count."""
    late = HarnessFault("time-limit", f"ran longer than {limits.seconds:g} s")
    deadline = time.monotonic() + limits.seconds
    asked = 0
    while True:
        message: Message = sandbox.receive(deadline, lambda: late)
        if "ask" not in message:
            if isinstance(code := message.get("ended"), int):
                raise exit_fault(code, limits)
            if message.get("id") != call:
                raise HarnessFault("protocol", "answered a different call")
            return message
        asked += 1
        if asked > limits.asks:
            raise HarnessFault("ask-limit", f"asked services more than {limits.asks} times")
        if sandbox.unread:
            raise HarnessFault("protocol", "asked a service before reading the last reply")
        began = time.monotonic()
        with sandbox.watched():
            reply = serve(message, services)
        deadline += time.monotonic() - began
        sandbox.send(reply)


def serve(message: Message, services: Services) -> Message:
    """The reply to a request: the result of the service, or why it was not called."""
    name, args, kwargs = message.get("ask"), message.get("args"), message.get("kwargs")
    if not (isinstance(name, str) and isinstance(args, list) and isinstance(kwargs, dict)):
        raise HarnessFault("protocol", "wrote an invalid request to a service")
    service = services.get(name)
    if service is None:
        offered = ", ".join(sorted(services)) or "none"
        return {"refused": f"unknown service {name!r}; available: {offered}"}
    try:
        inspect.signature(service).bind(*args, **kwargs)
    except TypeError as error:
        return {"refused": f"service {name!r}: {error}"}
    return {"result": service(*args, **kwargs)}


def checked(value: Any, returns: type | None) -> Any:
    """The answer, if it has the expected type."""
    if returns is not None and not _has_type(value, returns):
        wanted, got = returns.__name__, type(value).__name__
        raise HarnessFault("wrong-type", f"returned {got} {value!r:.80}, not {wanted}")
    return value


def reported(message: Message, limits: Limits) -> HarnessFault:
    """The fault that the runner reports."""
    if "large" in message:
        return ReportedFault("answer-limit", f"its answer is too large: {_text(message, 'large')}")
    if "unsendable" in message:
        return ReportedFault("not-json", f"its answer is not JSON: {_text(message, 'unsendable')}")
    error = message.get("error")
    if not isinstance(error, dict):
        return HarnessFault("protocol", "wrote a message that is not an answer")
    kind, text, where = (_text(error, key) for key in ("type", "text", "where"))
    if kind == "NoFunction":
        return ReportedFault("missing-function", text)
    if kind == "MemoryError":
        kind, text = "memory-limit", f"exceeded its {limits.memory_mb} MB of memory. {text}"
    shown = f"{kind}: {text}" if text else kind
    return ReportedFault(kind, f"{shown} ({where})" if where else shown)


def _text(record: Message, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _has_type(value: object, returns: type) -> bool:
    if isinstance(value, bool):
        return returns in (bool, object)
    return isinstance(value, (int, float) if returns is float else returns)


class Harness:
    """A candidate whose functions can be called; each call may end in `HarnessFault`.

    Its sandbox starts with the first call and is restarted after a fault that ended it. Calls
    share a process until `end_trial`. Only one thread at a time may use a harness.

    Args:
        folder: The candidate's files.
        isolation: How its code is isolated.
        limits: What it may use.
        name: The candidate's name, for messages.
        state: What `prepare` of the benchmark returned for this candidate, if anything.
        slot: A number that differs between harnesses of this process that work at once.
        module: The module whose functions are called.
        frame: Source of a module of the benchmark that runs around the candidate's, in the same
            sandbox and equally untrusted; "frame:predict" calls its function `predict`.

    >>> from tempfile import TemporaryDirectory
    >>> from coevolve.executors.isolation import find_isolation
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "harness.py").write_text("def double(n): return 2 * n")
    ...     with Harness(Path(folder), isolation=find_isolation("process")) as harness:
    ...         harness.text, harness.call("double", 21)
    ('def double(n): return 2 * n', 42)
    """

    def __init__(
        self,
        folder: Path,
        *,
        isolation: Isolation,
        limits: Limits | None = None,
        name: str = "",
        state: Any = None,
        slot: int = 0,
        module: str = "harness",
        frame: str = "",
    ) -> None:
        self.folder, self.name, self.state = Path(folder), name, state
        self.isolation, self.limits = isolation, limits or Limits()
        self.services: Services = {}
        self._slot, self._module, self._frame = slot, module, frame
        self._sandbox: Sandbox | None = None
        self._called = self._stopped = False
        self._calls = 0
        self._output = ""

    @property
    def output(self) -> str:
        """The end of the output of the last call or execution."""
        return self._output

    @property
    def files(self) -> dict[str, bytes]:
        """The candidate's files: contents by relative path."""
        return read_folder(self.folder)

    @property
    def text(self) -> str:
        """The text of the candidate's only file."""
        return only_text(self.files, self.name)

    def call(
        self,
        function: str,
        /,
        *args: object,
        returns: type | None = None,
        services: Services | None = None,
        **kwargs: object,
    ) -> Any:
        """Call a function of the candidate; arguments and answer are JSON values.

        Args:
            function: A name in the module, or a path to an attribute such as "agent.answer"; a
                function of the frame begins with "frame:".
            args: JSON values.
            returns: The type the answer must have; an int is accepted as a float.
            services: What the candidate may ask for, by name; by default the attribute
                `services`. An exception in a service ends the call and is raised here.
            kwargs: JSON values.

        Raises:
            HarnessFault: The candidate failed, broke the protocol or exceeded a limit.
            SandboxError: The sandbox could not be started, which is not the candidate's fault.
        """
        self._calls += 1
        request = {"call": function, "args": args, "kwargs": kwargs, "id": self._calls}
        sandbox = self._ready()
        self._called = True
        try:
            sandbox.send(request)
            offered = self.services if services is None else services
            message = converse(sandbox, self._calls, self.limits, offered)
            sandbox.output.read_all()
            if "answer" not in message:
                sandbox.check()  # a limit may be behind the error
                raise reported(message, self.limits)
        except BaseException as error:
            self._output = sandbox.output.text
            if not isinstance(error, ReportedFault):
                self.close()
            raise
        self._output = sandbox.output.text
        return checked(message["answer"], returns)

    def execute(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        readable: Sequence[Path] = (),
        network: bool = False,
    ) -> Executed:
        """Run a program in the candidate's folder, isolated and limited like its functions.

        Raises:
            HarnessFault: The program exceeded a limit.
            SandboxError: The sandbox could not be started.
        """
        self._output = ""
        program = Program(
            argv=argv,
            folder=self.folder,
            limits=self.limits,
            readable=readable,
            network=network,
            slot=2 * self._slot + 1,
        )
        executed = execute(self.isolation.launch(program), self.limits, stdin)
        self._output = (executed.stdout + executed.stderr).decode("utf-8", "replace")
        return executed

    def stop_trial(self) -> None:
        """Kill the process of the trial; `end_trial` does the rest, and the next call at last."""
        if self._sandbox is not None and self._called and not self._stopped:
            self._stopped = True
            self._sandbox.stop_trial()

    def end_trial(self) -> None:
        """End all processes of the calls since the last trial, and remove their files.

        The next call finds the candidate as its import left it.
        """
        called, self._called, self._stopped = self._called, False, False
        if self._sandbox is not None and called and not self._sandbox.end_trial():
            self.close()

    def close(self) -> None:
        """End the sandbox; the next call starts a new one."""
        if self._sandbox is not None:
            sandbox, self._sandbox = self._sandbox, None
            self._output = sandbox.output.text
            sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ready(self) -> Sandbox:
        if self._stopped:
            self.end_trial()
        if self._sandbox is not None and not self._sandbox.usable:
            self.close()
        self._output = ""
        if self._sandbox is not None:
            self._sandbox.begin()
            return self._sandbox
        self._find_module()
        self._sandbox = sandbox = Sandbox(self._launch, self.limits)
        try:
            await_start(sandbox, self.limits)
            if self._frame:
                frame_candidate(sandbox, self.limits, self._frame)
            if await_import(sandbox, self.limits):
                sandbox.expect_trials()
        except BaseException:
            self.close()
            raise
        return sandbox

    def _find_module(self) -> None:
        """Check that the file exists; an installed package of that name might be imported."""
        file, package = self.folder / f"{self._module}.py", self.folder / self._module
        if not (file.is_file() or (package / "__init__.py").is_file()):
            raise HarnessFault("missing-file", f"has no file {file.name}")

    def _launch(self, reader: int, writer: int) -> Launch:
        serve = {
            "fds": (reader, writer),
            "module": self._module,
            "framed": bool(self._frame),
            "paths": site_packages(),
            "answer_bytes": self.limits.answer_bytes,
        }
        program = Program(
            folder=self.folder,
            limits=self.limits,
            slot=2 * self._slot,
            fds=(reader, writer),
            serve=serve,
        )
        return self.isolation.launch(program)
