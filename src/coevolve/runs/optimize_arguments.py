"""The arguments of `optimize`, checked and turned into what the engine takes."""

import ast
import atexit
import inspect
import shutil
import signal
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from coevolve.benchmarks.function import load
from coevolve.core.choice import HighestEstimate
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol, protocol_from_json, register
from coevolve.errors import CandidateError, EventError, InputError, PoolError, StopRun, nearest
from coevolve.executors.isolation import Harness, HarnessFault
from coevolve.executors.workload import Score
from coevolve.proposers.base import Proposer
from coevolve.proposers.proposer_settings import check_ready
from coevolve.proposers.scripted import CallableProposer, awaitable
from coevolve.registry import find
from coevolve.runs.building import build_proposer
from coevolve.runs.config import RunConfig
from coevolve.runs.run import Listener
from coevolve.search.acceptance import clean
from coevolve.search.budget import CAPS, Budget, Settings
from coevolve.search.candidate import Files, check_files, read_folder

Tasks = Iterable[Any] | Mapping[str, Any] | Pool
Start = str | Path | Mapping[str, str | bytes]
Starts = Start | Sequence[str | Path] | Mapping[str, Start]
Scored = float | Score | Missing
Evaluate = Callable[[Harness, Any], Scored | Awaitable[Scored]]
Propose = Callable[..., Any] | Proposer | str | Mapping[str, Any]
Isolated = Literal["auto", "bwrap", "process", "process-as-root"]

PYTHON, PLAIN = "harness.py", "prompt.txt"
"""The file of a candidate that is one text: Python code that defines something, or any other."""


class FunctionWorkload:
    """Trials by `evaluate`, after a check of the candidate's code.

    `error` is the last exception of `evaluate` that was not a candidate's fault; with `at_once`,
    Ctrl-C interrupts `evaluate` itself.
    """

    def __init__(self, evaluate: Evaluate, objects: Mapping[str, Any], *, sandboxed: bool) -> None:
        self._evaluate, self._objects, self._sandboxed = evaluate, objects, sandboxed
        self.error: BaseException | None = None
        self.at_once = False
        awaited = inspect.iscoroutinefunction(evaluate) or inspect.iscoroutinefunction(
            getattr(evaluate, "__call__", None)  # noqa: B004
        )
        self.run: Callable[..., Any] = self._run_async if awaited else self._run

    def error_in(self, stop: StopRun) -> BaseException | None:
        """The exception of `evaluate` that caused a stop, for the traceback."""
        about = self.error is not None and str(self.error)[:500] in str(stop)
        return self.error if about else None

    def check(self, harness: Harness) -> None:
        """Load the candidate in its sandbox; without one, only parse its code."""
        file = harness.folder / PYTHON
        if not file.is_file():
            return
        if self._sandboxed:
            load(harness)
            return
        try:
            _parse(file.read_bytes())
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f" ({PYTHON}, line {error.lineno})" if isinstance(error, SyntaxError) else ""
            said = error.msg if isinstance(error, SyntaxError) else str(error)
            kind = type(error).__name__
            raise HarnessFault(kind, f"{kind}: {said}{line}") from error

    def prepare(self, harness: Harness) -> None:
        """Nothing is prepared."""

    def _run(self, harness: Harness, task: str, trial: int) -> Any:
        with self._noting(harness), _ctrl_c_raises() if self.at_once else nullcontext():
            given = self._evaluate(harness, self._objects[task])
            if inspect.iscoroutine(given):
                given.close()
                raise InputError("evaluate returned a coroutine; define it with `async def`.")
            return given

    async def _run_async(self, harness: Harness, task: str, trial: int) -> Any:
        with self._noting(harness):
            given: Any = self._evaluate(harness, self._objects[task])
            return await given

    @contextmanager
    def _noting(self, harness: Harness) -> Iterator[None]:
        """Keep the exception; a call of a missing file or function is an error of `evaluate`."""
        try:
            yield
        except HarnessFault as fault:
            if fault.kind not in ("missing-file", "missing-function"):
                raise
            self.error = InputError(
                f"candidate {harness.name!r} cannot be called: {fault.reason}; candidate.call "
                f"calls functions of the file {PYTHON}."
            )
            raise self.error from None
        except Exception as error:
            self.error = error
            raise


