"""Candidates that know some tasks and make their trials fail on the others, each in its own way.

They are real source files: they run in a sandbox, and their requests go through the gateway to an
`Endpoint`, which answers a prompt as its first word says.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coevolve import Pool, Selector
from coevolve.core.outcomes import Missing
from coevolve.errors import StopRun
from coevolve.executors.isolation import Limits, find_isolation
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.models.gateway import Gateway
from coevolve.models.provider import Caps
from coevolve.models.rate_limits import Retrying
from coevolve.search.budget import Settings
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, View
from coevolve.search.run_state import RunState
from tests.effort import effort
from tests.models.endpoint import Act, Endpoint, cuts, drops, hangs, raw, refuses, says
from tests.models.hosting import provider

BENCHMARK = """
from coevolve.models.model_client import ModelClient


class Benchmark:
    def __init__(self, checked=True, host=None):
        self.checked, self.model = checked, ModelClient(host)

    def check(self, harness):
        self._call(harness, "check") if self.checked else None

    def prepare(self, harness):
        return self._call(harness, "prepare") if self.checked else None

    def run(self, harness, task, trial):
        return float(self._call(harness, "answer", task) == task)

    def _call(self, harness, function, *arguments):
        self.model.begin()
        return harness.call(function, *arguments, services=self.model.services)
"""

HARNESS = """
import os, signal, socket, sys, threading, time
import coevolve_host


def ask(prompt, **more):
    return coevolve_host.ask("model", prompt=prompt, **more)["text"]


def check():
    pass


def prepare():
    pass


def answer(task):
    if task in {known!r}:
        return task if ask("known " + task) == "ok" else ""
    drop(task)
    return ""


def drop(task):
    {drop}


{rest}
"""

CHILDREN = """
    for _ in range(3):
        if not os.fork():
            held = bytearray(120 << 20)
            time.sleep(60)
    time.sleep(60)
"""
THREADS = "while True: threading.Thread(target=time.sleep, args=(60,)).start()"
FILES = """
    for number in range(1000):
        open(f"/tmp/{number}", "wb").write(bytes(1 << 20))
"""
SOCKETS = """
    held = []
    while True:
        held.append(socket.socketpair())
        held[-1][0].setblocking(False)
        try:
            while True: held[-1][0].send(bytes(1 << 16))
        except BlockingIOError:
            pass
"""
PIPES = "os.closerange(3, 256); time.sleep(60)"
SELF = "os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)"
ALL = "os.kill(os.getppid(), signal.SIGKILL); os.kill(-1, signal.SIGKILL); time.sleep(60)"
RAISED = (
    "RateLimitError",
    "InfrastructureError",
    "service-limit",
    "ReadTimeout",
    "ConnectionError",
    "SandboxError",
    "ModelUnavailable",
    "MemoryError",
    "worker-died",
    "closed",
)
"""Names of exceptions and of faults that are not the candidate's; all in `make test-long`."""

WAYS = {
    "fails honestly": "pass",
    "429 for its requests": "ask('429')",
    "429, request too large": "ask('429-large')",
    "413, request too large": "ask('413-large')",
    "400, request too large": "ask('400-large')",
    "answers later than [model] seconds": "ask('late')",
    "replies that cannot be read": "ask('garbage')",
    "replies that are cut": "ask('cut')",
    "connections that are closed": "ask('closed')",
    "500 for its requests": "ask('500')",
    "400 for its requests": "ask('400')",
    "402, no credit": "ask('402')",
    "403, key refused": "ask('403')",
    "404, no such model": "ask('404')",
    "requests that are not valid": "ask(['no', 'text'])",
    "calls of the model, past trial_calls": "[ask(f'known {n}') for n in range(100)]",
    "tokens of the model, past trial_tokens": "[ask(f'costly {n}') for n in range(100)]",
    "memory of its process": "bytearray(10 << 30)",
    "memory of its children": CHILDREN,
    "forks without end": "while True: os.fork()",
    "threads without end": THREADS,
    "sleeps past its time limit": "time.sleep(600)",
    "prints gigabytes": "while True: print('x' * (1 << 20))",
    "answers of megabytes": "raise SystemExit('x' * (8 << 20))",
    "fills its disk": FILES,
    "fills sockets": SOCKETS,
    "closes its pipes": PIPES,
    "exits": "os._exit(0)",
    "raises SystemExit": "sys.exit()",
    "kills itself": SELF,
    "kills every process that it can": ALL,
    "SIGTERM to itself": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
    "raises OSError: no space left": "raise OSError(28, 'No space left on device')",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
} | {
    f"raises {name}": f"raise type({name!r}, (Exception,), dict(shared=True))('429: slow down')"
    for name in RAISED[: effort(3, len(RAISED))]
}
"""What a candidate does on a task that it does not know."""

REFUSED = {
    "exits at import": "os._exit(0)",
    "kills itself at import": SELF,
    "forks without end at import": "while True: os.fork()",
    "memory at import": "bytearray(10 << 30)",
    "dies in its check": f"def check():\n    {SELF}",
    "exits in its check": "def check(): os._exit(0)",
    "asks too much in its check": "def check(): [ask(f'known {n}') for n in range(100)]",
    "429 in its check": "def check(): ask('429')",
    "dies in its preparation": f"def prepare():\n    {SELF}",
    "asks too much in its preparation": "def prepare(): [ask(f'known {n}') for n in range(100)]",
    "late in its preparation": "def prepare(): ask('late')",
}
"""What a candidate does before its first trial."""

FLOOD = "[ask(f'flood {task} {n}') for n in range(100)]"

