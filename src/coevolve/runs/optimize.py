"""A whole search in one call: tasks, starting candidates, and two Python functions."""

import ast
import atexit
import inspect
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack

from coevolve.benchmarks.function import load
from coevolve.core.choice import HighestEstimate
from coevolve.core.outcomes import Missing, is_whole
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol, protocol_from_json, register
from coevolve.core.selector import Selector
from coevolve.errors import CandidateError, EventError, InputError, PoolError, StopRun, nearest
from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.isolation import Harness, HarnessFault, Isolation, find_isolation
from coevolve.executors.workload import Score
from coevolve.proposers.base import (
    Proposal,
    Proposed,
    Proposer,
    Repairer,
    View,
    as_proposed,
    in_thread,
)
from coevolve.proposers.proposer_settings import check_ready
from coevolve.registry import find
from coevolve.runs.building import build_proposer
from coevolve.runs.config import RunConfig
from coevolve.runs.result import Result, RunFolder
from coevolve.runs.run import BY_OPTIMIZE, Listener, Run, blocking, extend, loop_runs, told
from coevolve.search.acceptance import Rules, clean
from coevolve.search.budget import CAPS, Budget, Settings
from coevolve.search.candidate import Candidate, Files, check_files, read_folder
from coevolve.search.journal import Journal, MemoryJournal, Recorder
from coevolve.search.loop import Search, open_run
from coevolve.store import RunStore

Tasks = Iterable[Any] | Mapping[str, Any] | Pool
Start = str | Path | Mapping[str, str | bytes]
Starts = Start | Sequence[str | Path] | Mapping[str, Start]
Scored = float | Score | Missing
Evaluate = Callable[[Harness, Any], Scored | Awaitable[Scored]]
Propose = Callable[..., Any] | Proposer | str | Mapping[str, Any]
Isolated = Literal["auto", "bwrap", "process"]


class Options(TypedDict, total=False):
    """The arguments of `optimize` that have a default."""

    rounds: int
    candidates: int
    fraction: float | None
    protocol: str | SearchProtocol
    budget: Budget | Mapping[str, float] | None
    seed: int
    workers: int
    test_tasks: Tasks
    isolation: Isolated | None
    folder: Path | str | None
    listen: Listener | Sequence[Listener]


PYTHON, PLAIN = "harness.py", "prompt.txt"
"""The file of a candidate that is one text: Python code that defines something, or any other."""


