"""The `coevolve` command, in a process forked from one that has imported it.

A fresh process takes most of a second to import the command, and three more for LiteLLM. Each
test process therefore keeps one server that imports both once and forks for every command. A
forked command has its own environment, folder, standard streams, signals and exit status, as a
fresh one has. `fresh` starts the installed script where the start itself is tested.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "coevolve"
_FIXED = ("PYTHONPATH", "PYTHONHASHSEED", "PYTHONWARNINGS")
"""What an interpreter reads only when it starts."""
_CANDIDATES = ("coevolve.benchmarks.textclass.harnesses", "coevolve_reproductions.family")
_LIBRARIES = ("matplotlib.figure", "scipy.linalg", "scipy.special", "typer.rich_utils")
_LONGEST = 1 << 20


def coevolve(
    *arguments: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    litellm: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Args:
        arguments: The words after `coevolve`.
        cwd: The folder to run it in.
        env: Its environment; that of the tests if None.
        litellm: Whether it calls a hosted model, so that LiteLLM is worth importing beforehand.
    """
    environment = dict(os.environ if env is None else env)
    if any(environment.get(name) != os.environ.get(name) for name in _FIXED):
        return fresh(*arguments, cwd=cwd, env=environment)
    words = [str(COMMAND), *map(str, arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        request = {
            "argv": words,
            "cwd": str(cwd or Path.cwd()),
            "env": environment,
            "litellm": litellm,
        }
        code = _server().run(request, [out.fileno(), errors.fileno()])
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            words, code, out.read().decode(), errors.read().decode()
        )


def fresh(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a process that imports everything itself."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=env,
    )


class _Server:
    """The process that forks; it ends when this process closes its socket."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        atexit.register(self.close)

    def run(self, request: Mapping[str, Any], streams: list[int]) -> int:
        """The exit status of a command that writes to these streams."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], streams)
            answer = self._socket.recv(_LONGEST)
        if not answer:
            raise RuntimeError("the server that forks commands has ended; see its errors above")
        return int(answer)

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._process.wait()


@functools.cache
def _server() -> _Server:
    return _Server()


def _serve(connection: socket.socket) -> None:
    """Fork for each request; returns in the forked process, with everything as requested."""
    while True:
        message, streams, _, _ = socket.recv_fds(connection, _LONGEST, 2)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if request["litellm"] and "litellm" not in sys.modules:
            os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
            for name in ("litellm", "litellm.proxy._types", "openai.resources"):
                importlib.import_module(name)
        gc.freeze()
        if (child := os.fork()) == 0:
            break
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    connection.close()
    for stream, wanted in zip(streams, (1, 2), strict=True):
        os.dup2(stream, wanted)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = request["argv"]


def _import() -> None:
    """Import whatever a command may import, except what candidates are made of."""
    for package in map(importlib.import_module, ("coevolve", "coevolve_reproductions")):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_CANDIDATES) and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in _LIBRARIES:
        importlib.import_module(name)


def _main() -> None:
    sys.path[0] = str(COMMAND.parent)  # as in the installed script
    gc.disable()  # what is imported lives to the end
    _import()
    gc.freeze()
    gc.enable()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    status = 1
    try:
        sys.modules["coevolve.cli.main"].app()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    _end(status)


def _end(status: int) -> None:
    """End as an interpreter does, but leave the imported modules to the system to clear."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _main()
