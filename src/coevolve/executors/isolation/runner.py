"""The program inside a sandbox: confines itself, then serves calls or becomes another program.

It imports the candidate once and forks a process for every trial. It imports little of the
standard library and nothing else. The candidate's code runs in this process and can change all of
it; nothing outside trusts it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

    Config = dict[str, Any]

FRAME = "coevolve_frame"
HOST = "host_requests.py"


def main(argv: list[str]) -> None:
    """Confine this process, then serve calls or become another program."""
    config: Config = codec()[1](argv[1])
    requests = beside(HOST) if config["serve"] else ""
    confine(config)
    if config["serve"]:
        return serve(config["serve"], requests)
    try:
        os.execvp(argv[2], argv[2:])
    except OSError as error:
        os.write(2, f"{argv[2]}: {error.strerror}\n".encode())
        os._exit(127)


def beside(name: str) -> str:
    """The text of a file in the folder of this one."""
    folder = os.path.dirname(__file__)  # noqa: PTH120
    with open(f"{folder}/{name}", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


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


def _lower(name: str, limit: int) -> None:
    """Set a limit, or keep a lower one that is already set."""
    import resource

    kind = getattr(resource, name)
    most = resource.getrlimit(kind)[1]
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, limit))


def codec() -> tuple[Callable[[object], str], Callable[[str], Any]]:
    """Encode and decode JSON with the C parts of `json`; importing `json` takes much longer."""
    sample = '{"a": [1.5, "ü"]}'
    try:
        import _json

        shape = (_json.encode_basestring, None, ": ", ", ", False, False, False)
        encoder = _json.make_encoder(None, _unknown, *shape)

        def encode(value: object) -> str:
            return "".join(encoder(value, 0))

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
        self.pid = os.getpid()
        self._encode, self._decode = codec()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; OverflowError if it is too large, ValueError if it is not JSON."""
        data = self.packed(message)
        sent = os.write(self.writer, data)
        while sent < len(data):
            sent += os.write(self.writer, memoryview(data)[sent:])

    def packed(self, message: dict[str, Any]) -> bytes:
        """The bytes of a message."""
        data = self._encode(message).encode()
        if len(data) > self.most:
            raise OverflowError(f"{len(data):,} bytes of JSON; at most {self.most:,} are allowed")
        return len(data).to_bytes(4, "big") + data

    def receive(self) -> Any:
        """Read one message."""
        return self._decode(self._read(int.from_bytes(self._read(4), "big")).decode())

    def _read(self, count: int) -> bytes:
        data = os.read(self.reader, min(count, 1 << 20))
        if len(data) == count:
            return data
        parts, left = [data], count - len(data)
        while left:
            parts.append(os.read(self.reader, min(left, 1 << 20)))
            if not parts[-1]:
                os._exit(0)
            left -= len(parts[-1])
        return b"".join(parts)


def serve(config: Config, requests: str) -> None:
    """Import the candidate's module, then answer calls, in a process of their own for each trial.

    The frame is executed first, before a file of the candidate can replace a module it imports.
    """
    link = Link(config["fds"], config["answer_bytes"])
    trials = Trials(link, config)
    for fd in config["fds"]:
        os.set_inheritable(fd, False)
    sys.dont_write_bytecode, sys.argv = True, [config["module"]]
    sys.path += config["paths"]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    host = executed("coevolve_requests", requests)
    asks = host.Asks(link, config["open_asks"])
    sys.modules["coevolve_host"] = host.host_module(asks)
    link.send({"ready": os.getpid()})
    modules: dict[str, Any] = {}
    try:
        if config["framed"]:
            modules["frame"] = executed(FRAME, link.receive()["frame"])
            link.send({"framed": True})
        sys.path[:0] = [config["folder"]]
        modules[""] = getattr(modules.get("frame"), "load", __import__)(config["module"])
    except BaseException as error:
        return answer(link, {"error": describe(error, config)})
    forks = trials.possible()
    answer(link, {"loaded": True, "forks": forks})
    call = trials.fork() if forks else link.receive()
    while True:
        asks.begin_call()
        try:
            reply = {"answer": perform(modules, call), "id": call["id"]}
        except BaseException as error:
            reply = {"error": describe(error, config), "id": call["id"]}
        asks.end_call(lambda reply=reply: answer(link, reply))
        call = asks.next_call()


class Seeds:
    """Keeps random generators independent between trials, unless the candidate has seeded them."""

    def __init__(self) -> None:
        self._random: Any = None
        self._words: Any = None
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Have the state of `random` noted when it is imported."""
        if name != "random":
            return None
        sys.meta_path.remove(self)
        found = (finder.find_spec(name, None) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        execute = getattr(spec and spec.loader, "exec_module", None)
        if execute is not None:

            def execute_and_note(module: Any) -> None:
                execute(module)
                if hasattr(module, "_inst"):  # not a file of the candidate
                    module.random()  # further draws leave the words of the state as they are
                    self._random, self._words = module, module.getstate()[1][:-1]

            spec.loader.exec_module = execute_and_note  # type: ignore
        return spec

    def renewals(self) -> Iterator[Callable[[], object]]:
        """What to do after a fork, which reseeds `random` even if it was seeded, but not numpy."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self._random is not None:
            state = self._random.getstate()
            if state[1][:-1] != self._words:
                yield lambda: self._random.setstate(state)
        numpy: Any = sys.modules.get("numpy.random.mtrand")
        generator = getattr(numpy, "get_bit_generator", None)
        if generator is not None and generator().seed_seq is not None:
            yield numpy.seed