def optimize(
    tasks: Tasks,
    starts: Starts,
    evaluate: Evaluate,
    propose: Propose,
    *,
    rounds: int = 10,
    candidates: int = 1,
    fraction: float | None = None,
    protocol: str | SearchProtocol = "task-coevolve",
    budget: Budget | Mapping[str, float] | None = None,
    seed: int = 0,
    workers: int = 1,
    test_tasks: Tasks = (),
    isolation: Isolated | None = None,
    folder: Path | str | None = None,
    listen: Listener | Sequence[Listener] = (),
) -> Result:
    """Search for a better candidate, each scored on a few well-chosen tasks.

    Every starting candidate is scored on all tasks. Then each round `propose` writes new
    candidates, and `evaluate` scores them on the tasks that tell candidates apart best; an
    estimate of the score on all tasks makes them comparable. The best estimate wins.

    `evaluate` and `propose` run in this process. So does the code of candidates that
    `candidate.call` runs, or that `evaluate` runs itself: **it has all your rights**, and a
    language model may have written it. Pass `isolation="auto"` to run `candidate.call` in a
    sandbox.

    Works in a script, in a notebook, and in threads. Under asyncio, use `optimize_async`.

    Args:
        tasks: The tasks: a list of texts or of any objects; a mapping from id to object; or a
            mapping from pool to list. `evaluate` gets each task as it is given here. The id of an
            object is its "id" if it is a mapping with one, or else its place in the list.
        starts: The starting candidates: a mapping from name to text, to `Path` of a file or
            folder, or to {path: text}; or a list of texts or `Path`s.
        evaluate: `evaluate(candidate, task)` returns a number in [0, 1], a `Score` (with usage
            and a trace), or `Missing(reason)`. The candidate has `name`, `text` (of its only
            file), `files`, `folder` and `call(function, *arguments)`, which calls a function of
            its `harness.py`. It may be `async`; then `workers` of them are under way at once. An
            exception is the candidate's failure and scores 0, unless it comes from the network or
            a service (then the trial is repeated, and missing if that does not help), or a
            starting candidate meets it (then the search stops).
        propose: `propose(view)` or `propose(view, count)` returns new candidates: a text, a
            `Proposal`, a mapping with `text` or `files` and maybe `name`, or a list of these. It
            may be `async`. Or a `Proposer`, the name of a registered one, or its settings as in
            the table `[proposer]` of a TOML file.
        rounds: Rounds of proposing and evaluating.
        candidates: Candidates per round.
        fraction: Share of the tasks of each pool that a new candidate is scored on; the
            protocol's own (usually 20%) if left out.
        protocol: The name of a protocol, or a `SearchProtocol`. Where it is named, a starting
            candidate wins if no new one is better.
        budget: Caps on trials, tokens, dollars and hours: a `Budget` or a mapping.
        seed: Seed of every draw.
        workers: How many trials run at once: in threads, if `evaluate` is a plain function.
        test_tasks: Tasks of a sealed test, as `tasks`: the winner and the starting candidates are
            scored on them once, at the end.
        isolation: Where `candidate.call` runs: None for this process, or a sandbox: "bwrap",
            "process", or "auto" for the best one that works here. docs/isolation.md says what
            each protects.
        folder: Where to keep the run; in memory if left out. Call `optimize` again with the same
            folder and arguments to continue a run that was stopped; with more `rounds` or a
            larger `budget` to extend one that has ended.
        listen: Called with every event, a `dict`, after it had its effect; or several of these.

    Returns:
        The best candidate, all others, and every outcome.

    Raises:
        InputError: An argument is not valid; the message names it.
        StopRun: Something must be fixed first, such as an error in `evaluate` or a missing key.

    >>> advice = ["Be brief.", "Check units.", "Cite a source."]
    >>> result = optimize(
    ...     tasks={f"question-{n}": advice[n % 3] for n in range(30)},
    ...     starts={"short": "Answer.", "units": "Answer. Check units."},
    ...     evaluate=lambda candidate, task: task in candidate.text,
    ...     propose=lambda view: f"{view.text()} {advice[view.round % 3]}",
    ...     rounds=3,
    ... )
    >>> result.best.text
    'Answer. Check units. Check units. Cite a source. Be brief.'
    """
    plan = _Plan.of(**locals())
    inline = workers == 1 and not loop_runs()
    plan.workload.at_once = inline and _ctrl_c_is_pythons()
    return blocking(lambda: plan.search(threads=not inline))


