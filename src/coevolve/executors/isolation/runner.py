"""The program inside a sandbox: confines itself, then serves calls or becomes another program.

It imports nothing but the standard library, little of that, and knows nothing of the package it
comes from. Code of the candidate runs in this process and may bend all of it; nothing outside
relies on it.
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


def main(argv: list[str]) -> None:
    """Confine this process as told, then serve or execute."""
    config: Config = codec()[1](argv[1])
    confine(config)
    serve(config["serve"]) if config["serve"] else execute(argv[2:])


def confine(config: Config) -> None:
    """Set limits, become a user without rights, and die with the parent."""
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
        _die_with(config["parent"])


def _lower(name: str, limit: int, *, for_good: bool = True) -> None:
    """Set a limit, or leave the lower one that this machine has."""
    import resource

    kind = getattr(resource, name)
    most = resource.getrlimit(kind)[1]
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, limit if for_good else most))


def _die_with(parent: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    if os.getppid() != parent:
        os._exit(1)


def execute(argv: list[str]) -> None:
    """Become another program."""
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def codec() -> tuple[Callable[[object], str], Callable[[str], Any]]:
    """Encoder and decoder of JSON: the inner parts of `json`, where they are as expected.

    Importing all of it takes as long as starting Python.
    """
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

    def __init__(self, reader: int, writer: int, most: int) -> None:
        self.reader, self.writer, self.most = reader, writer, most
        self.pid = os.getpid()
        self.calling = False
        self.lock = allocate_lock()
        self._encode, self._decode = codec()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; ValueError when it is too large or no JSON."""
        data = self._encode(message).encode()
        if len(data) > self.most:
            raise OverflowError(f"{len(data):,} bytes of JSON, {self.most:,} are allowed")
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(self.writer, view) :]

    def receive(self) -> dict[str, Any]:
        """Read one message."""
        length = int.from_bytes(self._read(4), "big")
        message: dict[str, Any] = self._decode(self._read(length).decode())
        return message

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = os.read(self.reader, min(count - len(data), 1 << 20))
            if not more:
                os._exit(0)
            data += more
        return bytes(data)


class AskError(Exception):
    """A request to a service that was refused."""


def host(link: Link) -> ModuleType:
    """The module `coevolve_host`, by which a candidate reaches the services of the parent."""

    def ask(service: str, /, *args: object, **kwargs: object) -> object:
        """Have a service of the parent answer; arguments and result are JSON."""
        if not link.calling:
            raise AskError("services answer only while a call is under way")
        with link.lock:
            link.send({"ask": service, "args": args, "kwargs": kwargs})
            reply = link.receive()
        if "refused" in reply:
            raise AskError(reply["refused"])
        return reply["result"]

    module = type(sys)("coevolve_host", "How a candidate reaches the services of its host.")
    module.__dict__.update(ask=ask, AskError=AskError)
    return module


def serve(config: Config) -> None:
    """Import the candidate's module, then answer calls until the parent closes the pipe."""
    reader, writer = config["fds"]
    link = Link(reader, writer, config["answer_bytes"])
    for fd in config["fds"]:
        os.set_inheritable(fd, False)
    sys.dont_write_bytecode = True
    sys.path[:0] = [config["folder"]]
    sys.path += config["paths"]
    sys.argv = [config["module"]]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.modules["coevolve_host"] = host(link)
    link.send({"ready": os.getpid()})
    try:
        module = __import__(config["module"])
    except BaseException as error:
        answer(link, {"error": describe(error, config)})
        return
    link.send({"loaded": True})
    while True:
        call = link.receive()
        link.calling = True
        try:
            reply = {"answer": perform(module, call), "id": call["id"]}
        except BaseException as error:
            reply = {"error": describe(error, config), "id": call["id"]}
        link.calling = False
        answer(link, reply)


class NoFunction(Exception):  # noqa: N818
    """The candidate has no such function."""


def perform(module: ModuleType, call: dict[str, Any]) -> object:
    """Call what the parent asked for."""
    used = os.times()
    _lower("RLIMIT_CPU", int(used.user + used.system + call["cpu"]) + 1, for_good=False)
    target: Any = module
    for part in call["call"].split("."):
        target = None if target is None else getattr(target, part, None)
    if not callable(target):
        raise NoFunction(f"{module.__name__} has no function {call['call']!r}")
    return target(*call["args"], **call["kwargs"])


def answer(link: Link, reply: dict[str, Any]) -> None:
    """Send what a call gave, or why it cannot be sent; what it printed goes first."""
    if os.getpid() != link.pid:
        os._exit(0)  # a forked child that came back from the candidate's code
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue
    try:
        link.send(reply)
    except OverflowError as error:
        link.send({"large": str(error), "id": reply.get("id")})
    except BaseException as error:
        link.send({"unsendable": describe(error, {})["text"], "id": reply.get("id")})


def describe(error: BaseException, config: Config) -> dict[str, str]:
    """Type, message and place of an exception, whatever its methods do."""
    try:
        text = str(error)[:1000].encode("utf-8", "backslashreplace").decode()
    except BaseException as worse:
        text = f"(its message cannot be shown: {type(worse).__name__})"
    kind = type(error).__name__.encode("utf-8", "backslashreplace").decode()[:100]
    where = _place(error.__traceback__, config.get("folder", "\0"))
    return {"type": kind, "text": text, "where": where}


def _place(trace: TracebackType | None, folder: str) -> str:
    """The last line of the candidate's own files that an exception passed."""
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(folder):
            name = code.co_filename[len(folder) :].lstrip("/")
            place = f"{name}, line {trace.tb_lineno}, in {code.co_name}"
        trace = trace.tb_next
    return place.encode("utf-8", "backslashreplace").decode()[:300]


if __name__ == "__main__":
    main(sys.argv)