def read_tasks(given: Tasks, argument: str) -> tuple[Pool, dict[str, Any]]:
    """The pool of some tasks, and what `evaluate` gets for each id."""
    try:
        if isinstance(given, Pool):
            return given, {task: task for task in given.tasks}
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise PoolError(f"must be a list or a mapping, got {given!r:.80}.")
        if not isinstance(given, Mapping):
            pairs = _identified(given, "test-" if argument == "test_tasks" else "task-")
            return Pool([task for task, _ in pairs]), dict(pairs)
        if not given or not all(map(_is_list, given.values())):
            if (other := next((key for key in given if not isinstance(key, str)), "")) != "":
                raise PoolError(f"the ids of tasks must be text, got {other!r}.")
            return Pool(given), dict(given)
        pools = {name: _identified(items, f"{name}-") for name, items in given.items()}
        groups = {name: [task for task, _ in pairs] for name, pairs in pools.items()}
        return Pool.grouped(groups), {k: v for pairs in pools.values() for k, v in pairs}
    except PoolError as error:
        raise PoolError(f"{argument}: {error}") from None


def _identified(items: Iterable[Any], prefix: str) -> list[tuple[str, Any]]:
    """Each task with its id: itself, its "id", or its place."""
    pairs = []
    for place, item in enumerate(items, 1):
        task = f"{prefix}{place:03}"
        if isinstance(item, str):
            task = item
        elif isinstance(item, Real):
            task = str(item)
        elif isinstance(item, Mapping) and "id" in item:
            task = str(item["id"])
        pairs.append((task, item))
    return pairs


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def read_starts(given: Starts) -> dict[str, Files]:
    """The files of the starting candidates; those of a single text get a common file name."""
    if isinstance(given, str | Path):
        given = [given]
    if isinstance(given, Mapping):
        named: list[tuple[str, Any]] = list(given.items())
    elif isinstance(given, Sequence):
        named = [
            (item.resolve().stem if isinstance(item, Path) else f"start-{place}", item)
            for place, item in enumerate(given, 1)
        ]
    else:
        raise InputError(f"starts must be a list or a mapping from name to text, got {given!r}.")
    found: dict[str, Any] = {}
    for name, item in named:
        if name in found:
            raise InputError(f"starts: two candidates are named {name!r}; pass a mapping.")
        if clean(name) != name:
            raise InputError(
                f"starts: {name!r} cannot be a name; use letters, digits and . _ + -, such as "
                f"{clean(name)!r}."
            )
        found[name] = _read_start(item, f"starts[{name!r}]")
    texts = {name: text for name, text in found.items() if isinstance(text, bytes)}
    file = PYTHON if all(map(_is_code, texts.values())) else PLAIN
    files = {name: {file: f} if isinstance(f, bytes) else f for name, f in found.items()}
    for name, contents in files.items():
        try:
            check_files(contents, name)
        except CandidateError as error:
            raise InputError(f"starts: {error}") from None
    return files


def _read_start(item: Any, where: str) -> bytes | dict[str, bytes]:
    """A text, or files by path."""
    if isinstance(item, str):
        if item and "\n" not in item and len(item) < 256 and Path(item).exists():
            raise InputError(f"{where} is the text {item!r}; pass Path({item!r}) for the file.")
        return item.encode()
    if isinstance(item, Path):
        if item.is_dir():
            return read_folder(item)
        if not item.is_file():
            raise InputError(f"{where}: there is no file or folder {str(item)!r}.")
        return item.read_bytes()
    if isinstance(item, Mapping):
        files = {}
        for path, content in item.items():
            if not isinstance(path, str) or not isinstance(content, str | bytes):
                raise InputError(f"{where}[{path!r}] must be text or bytes, got {content!r:.80}.")
            files[path] = content.encode() if isinstance(content, str) else content
        return files
    raise InputError(f"{where} must be a text, a Path or {{path: text}}, got {item!r:.80}.")