async def optimize_async(
    tasks: Tasks,
    starts: Starts,
    evaluate: Evaluate,
    propose: Propose,
    **options: Unpack[Options],
) -> Result:
    """`optimize` under asyncio, with the same arguments; `evaluate` may use the running loop.

    An `evaluate` that is a plain function runs in threads. Cancelling it stops the search.

    >>> import asyncio
    >>> async def evaluate(candidate, task):
    ...     return candidate.text.count(task) > 0
    >>> async def search():
    ...     starts = {"a": "apples", "b": "pears"}
    ...     return await optimize_async(
    ...         ["a", "b", "e"], starts, evaluate, lambda view: view.text() + " beans", rounds=1
    ...     )
    >>> asyncio.run(search()).best.text
    'apples beans'
    """
    bound = inspect.signature(optimize).bind(tasks, starts, evaluate, propose, **options)
    bound.apply_defaults()
    return await _Plan.of(**bound.arguments).search(threads=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The arguments of `optimize`, checked, as the engine takes them."""

    settings: Settings
    selector: Selector
    starts: Mapping[str, Files]
    test: Pool | None
    workload: "_Workload"
    proposer: Proposer
    proposal_seconds: float
    workers: int
    isolation: Isolation | None
    folder: Path | None
    listeners: list[Listener]
    briefing: str
    about: dict[str, Any]

    @classmethod
    def of(
        cls,
        *,
        tasks: Tasks,
        starts: Starts,
        evaluate: Evaluate,
        propose: Propose,
        rounds: int,
        candidates: int,
        fraction: float | None,
        protocol: str | SearchProtocol,
        budget: Budget | Mapping[str, float] | None,
        seed: int,
        workers: int,
        test_tasks: Tasks,
        isolation: Isolated | None,
        folder: Path | str | None,
        listen: Listener | Sequence[Listener],
    ) -> Self:
        """Check the arguments; nothing is written or run yet."""
        pool, objects = _read_tasks(tasks, "tasks")
        test: Pool | None = None
        sealed: dict[str, Any] = {}
        if not (isinstance(test_tasks, Sequence | Mapping) and not test_tasks):
            test, sealed = _read_tasks(test_tasks, "test_tasks")
        if both := next((task for task in sealed if task in objects), None):
            raise InputError(
                f"test_tasks: task {both!r} is one of tasks, too; a sealed test needs tasks of "
                "its own."
            )
        if not callable(evaluate) or not _takes(evaluate, 2):
            got = (
                f"a function of {inspect.signature(evaluate)}" if callable(evaluate) else evaluate
            )
            raise InputError(f"evaluate must be a function of (candidate, task), got {got}.")
        if not is_whole(workers, least=1):
            raise InputError(f"workers must be a whole number from 1 on, got {workers!r}.")
        found = _read_starts(starts)
        caps = _read_budget(budget)
        settings = Settings(rounds=rounds, candidates=candidates, seed=seed, budget=caps)
        selector = Selector(pool, protocol=_rule(protocol, fraction), seed=seed)
        place = None if folder is None else _read_folder_name(folder)
        sandbox = None if isolation is None else find_isolation(isolation)
        proposer, seconds = _read_proposer(propose, settings, found, place)
        routine = inspect.isroutine(evaluate)
        return cls(
            settings=replace(settings, repair=isinstance(proposer, Repairer)),
            selector=selector,
            starts=found,
            test=test,
            workload=_Workload(evaluate, {**objects, **sealed}, sandboxed=sandbox is not None),
            proposer=proposer,
            proposal_seconds=seconds,
            workers=int(workers),
            isolation=sandbox,
            folder=place,
            listeners=_read_listeners(listen),
            briefing=(inspect.getdoc(evaluate) or "") if routine else "",
            about={"evaluate": _named(evaluate), "propose": _named(propose)},
        )

    async def search(self, *, threads: bool) -> Result:
        """Run the search, or continue the one in the folder."""
        with self._journal() as journal:
            self._begin(journal)
            search = Search(
                journal,
                InProcessExecutor(
                    self.workload,
                    contents=journal,
                    workers=self.workers,
                    isolation=self.isolation,
                    threads=threads,
                ),
                self.proposer,
                listen=told(self.listeners),
                proposal_seconds=self.proposal_seconds,
                rules=Rules(briefing=self.briefing),
            )
            try:
                state = await search.run()
            except StopRun as stop:
                raise self._explained(stop) from stop.__cause__ or self.workload.error_in(stop)
        if isinstance(journal, MemoryJournal):
            return Result(state, journal)
        assert self.folder is not None
        return Result(state, RunFolder(self.folder), Run(self.folder))

    def _journal(self) -> AbstractContextManager[MemoryJournal | RunStore]:
        if self.folder is None:
            return nullcontext(MemoryJournal())
        if (self.folder / "run.db").exists():
            return RunStore.open(self.folder)
        return RunStore.create(self.folder)

    def _begin(self, journal: Journal) -> None:
        first = next(journal.events(until=1), None)
        if first is None:
            open_run(
                journal,
                name="optimize" if self.folder is None else self.folder.resolve().name,
                settings=self.settings,
                selector=self.selector,
                starts=self.starts,
                test=self.test,
                config={BY_OPTIMIZE: self.about},
            )
        else:
            self._check_same(first)
            self._extend(Recorder(journal))

    def _check_same(self, first: Mapping[str, Any]) -> None:
        """Refuse to continue a run with other arguments than it was started with."""
        if BY_OPTIMIZE not in first["config"]:
            raise InputError(
                f"folder {str(self.folder)!r} holds a run of a configuration; continue it with "
                "coevolve.open(folder).resume(), or pass another folder."
            )
        now, then = self.selector.events[0], first["selector"]
        starts = [Candidate.of(files, name=name).to_json() for name, files in self.starts.items()]
        test = None if self.test is None else self.test.to_json()
        same = {
            "tasks": now["pool"] == then["pool"],
            "test_tasks": test == first["test"],
            "starts": starts == first["starts"],
            "seed": self.settings.seed == first["settings"]["seed"],
            "candidates": self.settings.candidates == first["settings"]["candidates"],
            "protocol or fraction": now["protocol"] == then["protocol"],
        }
        if other := [name for name, equal in same.items() if not equal]:
            raise InputError(
                f"folder {str(self.folder)!r} holds a run with other {', '.join(other)}; pass the "
                "same to continue it, or another folder to start a new one."
            )

    def _extend(self, recorder: Recorder) -> None:
        """Take over higher limits."""
        then, now = recorder.state.settings, self.settings
        limits = {"rounds": (then.rounds, now.rounds)} | {
            name: (getattr(then.budget, name), getattr(now.budget, name)) for name in CAPS
        }
        higher = {}
        for name, (before, after) in limits.items():
            if before == after:
                continue
            if before is None or (after is not None and after < before):
                shown = "no cap" if before is None else f"{before:,}"
                raise InputError(
                    f"{name} is {after!r}, but the run in {str(self.folder)!r} has {shown}; a run "
                    "cannot get less than it had."
                )
            higher[name] = after
        if higher:
            extend(recorder, higher)

    def _explained(self, stop: StopRun) -> StopRun:
        if self.folder is None:
            stop.add_note("The run was in memory; pass folder= to keep what was evaluated.")
        elif stop.resumable:
            stop.add_note("Nothing is lost: call optimize again with the same folder to continue.")
        return stop


class _Workload:
    """The trial half of the search: `evaluate`, and a look at the candidate's code before it.

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
        """The exception of `evaluate` that a stop tells of, for the traceback."""
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
        """Note what goes wrong; what a candidate cannot be called for is `evaluate`'s error."""
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


class _Function:
    """A proposer that is a function of the view, or of the view and a count."""

    def __init__(self, function: Callable[..., Any], file: str | None) -> None:
        self._counts = _takes(function, 2)
        if not self._counts and not _takes(function, 1):
            raise InputError(
                "propose must be a function of (view) or (view, count), got one of "
                f"{inspect.signature(function)}."
            )
        self._function, self._file = function, file

    async def propose(self, view: View, count: int) -> Proposed:
        arguments = (view, count) if self._counts else (view,)
        if inspect.iscoroutinefunction(self._function):
            given = await self._function(*arguments)
        else:
            given = await in_thread(self._function, *arguments)
            if inspect.isawaitable(given):
                given = await given
        try:
            return as_proposed(self._full(given, view.round), source="propose")
        except InputError as error:  # the next answer would be no better
            raise StopRun(str(error)) from error

    def _full(self, given: Any, round: int) -> Any:
        """Proposals in their full form, with a name and files."""
        if isinstance(given, Proposed):
            return given
        if isinstance(given, str | Mapping | Proposal):
            given = [given]
        if not isinstance(given, Iterable):
            raise InputError(
                f"propose returned {given!r:.80}; return a text, a Proposal, a mapping with "
                "'text' or 'files', or a list of these."
            )
        return [self._one(item, f"r{round}-{place}") for place, item in enumerate(given)]

    def _one(self, item: Any, name: str) -> Any:
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, Mapping):
            return item
        made = {"name": name, **item}
        if "text" in made:
            if self._file is None:
                raise InputError(
                    "propose returned a text, but the starting candidates do not have one file "
                    "of the same name; return {'files': {path: text}}."
                )
            made["files"] = {self._file: made.pop("text")}
        return made