PAUSE = 0.02
"""Seconds of the first wait before a retry. A control then waits 60 times as long: 1.2 s."""
_RESULTS = ("checked", "prepared", "outcome")
LIMITS = Limits(
    seconds=4, memory_mb=256, processes=12, file_mb=8, output_mb=1, answer_mb=1, asks=200
)


def harness(known: Sequence[str], *, drop: str = "pass", rest: str = "") -> dict[str, bytes]:
    """The files of a candidate."""
    return {"harness.py": HARNESS.format(known=set(known), drop=drop, rest=rest).encode()}


class Model:
    """Answers a prompt as its first word says.

    Args:
        per_second: Requests that are answered in any second; further ones get 429.
    """

    def __init__(self, per_second: int | None = None) -> None:
        self._per_second = per_second
        self._times: deque[float] = deque()
        self._lock = threading.Lock()

    def __call__(self, body: Any) -> str | Act:
        """What the server does with a request."""
        if self._over():
            return refuses(429, "Rate limit reached.")
        text = "Request too large for the model."
        match str(body["messages"][-1]["content"]).split()[0]:
            case "429":
                return refuses(429, "Rate limit reached.")
            case "429-large":
                return refuses(429, text, code="rate_limit_exceeded")
            case "413-large":
                return refuses(413, text)
            case "400-large":
                return refuses(400, "context length", code="context_length_exceeded")
            case "400" | "402" | "403" | "404" | "500" as status:
                return refuses(int(status), "Not possible.")
            case "late":
                return hangs()
            case "garbage":
                return raw(b"<html>")
            case "cut":
                return cuts()
            case "closed":
                return drops()
            case "costly":
                return says("ok", tokens=1_000_000)
            case _:
                return "ok"

    def _over(self) -> bool:
        if self._per_second is None:
            return False
        now = time.monotonic()
        with self._lock:
            while self._times and self._times[0] < now - 1.0:
                self._times.popleft()
            self._times.append(now)
            return len(self._times) > self._per_second


@dataclass(frozen=True)
class Written:
    """Proposes candidates in the order given, by name."""

    files: Mapping[str, dict[str, bytes]]

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        """The next candidates."""
        names = list(self.files)[(view.round - 1) * count : view.round * count]
        return [Proposal(files=self.files[name], name=name) for name in names]


@dataclass(frozen=True, kw_only=True)
class World:
    """Tasks, and searches on them with real sandboxes and a model at a server on loopback."""

    tasks: int
    seed: int = 0
    protocol: str = "full"
    fraction: float | None = None
    candidates: int = 0
    checked: bool = True
    model: Model = field(default_factory=Model)
    model_seconds: float = 2.0
    trial_seconds: float = 60.0

    @property
    def names(self) -> list[str]:
        """The tasks."""
        return [f"task-{number}" for number in range(self.tasks)]

    def known(self, index: int, count: int) -> list[str]:
        """Tasks that a candidate knows, drawn by its number."""
        rng = np.random.default_rng([self.seed, index])
        return sorted(rng.choice(self.names, count, replace=False).tolist())

    def search(self, folder: Path, proposed: Mapping[str, dict[str, bytes]]) -> "Searched":
        """A search with these candidates."""
        return asyncio.run(self._searched(folder, proposed))

    async def _searched(
        self, folder: Path, proposed: Mapping[str, dict[str, bytes]]
    ) -> "Searched":
        (folder / "dropped_tasks.py").write_text(BENCHMARK)
        spec = Spec(
            factory="dropped_tasks:Benchmark", arguments={"checked": self.checked}, folder=folder
        )
        journal, candidates = MemoryJournal(), self.candidates or len(proposed)
        settings = Settings(
            rounds=-(-len(proposed) // candidates), candidates=candidates, seed=self.seed
        )
        open_run(
            journal,
            name="dropped",
            settings=settings,
            selector=Selector(
                Pool(self.names), protocol=self.protocol, seed=self.seed, fraction=self.fraction
            ),
            starts={
                name: {**harness(self.names[:1]), "name.txt": name.encode()}
                for name in ("start-a", "start-b")
            },
        )
        with Endpoint(answer=self.model) as endpoint:
            gateway = Gateway(
                provider(endpoint),
                retrying=Retrying(attempts=1, seconds=self.model_seconds),
                caps=Caps(trial_calls=60, trial_tokens=1_000_000),
            )
            executor = LocalExecutor(
                spec,
                contents=journal,
                workers=4,
                isolation=isolation(),
                limits=LIMITS,
                trial_seconds=self.trial_seconds,
                services=gateway.services(),
            )
            try:
                state = await Search(journal, executor, Written(proposed), pause=PAUSE).run()
            finally:
                await executor.close()
                await gateway.close()
        found = Searched(state=state)
        for event in journal.events():
            if fault := event.get("fault") if event["type"] in _RESULTS else None:
                kinds = found.faults.setdefault(event["candidate"], set())
                kinds.add((fault["blame"], fault["kind"]))
        return found


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The end of a search: its state, and the blame and kind of each candidate's last faults."""

    state: RunState
    faults: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """The candidate that was chosen."""
        assert self.state.chosen is not None
        return str(self.state.chosen["candidate"])

    def scores(self, name: str) -> dict[str, float | Missing]:
        """The scores of a candidate."""
        return self.state.selector.scores(name)


def isolation() -> str:
    """The isolation that works here; the test is skipped if there is none."""
    try:
        return find_isolation("auto").name
    except StopRun as error:
        pytest.skip(f"no sandbox works here: {error}")
