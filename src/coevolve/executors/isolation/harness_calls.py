"""Calls of a candidate's functions in a sandbox.

Every message may be forged, because the candidate can write to the pipe itself. It can only
change its own answer that way.
"""

import math
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from coevolve.errors import InputError
from coevolve.executors.isolation.execution import Executed, execute
from coevolve.executors.isolation.interruption import CallInterrupted, Interruption
from coevolve.executors.isolation.launch import (
    HarnessFault,
    Isolation,
    Launch,
    Limits,
    Program,
    ReportedFault,
    SandboxError,
)
from coevolve.executors.isolation.sandbox import MOST_UNREAD, Sandbox, exit_fault
from coevolve.executors.isolation.service_calls import (
    Message,
    ServedAsk,
    Services,
    ServiceThreads,
    ask_number,
    read_ask,
    serve,
)
from coevolve.executors.isolation.system_paths import site_packages
from coevolve.search.candidate import only_text, read_folder


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


class Conversation:
    """Serves the requests of a call until it is answered.

    Time in which a request is open does not count.

    Args:
        sandbox: Where the call runs.
        call: The number of the call.
        limits: What the candidate may use.
        services: What it may ask for.
        interruption: Ends the call.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        call: int,
        limits: Limits,
        services: Services,
        interruption: Interruption,
    ) -> None:
        self._sandbox, self._call, self._limits = sandbox, call, limits
        self._services, self._interruption = services, interruption
        self._asked = self._cancelled = 0

    def one_by_one(self) -> Message:
        """The message that ends the call; services run in this thread."""
        deadline = time.monotonic() + self._limits.seconds
        while True:
            message: Message = self._sandbox.receive(deadline, self._late)
            if "cancel" in message:
                self._count_cancel(message)  # it was served before this message was read
                continue
            if "ask" not in message:
                return self._answer(message)
            self._count_ask()
            asked = read_ask(message)
            ask = ServedAsk(asked.service)
            began = time.monotonic()
            with self._interruption.acting(ask.cancel), self._sandbox.watched():
                reply = serve(asked, self._services, ask)
            deadline += time.monotonic() - began
            self._sandbox.send(reply)

    def at_once(self) -> Message:
        """The message that ends the call; several services run at once in other threads."""
        sandbox, left = self._sandbox, self._limits.seconds
        threads = ServiceThreads(self._services, self._limits.open_asks, sandbox.wake)
        with closing(threads):
            while True:
                for reply in threads.replies():
                    sandbox.send(reply)
                waiting, began = bool(threads.open), time.monotonic()
                deadline = math.inf if waiting else began + left
                message = sandbox.receive(deadline, self._late, lambda: threads.ready)
                left -= 0 if waiting else time.monotonic() - began
                if message is None:
                    continue
                if "cancel" in message:
                    self._count_cancel(message)
                    threads.cancel(ask_number(message["cancel"]))
                elif "ask" in message:
                    self._count_ask()
                    refused = threads.add(read_ask(message))
                    if refused is not None:
                        sandbox.send(refused)
                else:
                    threads.replies()  # an error of a service counts more than the answer
                    return self._answer(message)

    def _late(self) -> HarnessFault:
        return HarnessFault("time-limit", f"ran longer than {self._limits.seconds:g} s")

    def _answer(self, message: Message) -> Message:
        if isinstance(code := message.get("ended"), int):
            raise exit_fault(code, self._limits)
        if message.get("id") != self._call:
            raise HarnessFault("protocol", "answered a different call")
        return message

    def _count_ask(self) -> None:
        self._asked += 1
        most = self._limits.asks
        if self._asked > most:
            raise HarnessFault("ask-limit", f"asked services more than {most} times")
        if self._sandbox.unread > MOST_UNREAD:
            raise HarnessFault("protocol", "asked services without reading their replies")

    def _count_cancel(self, message: Message) -> None:
        ask_number(message["cancel"])
        self._cancelled += 1
        if self._cancelled > self._asked:
            raise HarnessFault("protocol", "cancelled more requests to services than it sent")


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
    share a process until `end_trial`. Only one thread at a time may use a harness; `interrupt`
    may be called from any.

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
        fresh: Whether every trial gets a new sandbox, which imports the candidate again.

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
        fresh: bool = False,
    ) -> None:
        self.folder, self.name, self.state = Path(folder), name, state
        self.isolation, self.limits = isolation, limits or Limits()
        self.services: Services = {}
        self._slot, self._module, self._frame, self._fresh = slot, module, frame, fresh
        self._sandbox: Sandbox | None = None
        self._interruption = Interruption()
        self._closing = threading.Lock()
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
        concurrent: bool = False,
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
            concurrent: Whether up to 16 requests to services are served at once, each in a thread.
                By default they are served one after another in this thread. A service may return
                a `concurrent.futures.Future`.
            kwargs: JSON values.

        Raises:
            HarnessFault: The candidate failed, broke the protocol or exceeded a limit.
            SandboxError: The sandbox could not be started, which is not the candidate's fault.
            CallInterrupted: Another thread called `interrupt`.
        """
        self._calls += 1
        request = {"call": function, "args": args, "kwargs": kwargs, "id": self._calls}
        offered = self.services if services is None else services
        interruption = self._interruption
        try:
            with interruption.acting(self._interrupt), interruption.running():
                message = self._answered(request, offered, concurrent)
        except CallInterrupted:
            self.close()
            raise
        return checked(message["answer"], returns)

    def interrupt(self) -> bool:
        """End the running call or execution; it raises `CallInterrupted`. Any thread may do this.

        The sandbox is killed at once. A call that waits for a service in its own thread ends when
        the service does; one with `concurrent` services does not wait for them. Returns whether
        anything was running; if not, nothing happens.
        """
        return self._interruption.set()

    def _answered(self, request: Message, services: Services, concurrent: bool) -> Message:
        sandbox = self._ready()
        self._called = True
        try:
            sandbox.send(request)
            conversation = Conversation(
                sandbox, self._calls, self.limits, services, self._interruption
            )
            message = conversation.at_once() if concurrent else conversation.one_by_one()
            sandbox.output.read_all()
            if "answer" not in message:
                sandbox.check()  # a limit may be behind the error
                raise reported(message, self.limits)
        except BaseException as error:
            self._output = sandbox.output.text
            if isinstance(error, ReportedFault):
                sandbox.end_call()
            else:
                self.close()
            raise
        self._output = sandbox.output.text
        sandbox.end_call()
        return message

    def _interrupt(self) -> None:
        with self._closing:
            if self._sandbox is not None:
                self._sandbox.interrupt()

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
            CallInterrupted: Another thread called `interrupt`.
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
        with self._interruption.running():
            executed = execute(
                self.isolation.launch(program), self.limits, stdin, self._interruption
            )
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
        if self._sandbox is None or not called:
            return
        if self._fresh or not self._sandbox.end_trial():
            self.close()

    def close(self) -> None:
        """End the sandbox; the next call starts a new one."""
        with self._closing:
            sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
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
            try:
                self._sandbox.begin()
            except HarnessFault:
                self.close()
                raise
            return self._sandbox
        self._find_module()
        sandbox = Sandbox(self._launch, self.limits)
        with self._closing:
            self._sandbox = sandbox
        try:
            if self._interruption.is_set:
                raise self._interruption.error()
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
            "open_asks": self.limits.open_asks,
        }
        program = Program(
            folder=self.folder,
            limits=self.limits,
            slot=2 * self._slot,
            fds=(reader, writer),
            serve=serve,
        )
        return self.isolation.launch(program)
