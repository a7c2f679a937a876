"""The worker: a trusted process that hosts a benchmark and runs its trials, one at a time.

Started by the engine as `python -m coevolve.executors.worker FLAG PARENT`, with a socket for
its standard input. It takes one setup, then requests, and answers each; while it works on one,
it may ask the engine for a service. `docs/failures.md` says what becomes of its errors. With a
third number, the descriptor of a socket, it is a nursery, and forks workers instead.
"""

import contextlib
import json
import mmap
import os
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

from coevolve.errors import CoevolveError
from coevolve.executors.channel import (
    Message,
    Pipe,
    PipeError,
    done_to_json,
    fault_from_json,
    fault_to_json,
)
from coevolve.executors.failures import FaultError, classify
from coevolve.executors.forking import Births, Newborn, Surroundings
from coevolve.executors.isolation import Isolation, Limits, find_isolation
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
from coevolve.search.trials import Fault, Prepared, Result


def main() -> None:
    """Serve the engine until it closes the socket."""
    flag, parent, *births = map(int, sys.argv[1:])
    die_with(parent)
    signal.signal(signal.SIGTERM, _terminate)
    with contextlib.suppress(Terminated):
        _serve(flag, births)


def _serve(flag: int, births: list[int]) -> None:
    pipe, shared = Pipe(_socket()), _shared(flag)
    setup = pipe.receive()
    if setup is None:
        return
    before = Surroundings() if births else None
    try:
        worker = Worker(pipe, setup, shared)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        pipe.send({"fault": fault_to_json(building_fault(error, Spec.from_json(setup["spec"])))})
        return
    forks = before is not None and not before.left_by_building()
    pipe.send({"ready": True, "forks": forks})
    if births and not worker.reborn(Births(births[0]).bear(), setup["lent"]):
        return
    with worker:
        worker.serve()


class Terminated(BaseException):
    """The engine wants this process to end; no error of the benchmark."""


class PipeHost:
    """The engine, reached through the socket; one question at a time, from any thread."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._turn = threading.Lock()

    def move(self, pipe: Pipe) -> None:
        """Reach the engine through another socket from now on."""
        self._pipe = pipe

    def ask(self, service: str, /, **payload: Any) -> Any:
        """What a service of the engine answers; raises the fault it met."""
        with self._turn:
            self._pipe.send({"ask": service, "payload": payload})
            answer = self._pipe.receive()
        if answer is None:
            raise Terminated
        if "fault" in answer:
            raise FaultError(fault_from_json(answer["fault"]))
        return answer["answer"]


class Worker:
    """A workload, and the harness of the candidate it worked on last."""

    def __init__(self, pipe: Pipe, setup: Message, flag: Flag) -> None:
        self._pipe = pipe
        self._flag = flag
        self._slot: int = setup["slot"]
        self._limits = Limits(**setup["limits"])
        spec = Spec.from_json(setup["spec"])
        hidden = () if spec.folder is None else (spec.folder,)
        self._isolation: Isolation = find_isolation(setup["isolation"], hidden=hidden)
        self._host = PipeHost(pipe)
        self._workload: Workload = spec.build(self._host)
        self._harness: WatchedHarness | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        if self._harness is not None:
            self._harness.close()

    def reborn(self, newborn: Newborn | None, lent: list[str]) -> bool:
        """Go on as a worker that was just forked, if this is one; its setup has been sent."""
        self._pipe.close()
        if newborn is None:
            return False
        for name in lent:  # for what the benchmark may start
            os.environ.pop(name, None)
        self._pipe, self._flag = Pipe(newborn.socket), _shared(newborn.flag)
        self._host.move(self._pipe)
        setup = self._pipe.receive()
        if setup is None:
            return False
        self._slot = setup["slot"]
        self._pipe.send({"ready": True, "forks": False})
        return True

    def serve(self) -> None:
        """Answer requests until there are no more."""
        while (request := self._pipe.receive()) is not None:
            self._flag[1] = 0
            try:
                done = self._done(request)
            except Exception as error:
                traceback.print_exc()
                done = Prepared(fault=classify(error))
            try:
                self._pipe.send(done_to_json(done))
            except PipeError as error:
                self._pipe.send(done_to_json(Prepared(fault=_unsent(error), usage=done.usage)))

    def _done(self, request: Message) -> Result | Prepared:
        harness = self._at(request.get("candidate"))
        match request["op"]:
            case "check":
                return check_candidate(self._workload, harness)
            case "prepare":
                return prepare_candidate(self._workload, harness)
            case _:
                return run_trial(
                    self._workload, harness, request["task"], request["trial"], request["split"]
                )

    def _at(self, candidate: Message | None) -> WatchedHarness:
        """The harness at work: of this candidate, or of the one before where none is named."""
        if candidate is not None:
            self.__exit__()
            self._harness = WatchedHarness(
                Path(candidate["folder"]),
                isolation=self._isolation,
                limits=self._limits,
                name=candidate["name"],
                state=None if candidate["state"] is None else json.loads(candidate["state"]),
                slot=self._slot,
                frame=frame_of(self._workload),
                flag=self._flag,
            )
        if self._harness is None:
            raise CoevolveError("the first request of a worker must name a candidate.")
        return self._harness


def _unsent(error: PipeError) -> Fault:
    return classify(CoevolveError(f"the answer of the benchmark cannot be kept: {error}"))


def _socket() -> socket.socket:
    """The socket that came as standard input, out of reach of the benchmark's children."""
    kept = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return socket.socket(fileno=kept)


def _shared(number: int) -> mmap.mmap:
    """The two bytes of an inherited file."""
    flag = mmap.mmap(number, 2)
    os.close(number)
    return flag


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    main()
