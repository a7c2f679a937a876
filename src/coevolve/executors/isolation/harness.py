"""A candidate at work: its functions called in a sandbox."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from coevolve.executors.isolation.base import Isolation, Launch
from coevolve.executors.isolation.conversation import (
    Services,
    await_import,
    await_start,
    checked,
    converse,
    frame_candidate,
    reported,
)
from coevolve.executors.isolation.execute import Executed, execute
from coevolve.executors.isolation.faults import HarnessFault, ReportedFault
from coevolve.executors.isolation.limits import Limits
from coevolve.executors.isolation.sandbox import Sandbox
from coevolve.executors.isolation.system import site_packages


class Harness:
    """A candidate whose functions can be called; each call may end in `HarnessFault`.

    The process behind it starts with the first call, serves further ones, and is started anew
    after a fault that ended it. One thread at a time may use a harness.

    Args:
        folder: The candidate's files.
        isolation: How its code is kept from doing harm.
        limits: What it may use.
        name: The candidate's name, for messages.
        state: What `prepare` of the benchmark gave for this candidate, if anything.
        slot: Different for harnesses of this process that work at once.
        module: The module whose functions are called.
        frame: Source of a module of the benchmark that runs around the candidate's, in the same
            sandbox and trusted no more; "frame:predict" calls its function `predict`.
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
        self._calls = 0
        self._output = ""

    @property
    def output(self) -> str:
        """The end of what the last call or execution printed."""
        return self._output

    def call(
        self,
        function: str,
        /,
        *args: object,
        returns: type | None = None,
        services: Services | None = None,
        **kwargs: object,
    ) -> Any:
        """Call a function of the candidate with JSON values; its answer is one.

        Args:
            function: A name in the module, or a path to an attribute as in "agent.answer"; one
                of the frame begins with "frame:".
            args: JSON values.
            returns: The type the answer must have; an int will do for a float.
            services: What the candidate may ask this side for, by name; the attribute `services`
                when left out. What a service raises ends the call and is raised here.
            kwargs: JSON values.

        Raises:
            HarnessFault: The candidate failed, lied or ran past a limit.
            SandboxError: The sandbox could not be started; the candidate had no part in it.
        """
        self._calls += 1
        request = {"call": function, "args": args, "kwargs": kwargs, "id": self._calls}
        sandbox = self._ready()
        try:
            sandbox.send({**request, "cpu": self.limits.cpu})
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
            HarnessFault: The program ran past a limit.
            SandboxError: The sandbox could not be started.
        """
        self._output = ""
        launch = self.isolation.command(
            argv,
            folder=self.folder,
            limits=self.limits,
            readable=readable,
            network=network,
            slot=2 * self._slot + 1,
        )
        executed = execute(launch, self.limits, stdin)
        self._output = (executed.stdout + executed.stderr).decode("utf-8", "replace")
        return executed

    def close(self) -> None:
        """End the process; the next call starts another."""
        if self._sandbox is not None:
            sandbox, self._sandbox = self._sandbox, None
            self._output = sandbox.output.text
            sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ready(self) -> Sandbox:
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
            await_import(sandbox, self.limits)
        except BaseException:
            self.close()
            raise
        return sandbox

    def _find_module(self) -> None:
        """Without this a module of the same name might be found among installed packages."""
        file, package = self.folder / f"{self._module}.py", self.folder / self._module
        if not (file.is_file() or (package / "__init__.py").is_file()):
            raise HarnessFault("missing-file", f"has no file {file.name}")

    def _launch(self, reader: int, writer: int) -> Launch:
        return self.isolation.command(
            (),
            folder=self.folder,
            limits=self.limits,
            slot=2 * self._slot,
            fds=(reader, writer),
            serve={
                "fds": (reader, writer),
                "module": self._module,
                "framed": bool(self._frame),
                "paths": site_packages(),
                "answer_bytes": self.limits.answer_bytes,
            },
        )
