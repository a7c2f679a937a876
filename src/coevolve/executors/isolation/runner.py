"""The program inside a sandbox: confines itself, then serves calls or becomes another program.

It imports little of the standard library and nothing else. The candidate's code runs in this
process and can change all of it; nothing outside trusts it.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType
    from typing import Any

    Config = dict[str, Any]

FRAME = "coevolve_frame"


def main(argv: list[str]) -> None:
    """Confine this process, then serve calls or become another program."""
    config: Config = codec()[1](argv[1])
    confine(config)
    if config["serve"]:
        return serve(config["serve"])
    try:
        os.execvp(argv[2], argv[2:])
    except OSError as error:
        os.write(2, f"{argv[2]}: {error.strerror}\n".encode())
        os._exit(127)


def confine(config: Config) -> None:
    """Set limits, become an unprivileged user, and end with the parent."""
    for name, limit in config["limits"].items():
        try:
            _lower(name, limit)
        except (OSError, ValueError):
            if sys.platform == "linux":
                raise
    uid = config.get("uid")
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if config.get("parent") and sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
        if os.getppid() != config["parent"]:
            os._exit(1)


def _lower(name: str, limit: int, *, for_good: bool = True) -> None:
    """Set a limit, or keep a lower one that is already set."""
    import resource

    kind = getattr(resource, name)
    most = resource.getrlimit(kind)[1]
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, limit if for_good else most))


def codec() -> tuple[Callable[[object], str], Callable[[str], Any]]:
    """Encode and decode JSON with the C parts of `json`; importing `json` takes much longer."""
    sample = '{"a": [1.5, "ü"]}'
    try:
        import _json

        def encode(value: object) -> str:
            shape = (_json.encode_basestring, None, ": ", ", ", False, False, False)
            return "".join(_json.make_encoder({}, _unknown, *shape)(value, 0))

        namespace: Any = type(sys.implementation)
        reading = namespace(strict=True, object_hook=None, object_pairs_hook=None)
        reading.parse_int, reading.parse_float, reading.parse_constant = int, float, float
        scan = _json.make_scanner(reading)
        if encode(scan(sample, 0)[0]) == sample:
            return encode, lambda text: scan(text, 0)[0]
    except (ImportError, TypeError, ValueError, AttributeError):
        pass
    import json

    return json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode, json.loads


def _unknown(value: object) -> object:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class Link:
    """Messages to and from the parent: four bytes of length, then JSON."""

    def __init__(self, fds: tuple[int, int], most: int) -> None:
        (self.reader, self.writer), self.most = fds, most
        self.pid, self.calling, self.lock = os.getpid(), False, allocate_lock()
        self._encode, self._decode = codec()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; OverflowError if it is too large, ValueError if it is not JSON."""
        data = self._encode(message).encode()
        if len(data) > self.most:
            raise OverflowError(f"{len(data):,} bytes of JSON; at most {self.most:,} are allowed")
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(self.writer, view) :]

    def receive(self) -> Any:
        """Read one message."""
        return self._decode(self._read(int.from_bytes(self._read(4), "big")).decode())

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = os.read(self.reader, min(count - len(data), 1 << 20))
            if not more:
                os._exit(0)
            data += more
        return bytes(data)


class AskError(Exception):
    """A request to a service was refused."""


def host(link: Link) -> ModuleType:
    """The module `coevolve_host`, through which a candidate asks for services."""

    def ask(service: str, /, *args: object, **kwargs: object) -> object:
        """Ask a service of the host; arguments and result are JSON."""
        if not link.calling:
            raise AskError("services are available only during a call")
        with link.lock:
            link.send({"ask": service, "args": args, "kwargs": kwargs})
            reply = link.receive()
        if "refused" in reply:
            raise AskError(reply["refused"])
        return reply["result"]

    module = type(sys)("coevolve_host", "The services of the candidate's host.")
    module.__dict__.update(ask=ask, AskError=AskError)
    return module


def serve(config: Config) -> None:
    """Import the candidate's module, then answer calls until the parent closes the pipe.

    The frame is executed first, before a file of the candidate can replace a module it imports.
    """
    link = Link(config["fds"], config["answer_bytes"])
    for fd in config["fds"]:
        os.set_inheritable(fd, False)
    sys.dont_write_bytecode, sys.argv = True, [config["module"]]
    sys.path += config["paths"]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.modules["coevolve_host"] = host(link)
    link.send({"ready": os.getpid()})
    modules: dict[str, Any] = {}
    try:
        if config["framed"]:
            modules["frame"] = framed(link.receive()["frame"])
            link.send({"framed": True})
        sys.path[:0] = [config["folder"]]
        modules[""] = getattr(modules.get("frame"), "load", __import__)(config["module"])
    except BaseException as error:
        return answer(link, {"error": describe(error, config)})
    link.send({"loaded": True})
    while True:
        call = link.receive()
        link.calling = True
        try:
            reply = {"answer": perform(modules, call), "id": call["id"]}
        except BaseException as error:
            reply = {"error": describe(error, config), "id": call["id"]}
        link.calling = False
        answer(link, reply)


class NoFunction(Exception):  # noqa: N818
    """The candidate has no such function."""


def framed(source: str) -> ModuleType:
    """The module of the benchmark that runs around the candidate."""
    module = sys.modules[FRAME] = type(sys)(FRAME)
    exec(compile(source, FRAME, "exec"), module.__dict__)
    return module


def perform(modules: dict[str, Any], call: dict[str, Any]) -> object:
    """Call the requested function, of the candidate's module or of the frame."""
    used = os.times()
    _lower("RLIMIT_CPU", int(used.user + used.system + call["cpu"]) + 1, for_good=False)
    owner, _, path = call["call"].rpartition(":")
    target = modules.get(owner)
    for part in path.split("."):
        target = None if target is None else getattr(target, part, None)
    if not callable(target):
        name = getattr(modules.get(owner), "__name__", owner)
        raise NoFunction(f"{name} has no function {path!r}")
    return target(*call["args"], **call["kwargs"])


def answer(link: Link, reply: dict[str, Any]) -> None:
    """Flush the output, then send the reply, or why it cannot be sent."""
    if os.getpid() != link.pid:
        os._exit(0)  # a forked process that returned from the candidate's code
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue
    try:
        link.send(reply)
    except BaseException as error:
        what = "large" if isinstance(error, OverflowError) else "unsendable"
        link.send({what: describe(error, {})["text"], "id": reply.get("id")})


def describe(error: BaseException, config: Config) -> dict[str, str]:
    """Type, message and place of an exception, even if its methods misbehave."""
    try:
        text = str(error)[:1000].encode("utf-8", "backslashreplace").decode()
    except BaseException as worse:
        text = f"(its message cannot be shown: {type(worse).__name__})"
    kind = type(error).__name__.encode("utf-8", "backslashreplace").decode()[:100]
    where = _place(error.__traceback__, config.get("folder", "\0"))
    return {"type": kind, "text": text, "where": where}


def _place(trace: TracebackType | None, folder: str) -> str:
    """The last line in the candidate's files that an exception passed, else in the frame."""
    own = frame = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        spot = f"line {trace.tb_lineno}, in {code.co_name}"
        if code.co_filename.startswith(folder):
            own = f"{code.co_filename[len(folder) :].lstrip('/')}, {spot}"
        elif code.co_filename == FRAME:
            frame = f"{FRAME}, {spot}"
        trace = trace.tb_next
    return (own or frame).encode("utf-8", "backslashreplace").decode()[:300]


if __name__ == "__main__":
    main(sys.argv)