def _is_code(text: bytes) -> bool:
    """Whether a text is Python that defines a function or a class."""
    try:
        body = _parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for n in body)


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def read_budget(given: Budget | Mapping[str, float] | None) -> Budget:
    """The caps of a search; none if left out."""
    if given is None or isinstance(given, Budget):
        return given or Budget()
    if not isinstance(given, Mapping):
        raise InputError(
            f"budget must be a Budget or a mapping such as {{'trials': 200}}, got {given!r}."
        )
    for name, cap in given.items():
        if name not in CAPS:
            raise InputError(
                f"unknown budget {name!r}; use {', '.join(CAPS)}.{nearest(str(name), CAPS)}"
            )
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, Real)):
            raise InputError(f"budget {name} must be a number, got {cap!r}.")
    return Budget(**given)  # type: ignore[arg-type]


def read_protocol(given: str | SearchProtocol, fraction: float | None) -> SearchProtocol:
    """The protocol, registered if events cannot describe it; by name, a start may win."""
    if isinstance(given, str):
        rule: SearchProtocol = find("protocols", given, folder=Path())
        if isinstance(rule, SearchProtocol) and isinstance(rule.choice, HighestEstimate):
            rule = replace(rule, choice=replace(rule.choice, include_start=True))
    else:
        rule = given
    if not isinstance(rule, SearchProtocol):
        raise InputError(f"protocol must be a name or a SearchProtocol, got {given!r}.")
    if fraction is not None:
        rule = replace(rule, allocation=rule.allocation.at(fraction))
    try:
        protocol_from_json(rule.to_json())
    except EventError:  # it has parts of its own
        register(rule)
    return rule


def read_folder_path(given: Path | str) -> Path:
    """The run folder, which need not exist."""
    if not isinstance(given, str | Path):
        raise InputError(f"folder must be a path, got {given!r}.")
    folder = Path(given)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder {str(given)!r} is a file; pass a folder.")
    return folder


def read_listeners(given: Listener | Sequence[Listener]) -> list[Listener]:
    """The functions that are called with every event."""
    listeners = [given] if callable(given) else given
    if not isinstance(listeners, Sequence) or not all(map(callable, listeners)):
        raise InputError(f"listen must be a function of one event, or a list, got {given!r}.")
    return list(listeners)


def read_proposer(
    given: Propose, settings: Settings, folder: Path | None
) -> tuple[Proposer, float]:
    """The proposer, and the seconds that a proposal may take."""
    if isinstance(given, str | Mapping):
        return _configured({"kind": given} if isinstance(given, str) else given, settings, folder)
    if isinstance(given, Proposer) and not isinstance(given, type):
        return awaitable(given), float("inf")
    if not callable(given):
        raise InputError(
            "propose must be a function of (view) or (view, count), a Proposer, or the name of "
            f"one, got {given!r}."
        )
    return CallableProposer(given), float("inf")


def _configured(
    table: Mapping[str, Any], settings: Settings, folder: Path | None
) -> tuple[Proposer, float]:
    """The proposer of a table `[proposer]`."""
    config = RunConfig.from_json(
        {
            "run": {"seed": settings.seed},
            "search": {"rounds": settings.rounds, "candidates": settings.candidates},
            "budget": settings.budget.to_json(),
            "benchmark": {"kind": "coevolve.runs.optimize:optimize"},
            "proposer": dict(table),
        },
        source="propose",
    )
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="coevolve-proposing-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    proposer = build_proposer(config, Path(), folder=folder)
    check_ready(proposer)
    return proposer, config.proposer.patience


def name_of(function: object) -> str:
    """The name of a function or object, for the journal."""
    if isinstance(function, str | Mapping):
        return function if isinstance(function, str) else str(function.get("kind", ""))
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}:{name}"


@contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """Let Ctrl-C interrupt the running code; asyncio would wait until it returns."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