class Trials:
    """Forks a process for each trial; then ends all other processes and removes their files.

    It is made before the candidate is imported, and keeps functions that an import may replace.
    """

    def __init__(self, link: Link, config: Config) -> None:
        import _signal  # type: ignore[import-not-found]
        import gc
        import time

        self._link, self._config = link, config
        self._os, self._signal = type(os)("os"), _signal
        vars(self._os).update(vars(os))
        self._freeze, self._sleep = gc.freeze, time.sleep
        self._seeds = Seeds()
        self._prctl = self._subreaper()
        self._before = self._marks()
        self._places = self._written()

    def possible(self) -> bool:
        """Whether the import has left nothing that processes forked from this one would share."""
        if self._os.getpid() != self._link.pid:
            self._os._exit(0)  # a process that the candidate forked
        unchanged = self._marks() == self._before and self._written() == self._places
        return unchanged and self._before is not None and self._places is not None

    def fork(self) -> Any:
        """Fork a process for each trial, and tidy up after it when asked to.

        Returns the first call of a trial in the process of the trial. If the fork fails, this
        process serves the trial itself, and the sandbox ends with it.
        """
        system, steps = self._os, self._first_steps()
        usual = self._link.packed({"ended": -9})
        self._freeze()  # keeps the collector from copying shared pages
        while True:
            call = self._link.receive()
            if "tidy" in call:
                self._end_all()
                self._link.send({"clean": self._remove_all()})
                continue
            try:
                child = system.fork()
            except OSError:
                return call
            if child == 0:
                self._link.pid = system.getpid()
                for step in steps:
                    step()
                return call
            pid = status = 0
            while pid != child:
                pid, status = system.waitpid(-1, 0)
            if status == 9:  # as usual: the host has ended it
                system.write(self._link.writer, usual)
            else:
                self._link.send({"ended": system.waitstatus_to_exitcode(status)})

    def _first_steps(self) -> list[Callable[[], object]]:
        """What a process does when it was forked: end with its parent, renew generators."""
        parent, prctl = self._os.getpid(), self._prctl

        def end_with_parent() -> None:
            prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
            if self._os.getppid() != parent:
                self._os._exit(1)

        return [*([] if prctl is None else [end_with_parent]), *self._seeds.renewals()]

    def _end_all(self) -> None:
        """End all processes that the trial has started."""
        system = self._os
        while True:
            if self._config["namespace"]:
                try:
                    system.kill(-1, 9)
                except ProcessLookupError:
                    return
            else:
                children = self._children().split()
                if not children:
                    return
                for pid in map(int, children):
                    try:
                        system.kill(pid, 9)
                    except PermissionError:  # a program of another user, which the host will see
                        return
            try:
                while system.waitpid(-1, system.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            self._sleep(0.001)

    def _remove_all(self) -> bool:
        """Remove all files that the trial has made; whether everything is as before."""
        try:
            for place in self._config["writable"]:
                for path in self._made_in(place):
                    self._remove(path)
        except (OSError, RecursionError):
            return False
        return self._written() == self._places

    def _made_in(self, place: str) -> list[str]:
        """What is in a writable folder, apart from mounts: these lead to this Python."""
        system = self._os
        device = system.stat(place).st_dev
        paths = [f"{place}/{name}" for name in system.listdir(place)]
        return [path for path in paths if system.lstat(path).st_dev == device]

    def _remove(self, path: str) -> None:
        try:
            self._os.unlink(path)
        except IsADirectoryError:
            self._os.chmod(path, 0o700)
            for name in self._os.listdir(path):
                self._remove(f"{path}/{name}")
            self._os.rmdir(path)

    def _written(self) -> list[object] | None:
        """The state of all files that the candidate can change; None if it cannot be restored."""
        system = self._os
        found: list[object] = []
        try:
            for place in self._config["writable"]:
                if self._made_in(place) or not system.access(place, 7):
                    return None
            waiting = [] if self._config["namespace"] else [self._config["folder"]]
            while waiting:
                found.append(system.stat(waiting[-1]).st_ctime_ns)
                with system.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        status = entry.stat(follow_symlinks=False)
                        found.append((entry.path, status.st_ctime_ns, status.st_size))
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
        except OSError:
            return None
        return found

    def _marks(self) -> list[object] | None:
        """Descriptors, threads, children, shared memory, signals; None if this is not Linux."""
        system = self._os
        try:
            maps = self._file("/proc/self/maps").split("\n")
            return [
                system.listdir("/proc/self/fd"),
                system.listdir("/proc/self/task"),
                self._children(),
                [line for line in maps if " rw-s " in line or " rwxs " in line],
                self._signal.getsignal(self._signal.SIGCHLD),
            ]
        except OSError:
            return None

    def _children(self) -> str:
        pid = self._os.getpid()
        return self._file(f"/proc/{pid}/task/{pid}/children")

    def _file(self, path: str) -> str:
        system, data = self._os, b""
        fd = system.open(path, system.O_RDONLY)
        try:
            while more := system.read(fd, 1 << 16):
                data += more
        finally:
            system.close(fd)
        return data.decode("utf-8", "replace")

    def _subreaper(self) -> Any:
        """Make this process the parent of orphans, if it is not in a namespace of its own."""
        if self._config["namespace"] or sys.platform != "linux":
            return None
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
        return prctl


class NoFunction(Exception):  # noqa: N818
    """The candidate has no such function."""


def executed(name: str, source: str) -> Any:
    """The module of a source, which is not a file that the candidate could see."""
    module: Any = type(sys)(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def perform(modules: dict[str, Any], call: dict[str, Any]) -> object:
    """Call the requested function, of the candidate's module or of the frame."""
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
