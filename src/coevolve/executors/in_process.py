"""Trials in the engine's process: one after another, in threads, or as coroutines."""

import asyncio
import importlib.util
import inspect
import itertools
import json
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any, cast

from coevolve.errors import ConfigError, InputError, StateError
from coevolve.executors.benchmark_needs import needs_of
from coevolve.executors.failures import classify, named
from coevolve.executors.isolation import (
    HarnessFault,
    Isolation,
    Limits,
    PlainProcess,
    find_isolation,
)
from coevolve.executors.isolation.harness_calls import checked
from coevolve.executors.local import Contents
from coevolve.executors.worker_process import Held
from coevolve.executors.workload import (
    Score,
    WatchedHarness,
    Workload,
    check_candidate,
    frame_of,
    prepare_candidate,
    run_trial,
)
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Blame, Prepared, Result, Trial

NOWHERE = Path("/nonexistent")
"""The folder of candidates for an executor without contents."""
NO_ISOLATION = "none"
"""The `isolation` that a session records if candidates run in the engine's process."""
_PROCESS = PlainProcess()
"""Does not look at the machine: it refuses only when a candidate is started."""


class InProcessExecutor:
    """Runs trials in this process: for Python functions, synthetic worlds, notebooks and tests.

    The benchmark's code runs in this process. A trial has no time limit, and a plain function
    cannot be stopped: a cancelled trial is abandoned if `threads` is set, and otherwise runs to
    its end. A benchmark whose `run` is a coroutine function runs `workers` trials at once,
    without threads.

    Args:
        workload: The benchmark.
        contents: Where the files and states of candidates are; not needed if the benchmark never
            reads a candidate's files.
        workers: How many trials it accepts at once. Without `threads`, plain functions wait for
            each other.
        isolation: How candidate code is isolated: "auto", "bwrap", "process", "process-as-root",
            or an isolation. None runs it in this process, with all its permissions.
        limits: What a candidate may use, if it is isolated; None uses those of the benchmark.
        threads: Whether plain functions run in threads instead of the thread of the event loop.

    >>> class Constant:
    ...     def check(self, harness): ...
    ...     def prepare(self, harness): ...
    ...     def run(self, harness, task, trial): return 0.5
    >>> executor = InProcessExecutor(Constant())
    >>> candidate = Candidate.of({"harness.py": b""}, name="empty")
    >>> asyncio.run(executor.run(candidate, Trial(candidate="empty", task="a"))).score
    0.5
    """

    def __init__(
        self,
        workload: Workload,
        *,
        contents: Contents | None = None,
        workers: int = 1,
        isolation: str | Isolation | None = _PROCESS,
        limits: Limits | None = None,
        threads: bool = False,
    ) -> None:
        if workers < 1:
            raise InputError(f"workers must be at least 1, got {workers!r}.")
        self._isolation = find_isolation(isolation) if isinstance(isolation, str) else isolation
        if self._isolation is None and frame_of(workload):
            raise ConfigError(
                "the benchmark has a frame, which runs in a sandbox; choose an isolation: "
                "'auto', 'bwrap' or 'process'."
            )
        self.capacity = workers
        self._workload, self._contents = workload, contents
        self._needs = needs_of(workload)
        self._limits = limits or self._needs.limited()
        self._awaits = inspect.iscoroutinefunction(workload.run)
        self._threads = threads
        self._free = asyncio.Semaphore(workers)
        self._idle: list[_Slot] = []
        self._numbers = itertools.count()
        self._folders: dict[str, Path] = {}
        self._closed = False

    @property
    def isolation_name(self) -> str:
        """How candidate code is isolated."""
        return NO_ISOLATION if self._isolation is None else self._isolation.name

    async def check(self, candidate: Candidate) -> Prepared:
        """Check whether a candidate can be evaluated at all; `fault` says why not."""
        return await self._prepared(check_candidate, candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; its state is passed to every trial."""
        return await self._prepared(prepare_candidate, candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt."""
        async with self._slot(candidate, trial.state) as slot:
            try:
                harness = self._harness(slot, candidate, trial.state)
            except Exception as error:
                return Result(fault=classify(error))
            if self._awaits:
                return await _awaited(self._workload, harness, trial)
            return await slot.do(
                lambda: run_trial(self._workload, harness, trial.task, trial.trial, trial.split)
            )

    async def close(self) -> None:
        """End the processes of candidates, if there are any."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(slot.close() for slot in idle))

    async def _prepared(
        self, step: Callable[[Workload, WatchedHarness], Prepared], candidate: Candidate
    ) -> Prepared:
        async with self._slot(candidate, None) as slot:
            try:
                harness = self._harness(slot, candidate, None)
            except Exception as error:
                return Prepared(fault=classify(error))
            return await slot.do(lambda: step(self._workload, harness))

    @asynccontextmanager
    async def _slot(self, candidate: Candidate, state: str | None) -> "AsyncIterator[_Slot]":
        """A slot for an attempt, preferably one that has the candidate ready."""
        async with self._free:
            await asyncio.sleep(0)  # lets other tasks run before this one blocks the event loop
            if self._closed:
                raise StateError("the executor is closed; create a new one.")
            held = Held(candidate.name, candidate.address, state)
            ready = [slot for slot in self._idle if slot.held == held]
            if slots := ready or (self._idle if len(self._idle) == self.capacity else []):
                slot = slots[0]
                self._idle.remove(slot)
            else:
                slot = _Slot(next(self._numbers), self._threads and not self._awaits)
            try:
                yield slot
            except BaseException:
                slot.abandon()
                raise
            if self._closed:
                slot.abandon()
            else:
                self._idle.append(slot)

    def _harness(self, slot: "_Slot", candidate: Candidate, state: str | None) -> WatchedHarness:
        """The harness of a candidate, kept for further attempts of the same candidate."""
        held = Held(candidate.name, candidate.address, state)
        if slot.harness is None or slot.held != held:
            slot.drop()
            folder, found = self._folder(candidate), self._state(state)
            if self._isolation is None:
                slot.harness = TrustedHarness(folder, name=candidate.name, state=found)
            else:
                slot.harness = WatchedHarness(
                    folder,
                    isolation=self._isolation,
                    limits=self._limits,
                    name=candidate.name,
                    state=found,
                    slot=slot.number,
                    frame=frame_of(self._workload),
                    fresh=self._needs.fresh_sandbox,
                    flag=bytearray(2),
                )
            slot.held = held
        return slot.harness

    def _folder(self, candidate: Candidate) -> Path:
        if self._contents is None:
            return NOWHERE / candidate.name
        if candidate.address not in self._folders:
            self._folders[candidate.address] = self._contents.checkout(candidate)
        return self._folders[candidate.address]

    def _state(self, address: str | None) -> object:
        if address is None:
            return None
        if self._contents is None:
            raise InputError("reading the state of a candidate needs `contents`; pass a journal.")
        return json.loads(self._contents.get(address))


class _Slot:
    """Runs one attempt at a time: the harness it used last and its thread, if any.

    A sandbox ends with the thread that started it, so a slot keeps its thread.
    """

    def __init__(self, number: int, threaded: bool) -> None:
        self.number = number
        self.held: Held | None = None
        self.harness: WatchedHarness | None = None
        self._jobs: SimpleQueue[_Job | None] | None = None
        if threaded:
            self._jobs = SimpleQueue()
            name = f"coevolve-trials-{number}"
            threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True).start()

    async def do[T](self, job: Callable[[], T]) -> T:
        """Call a function in the thread of the slot and return its result; then end the trial."""
        if self._jobs is None:
            return self._done(job)
        future: Future[T] = Future()
        self._jobs.put((cast(Future[Any], future), lambda: self._done(job)))
        return await asyncio.wrap_future(future)

    def _done[T](self, job: Callable[[], T]) -> T:
        done = job()
        if self.harness is not None:
            self.harness.end_trial()
        return done

    def drop(self) -> None:
        """End the process of the candidate, if there is one."""
        if self.harness is not None:
            harness, self.harness = self.harness, None
            harness.close()

    async def close(self) -> None:
        """End the slot; it must be idle."""
        await self.do(self.drop)
        if self._jobs is not None:
            self._jobs.put(None)

    def abandon(self) -> None:
        """End the slot when its job is over, without waiting."""
        if self._jobs is None:
            self.drop()
        else:
            self._jobs.put((Future(), self.drop))
            self._jobs.put(None)


_Job = tuple[Future[Any], Callable[[], Any]]


def _serve(jobs: "SimpleQueue[_Job | None]") -> None:
    """Run the jobs of a slot."""
    while (given := jobs.get()) is not None:
        future, job = given
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)


async def _awaited(workload: Workload, harness: WatchedHarness, trial: Trial) -> Result:
    """The result of a trial whose benchmark is a coroutine."""
    given: object = None
    failure: Exception | None = None
    run = getattr(workload, "run_test", workload.run) if trial.split == "test" else workload.run
    harness.forget_output()
    started = time.perf_counter()
    try:
        given = await cast(Coroutine[Any, Any, object], run(harness, trial.task, trial.trial))
    except Exception as error:
        failure = error
    seconds = time.perf_counter() - started
    known = _Known(given, failure, harness.printed)
    result = run_trial(cast(Workload, known), harness, trial.task, trial.trial, "validation")
    harness.end_trial()
    if isinstance(given, Score) and given.usage is not None and given.usage.seconds:
        return result
    return replace(result, usage=replace(result.usage, seconds=seconds))


class _Known:
    """A workload with a known result: it returns or raises it."""

    def __init__(self, given: object, failure: Exception | None, printed: str) -> None:
        self._given, self._failure, self._printed = given, failure, printed

    def run(self, harness: WatchedHarness, task: str, trial: int) -> object:
        harness.printed = self._printed
        if self._failure is not None:
            raise self._failure
        return self._given


class TrustedHarness(WatchedHarness):
    """A candidate whose functions run in this process, with all its permissions.

    Arguments and answers may be any objects. Errors in the candidate's code are its fault,
    except those that `classify` blames on the network, a service or the operator.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "harness.py").write_text("def double(n): return 2 * n")
    ...     TrustedHarness(Path(folder), name="mine").call("double", 21)
    42
    """

    def __init__(self, folder: Path, *, name: str, state: object = None) -> None:
        super().__init__(
            folder, isolation=PlainProcess(), name=name, state=state, flag=bytearray(2)
        )
        self._loaded: ModuleType | None = None

    def call(
        self,
        function: str,
        /,
        *args: object,
        returns: type | None = None,
        services: object = None,
        concurrent: bool = False,
        **kwargs: object,
    ) -> Any:
        """What a function of the candidate returns; a coroutine if it is an `async` one."""
        with _own_faults(self.folder):
            if self._loaded is None:
                self._loaded = load_candidate(self.folder)
            target: Any = self._loaded
            for part in function.split("."):
                target = getattr(target, part, None)
            if not callable(target):
                raise HarnessFault("missing-function", f"harness has no function {function!r}")
            answer = target(*args, **kwargs)
        if inspect.iscoroutine(answer):
            return self._finished(answer, returns)
        return checked(answer, returns)

    def close(self) -> None:
        """Drop the candidate's code."""
        super().close()
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            sys.modules.pop(loaded.__name__, None)

    async def _finished(self, answer: Coroutine[Any, Any, object], returns: type | None) -> Any:
        with _own_faults(self.folder):
            found = await answer
        return checked(found, returns)