def _read_tasks(given: Tasks, argument: str) -> tuple[Pool, dict[str, Any]]:
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


def _read_starts(given: Starts) -> dict[str, Files]:
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


def _read_budget(given: Budget | Mapping[str, float] | None) -> Budget:
    if given is None or isinstance(given, Budget):
        return given or Budget()
    if not isinstance(given, Mapping):
        raise InputError(
            f"budget must be a Budget or a mapping such as {{'trials': 200}}, got {given!r}."
        )
    for name, cap in given.items():
        if name not in CAPS:
            raise InputError(
                f"budget has no {name!r}; it has {', '.join(CAPS)}.{nearest(str(name), CAPS)}"
            )
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, Real)):
            raise InputError(f"budget {name} must be a number, got {cap!r}.")
    return Budget(**given)  # type: ignore[arg-type]


def _rule(given: str | SearchProtocol, fraction: float | None) -> SearchProtocol:
    """The protocol, known to the fold of the events; by name, a start may win."""
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


def _read_folder_name(given: Path | str) -> Path:
    if not isinstance(given, str | Path):
        raise InputError(f"folder must be a path, got {given!r}.")
    folder = Path(given)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder {str(given)!r} is a file; pass a folder.")
    return folder


def _read_listeners(given: Listener | Sequence[Listener]) -> list[Listener]:
    listeners = [given] if callable(given) else given
    if not isinstance(listeners, Sequence) or not all(map(callable, listeners)):
        raise InputError(f"listen must be a function of one event, or a list, got {given!r}.")
    return list(listeners)


