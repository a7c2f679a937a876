"""One call of a candidate as messages: the request, its wishes on the way, the answer.

Every message may be forged, for the candidate can write to the pipe itself. It can thereby only
change its own answer.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

from coevolve.errors import InputError
from coevolve.executors.isolation.faults import HarnessFault, ReportedFault, SandboxError
from coevolve.executors.isolation.limits import Limits
from coevolve.executors.isolation.sandbox import Sandbox

Services = Mapping[str, Callable[..., object]]
Message = dict[str, Any]


def await_start(sandbox: Sandbox, limits: Limits) -> None:
    """Wait until the runner works: what fails before is not the candidate's fault."""
    late = SandboxError(f"the sandbox did not start within {limits.startup_seconds:g} s.")
    try:
        sandbox.receive(time.monotonic() + limits.startup_seconds, lambda: late)
    except HarnessFault as fault:
        said = " ".join(sandbox.output.text.split())[-500:]
        raise SandboxError(f"the sandbox did not start: {fault.reason}. {said}") from None


def frame_candidate(sandbox: Sandbox, limits: Limits, source: str) -> None:
    """Have the runner execute the benchmark's frame; no code of the candidate has run yet."""
    sandbox.send({"frame": source})
    late = InputError(f"the benchmark's frame took longer than {limits.startup_seconds:g} s.")
    try:
        message = sandbox.receive(time.monotonic() + limits.startup_seconds, lambda: late)
    except HarnessFault as fault:
        raise SandboxError(f"the sandbox did not start: {fault.reason}.") from None
    if message.get("framed") is not True:
        reason = reported(message, limits).reason
        raise InputError(f"the benchmark's frame does not run: {reason}.")


def await_import(sandbox: Sandbox, limits: Limits) -> None:
    """Wait until the candidate's module is imported."""
    late = HarnessFault(
        "import-limit", f"importing it took longer than {limits.startup_seconds:g} s"
    )
    message = sandbox.receive(time.monotonic() + limits.startup_seconds, lambda: late)
    if message.get("loaded") is not True:
        raise reported(message, limits)


def converse(sandbox: Sandbox, call: int, limits: Limits, services: Services) -> Message:
    """Serve a call's wishes until it is answered; time in services is not its own."""
    late = HarnessFault("time-limit", f"ran longer than {limits.seconds:g} s")
    deadline = time.monotonic() + limits.seconds
    asked = 0
    while True:
        message: Message = sandbox.receive(deadline, lambda: late)
        if "ask" not in message:
            if message.get("id") != call:
                raise HarnessFault("protocol", "wrote an answer to another call")
            return message
        asked += 1
        if asked > limits.asks:
            raise HarnessFault("ask-limit", f"asked its services more than {limits.asks} times")
        if sandbox.unread:
            raise HarnessFault("protocol", "asked a service without reading what it was sent")
        began = time.monotonic()
        with sandbox.watched():
            reply = serve(message, services)
        deadline += time.monotonic() - began
        sandbox.send(reply)


def serve(message: Message, services: Services) -> Message:
    """The reply to a wish: what the service gave, or why it was not called."""
    name, args, kwargs = message.get("ask"), message.get("args"), message.get("kwargs")
    if not (isinstance(name, str) and isinstance(args, list) and isinstance(kwargs, dict)):
        raise HarnessFault("protocol", "wrote a request to a service that is none")
    service = services.get(name)
    if service is None:
        offered = ", ".join(sorted(services)) or "none"
        return {"refused": f"there is no service {name!r}; there is {offered}"}
    try:
        inspect.signature(service).bind(*args, **kwargs)
    except TypeError as error:
        return {"refused": f"service {name!r}: {error}"}
    return {"result": service(*args, **kwargs)}


def checked(value: Any, returns: type | None) -> Any:
    """The answer, if it has the type it should have."""
    if returns is not None and not _has_type(value, returns):
        wanted, got = returns.__name__, type(value).__name__
        raise HarnessFault("wrong-type", f"answered {got} {value!r:.80}, not {wanted}")
    return value


def reported(message: Message, limits: Limits) -> HarnessFault:
    """The fault that the runner reports."""
    if "large" in message:
        return ReportedFault("answer-limit", f"its answer is too large: {_text(message, 'large')}")
    if "unsendable" in message:
        return ReportedFault("not-json", f"its answer is not JSON: {_text(message, 'unsendable')}")
    error = message.get("error")
    if not isinstance(error, dict):
        return HarnessFault("protocol", "wrote a message that is no answer")
    kind, said, where = (_text(error, key) for key in ("type", "text", "where"))
    if kind == "NoFunction":
        return ReportedFault("missing-function", said)
    if kind == "MemoryError":
        kind, said = "memory-limit", f"ran out of its {limits.memory_mb} MB of memory. {said}"
    shown = f"{kind}: {said}" if said else kind
    return ReportedFault(kind, f"{shown} ({where})" if where else shown)


def _text(record: Message, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _has_type(value: object, returns: type) -> bool:
    if isinstance(value, bool):
        return returns in (bool, object)
    return isinstance(value, (int, float) if returns is float else returns)