_OWN = (ImportError, RecursionError, PermissionError)
"""Errors for which a candidate is to blame, although a benchmark would not be."""


@contextmanager
def _own_faults(folder: Path) -> Iterator[None]:
    """Blame the candidate for errors in its code, unless a service or the operator is to blame."""
    try:
        yield
    except HarnessFault:
        raise
    except (Exception, SystemExit) as error:
        if classify(error).blame is not Blame.BENCHMARK and not isinstance(error, _OWN):
            raise
        own = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).is_relative_to(folder)
        ]
        where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
        raise HarnessFault(type(error).__name__, f"{named(error)}{where}") from error


_loading = threading.Lock()
_loads = itertools.count()


def load_candidate(folder: Path) -> ModuleType:
    """The module `harness` of a candidate, freshly loaded; it may import the files beside it.

    Those imports must be at the top of its files: after loading, the names mean other modules.
    """
    file, package = folder / "harness.py", folder / "harness" / "__init__.py"
    path = file if file.is_file() else package
    if not path.is_file():
        raise HarnessFault("missing-file", "has no file harness.py")
    name = f"coevolve_candidate_{next(_loads)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _loading, _importing(folder):
        sys.modules[name] = module  # where dataclasses look for it
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
    return module


@contextmanager
def _importing(folder: Path) -> Iterator[None]:
    """Let the files of a folder be imported by their names, and forget them afterwards."""
    own = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}

    def taken() -> dict[str, ModuleType]:
        return {n: m for n, m in sys.modules.items() if n.partition(".")[0] in own}

    others, written = taken(), sys.dont_write_bytecode
    for name in others:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = written
        sys.path.remove(str(folder))
        for name in taken():
            del sys.modules[name]
        sys.modules.update(others)
