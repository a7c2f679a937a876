"""The worker: a trusted process that hosts a benchmark and runs its trials, one at a time.

The engine starts it as `python -m coevolve.executors.worker FLAG PARENT`, with a socket as its
standard input. It receives one setup, then requests, and answers each. While it works on one, it
may ask the engine for a service. With a third number, the descriptor of a socket, it is a fork
server: it forks workers and runs no trials itself. `docs/failures.md` describes how errors are
classified.
"""

import contextlib
import json
import mmap
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from coevolve.errors import CoevolveError
from coevolve.executors.benchmark_needs import needs_of
from coevolve.executors.channel import (
    Message,
    Pipe,
    PipeError,
    done_to_json,
    fault_to_json,
)
from coevolve.executors.engine_host import PipeHost, Terminated
from coevolve.executors.failures import classify
from coevolve.executors.fork_server import Child, ForkCheck, ForkLoop
from coevolve.executors.isolation import Limits, find_isolation
from coevolve.executors.worker_process import die_with
from coevolve.executors.workload import (
    Flag,
    Spec,
    WatchedHarness,
    Workload,
    building_fault,
    check_candidate,
    frame_of,
    prepare_candidate,
    run_trial,
)
from coevolve.search.trials import Prepared, Result


def main() -> None:
    """Serve the engine until it closes the socket."""
    flag, parent, *fork_requests = map(int, sys.argv[1:])
    die_with(parent)
    signal.signal(signal.SIGTERM, _terminate)
    with contextlib.suppress(Terminated):
        _serve(flag, fork_requests)


def _serve(flag: int, fork_requests: list[int]) -> None:
    pipe, shared = Pipe(_socket()), _shared(flag)
    setup = pipe.receive()
    if setup is None:
        return
    check = ForkCheck() if fork_requests else None
    try:
        worker = Worker(pipe, setup, shared)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        pipe.send({"fault": fault_to_json(building_fault(error, Spec.from_json(setup["spec"])))})
        return
    forks = check is not None and not check.obstacle()
    pipe.send({"ready": True, "forks": forks})
    if fork_requests:
        pipe.close()
        child = ForkLoop(fork_requests[0]).run()
        if child is None or not worker.continue_as(child, setup["unset"]):
            return
    with worker:
        worker.serve()


class Worker:
    """A workload, and the harness of the candidate it evaluated last."""

    def __init__(self, pipe: Pipe, setup: Message, flag: Flag) -> None:
        self._pipe = pipe
        self._flag = flag
        self._slot: int = setup["slot"]
        _set_variables(setup)
        self._limits = Limits(**setup["limits"])
        spec = Spec.from_json(setup["spec"])
        hidden = () if spec.folder is None else (spec.folder,)
        self._isolation = find_isolation(setup["isolation"], hidden=hidden)
        self._host = PipeHost(pipe)
        self._workload: Workload = spec.build(self._host)
        self._needs = needs_of(self._workload)
        self._harness: WatchedHarness | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        """End the candidate, then let the benchmark clean up."""
        try:
            self._drop()
        finally:
            close = getattr(self._workload, "close", None)
            if close is not None:
                close()

    def _drop(self) -> None:
        if self._harness is not None:
            self._harness.interrupt()  # a thread of the benchmark may be in a call
            self._harness.close()

    def continue_as(self, child: Child, unset: list[str]) -> bool:
        """Become the worker that was just forked; False if the engine has closed its socket."""
        for name in unset:
            os.environ.pop(name, None)
        self._pipe = self._host.pipe = Pipe(child.socket)
        self._flag = _shared(child.flag)
        setup = self._pipe.receive()
        if setup is None:
            return False
        self._slot = setup["slot"]
        _set_variables(setup)
        self._pipe.send({"ready": True, "forks": False})
        return True

    def serve(self) -> None:
        """Answer requests until the engine closes the socket."""
        while (request := self._host.next_request()) is not None:
            self._flag[1] = 0
            try:
                done = self._done(request)
            except Exception as error:
                traceback.print_exc()
                done = Prepared(fault=classify(error))
            self._host.end_request()
            try:
                self._host.send(done_to_json(done))
            except PipeError as error:
                unsent = CoevolveError(f"the answer of the benchmark cannot be sent: {error}")
                failed = Prepared(fault=classify(unsent), usage=done.usage)
                self._host.send(done_to_json(failed))
            if self._harness is not None:
                self._harness.end_trial()  # now that the engine can continue

    def _done(self, request: Message) -> Result | Prepared:
        harness = self._harness_of(request.get("candidate"))
        match request["op"]:
            case "check":
                return check_candidate(self._workload, harness)
            case "prepare":
                return prepare_candidate(self._workload, harness)
            case _:
                return run_trial(
                    self._workload, harness, request["task"], request["trial"], request["split"]
                )

    def _harness_of(self, candidate: Message | None) -> WatchedHarness:
        """The harness of a candidate; the one of the last request if none is named."""
        if candidate is not None:
            self._drop()
            self._harness = WatchedHarness(
                Path(candidate["folder"]),
                isolation=self._isolation,
                limits=self._limits,
                name=candidate["name"],
                state=None if candidate["state"] is None else json.loads(candidate["state"]),
                slot=self._slot,
                frame=frame_of(self._workload),
                fresh=self._needs.fresh_sandbox,
                flag=self._flag,
            )
        if self._harness is None:
            raise CoevolveError("the first request to a worker must name a candidate.")
        return self._harness


def _set_variables(setup: Message) -> None:
    """Add the variables of this worker's slot to the environment, before it is used."""
    given = setup.get("variables", ())
    if setup["slot"] < len(given):
        os.environ.update(given[setup["slot"]])


def _socket() -> socket.socket:
    """The socket on standard input, moved out of reach of the benchmark's child processes."""
    kept = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return socket.socket(fileno=kept)


def _shared(number: int) -> mmap.mmap:
    """The two bytes shared with the engine."""
    flag = mmap.mmap(number, 2)
    os.close(number)
    return flag


def _terminate(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing interrupts the cleaning up
    raise Terminated


if __name__ == "__main__":
    main()