def _read_proposer(
    given: Propose, settings: Settings, starts: Mapping[str, Files], folder: Path | None
) -> tuple[Proposer, float]:
    """The proposer, and the seconds that a proposal may take."""
    if isinstance(given, str | Mapping):
        return _configured({"kind": given} if isinstance(given, str) else given, settings, folder)
    if isinstance(given, Proposer) and not isinstance(given, type):
        if inspect.iscoroutinefunction(given.propose):
            return given, float("inf")
        given = given.propose
    if not callable(given):
        raise InputError(
            "propose must be a function of (view) or (view, count), a Proposer, or the name of "
            f"one, got {given!r}."
        )
    files = {tuple(contents) for contents in starts.values()}
    only = files.pop() if len(files) == 1 else ()
    return _Function(given, only[0] if len(only) == 1 else None), float("inf")


def _configured(
    table: Mapping[str, Any], settings: Settings, folder: Path | None
) -> tuple[Proposer, float]:
    """The proposer of a table `[proposer]`."""
    config = RunConfig.from_json(
        {
            "run": {"seed": settings.seed},
            "search": {"rounds": settings.rounds, "candidates": settings.candidates},
            "budget": settings.budget.to_json(),
            "benchmark": {"kind": f"{__name__}:optimize"},
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


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # it does not say
        return True
    return True


def _named(function: object) -> str:
    """What a function or object is called, for the record."""
    if isinstance(function, str | Mapping):
        return function if isinstance(function, str) else str(function.get("kind", ""))
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}:{name}"


def _ctrl_c_is_pythons() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt here, so that asyncio is about to take it over."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """Let Ctrl-C interrupt what runs now; asyncio would wait until it returns."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
