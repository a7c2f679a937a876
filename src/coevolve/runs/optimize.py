"""A whole search in one call: tasks, starting candidates, and two Python functions."""

import inspect
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from coevolve.core.events import Event
from coevolve.core.outcomes import Usage, is_whole
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector import Selector
from coevolve.errors import EmptyRounds, InputError, StopRun
from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.isolation import Isolation, find_isolation
from coevolve.past_results import read_past
from coevolve.proposers.base import Proposer, Repairer, takes
from coevolve.proposers.proposer_settings import probed
from coevolve.runs.extension import extend
from coevolve.runs.optimize_arguments import (
    Evaluate,
    FunctionWorkload,
    Isolated,
    Propose,
    Starts,
    Tasks,
    name_of,
    read_budget,
    read_folder_path,
    read_listeners,
    read_proposer,
    read_protocol,
    read_starts,
    read_tasks,
)
from coevolve.runs.result import Result, RunFolder
from coevolve.runs.run import Listener, Run, blocking, each_of, loop_runs
from coevolve.runs.session import BY_OPTIMIZE
from coevolve.search.acceptance import Rules
from coevolve.search.budget import CAPS, Budget, Settings
from coevolve.search.candidate import Candidate, Files
from coevolve.search.journal import Journal, MemoryJournal, Recorder
from coevolve.search.loop import Search, check_opening, open_run
from coevolve.search.past_outcomes import Importing
from coevolve.store import RunStore
from coevolve.views.report import best


class Options(TypedDict, total=False):
    """The arguments of `optimize` that have a default."""

    rounds: int
    candidates: int
    fraction: float | None
    protocol: str | SearchProtocol
    budget: Budget | Mapping[str, float] | None
    seed: int
    workers: int
    in_flight: int | None
    test_tasks: Tasks
    isolation: Isolated | None
    folder: Path | str | None
    listen: Listener | Sequence[Listener]
    history: Path | str | None


def optimize(
    tasks: Tasks,
    starts: Starts,
    evaluate: Evaluate,
    propose: Propose,
    *,
    rounds: int = 10,
    candidates: int = 1,
    fraction: float | None = None,
    protocol: str | SearchProtocol = "adaptive",
    budget: Budget | Mapping[str, float] | None = None,
    seed: int = 0,
    workers: int = 1,
    in_flight: int | None = None,
    test_tasks: Tasks = (),
    isolation: Isolated | None = None,
    folder: Path | str | None = None,
    listen: Listener | Sequence[Listener] = (),
    history: Path | str | None = None,
) -> Result:
    """Search for a better candidate, each scored on a few well-chosen tasks.

    Every starting candidate is scored on all tasks. Then in each round `propose` writes new
    candidates, and `evaluate` scores them on the tasks that best tell candidates apart. From these
    scores, the score on all tasks is estimated. The best estimate wins.

    `evaluate` and `propose` run in this process. So does the code of candidates that
    `candidate.call` runs, or that `evaluate` runs itself: **it can do everything
    that you can**, and a language model may have written it. Pass `isolation="auto"` to run
    `candidate.call` in a sandbox.

    Works in a script, in a notebook, and in threads. Under asyncio, use `optimize_async`.

    Args:
        tasks: The tasks: a list of texts or of any objects; a mapping from id to object; or a
            mapping from pool to list. `evaluate` gets each task unchanged. The id of an object is
            its "id" if it is a mapping with one, or else its place in the list.
        starts: The starting candidates: a mapping from name to text, to `Path` of a file or
            folder, or to {path: text}; or a list of texts or `Path`s.
        evaluate: `evaluate(candidate, task)` returns a number in [0, 1], a `Score` (with usage
            and a trace), or `Missing(reason)`. The candidate has `name`, `text` (of its only
            file), `files`, `folder` and `call(function, *arguments)`, which calls a function of
            its `harness.py`. It may be `async`; then `workers` of them run at once. An exception
            is the candidate's failure and scores 0. Two cases differ: after an error of the
            network or a service, the trial is repeated, and missing if that does not help; any
            other exception with a starting candidate stops the search.
        propose: `propose(view)` or `propose(view, count)` returns new candidates: a text, a
            `Proposal`, a mapping with `text` or `files` and maybe `name`, or a list of these. It
            may be `async`. Or a `Proposer`, the name of a registered one, or its settings as in
            the table `[proposer]` of a TOML file.
        rounds: Rounds of proposing and evaluating.
        candidates: Candidates per round.
        fraction: Share of the tasks of each pool that a new candidate is scored on; the
            protocol's own (usually 20%) if left out.
        protocol: The name of a protocol, or a `SearchProtocol`. With a name, a starting
            candidate wins if no new one is better.
        budget: Caps on trials, tokens, dollars and hours: a `Budget` or a mapping.
        seed: Seed of every draw.
        workers: How many trials run at once: in threads, if `evaluate` is a plain function.
        in_flight: How many candidates may be under way at once, without waiting for the end of a
            round (docs/engine.md); rounds one after the other if left out.
        test_tasks: Tasks of a sealed test, as `tasks`: the winner and the starting candidates are
            scored on them once, at the end.
        isolation: Where `candidate.call` runs: None for this process, or a sandbox: "bwrap",
            "process", or "auto" for the best one that works here. "process-as-root" is "process"
            that may run as root. docs/isolation.md describes their protection.
        folder: Where to keep the run; in memory if left out. Call `optimize` again with the same
            folder and arguments to continue a run that was stopped; with more `rounds` or a
            larger `budget` to extend one that has ended.
        listen: Called with every event, a `dict`, after its effect; or a list of such functions.
        history: A file or folder of past results (docs/history.md): those of starting candidates
            stand for their trials, the others inform the choice of tasks.

    Returns:
        The best candidate, all others, and every outcome. `status.why` says why the search ended:
        the rounds or a cap are used up, `listen` raised `StopRun`, or three rounds in a row had no
        new candidate.

    Raises:
        InputError: An argument is not valid; the message names it.
        StopRun: Something must be fixed first, such as an error in `evaluate` or a missing key;
            or the search was to end before any candidate had a score.

    >>> advice = ["Be brief.", "Check units.", "Cite a source."]
    >>> result = optimize(
    ...     tasks={f"question-{n}": advice[n % 3] for n in range(30)},
    ...     starts={"short": "Answer.", "units": "Answer. Check units."},
    ...     evaluate=lambda candidate, task: task in candidate.text,
    ...     propose=lambda view: f"{view.text()} {advice[view.round % 3]}",
    ...     rounds=3,
    ...     seed=3,
    ... )
    >>> result.best.text
    'Answer. Check units. Cite a source. Be brief.'
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
    workload: FunctionWorkload
    proposer: Proposer
    proposal_seconds: float
    workers: int
    isolation: Isolation | None
    folder: Path | None
    listeners: list[Listener]
    imports: list[dict[str, Any]]
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
        in_flight: int | None,
        test_tasks: Tasks,
        isolation: Isolated | None,
        folder: Path | str | None,
        listen: Listener | Sequence[Listener],
        history: Path | str | None,
    ) -> Self:
        """Check the arguments; nothing is written or run yet."""
        pool, objects = read_tasks(tasks, "tasks")
        test: Pool | None = None
        sealed: dict[str, Any] = {}
        if not (isinstance(test_tasks, Sequence | Mapping) and not test_tasks):
            test, sealed = read_tasks(test_tasks, "test_tasks")
        if both := next((task for task in sealed if task in objects), None):
            raise InputError(
                f"test_tasks: task {both!r} is also in tasks; remove it from one of them."
            )
        if not callable(evaluate) or not takes(evaluate, 2):
            got = (
                f"a function of {inspect.signature(evaluate)}" if callable(evaluate) else evaluate
            )
            raise InputError(f"evaluate must be a function of (candidate, task), got {got}.")
        if not is_whole(workers, least=1):
            raise InputError(f"workers must be a whole number of at least 1, got {workers!r}.")
        found = read_starts(starts)
        caps = read_budget(budget)
        settings = Settings(
            rounds=rounds, candidates=candidates, seed=seed, in_flight=in_flight, budget=caps
        )
        selector = Selector(pool, protocol=read_protocol(protocol, fraction), seed=seed)
        place = None if folder is None else read_folder_path(folder)
        imports = []
        if history is not None and (place is None or not (place / "run.db").exists()):
            importing = Importing(pool=pool, test=test, starts=list(found), trials=1)
            imports = [importing.event(read_past(history))]
        sandbox = None if isolation is None else find_isolation(isolation)
        proposer, seconds = read_proposer(propose, settings, place)
        routine = inspect.isroutine(evaluate)
        return cls(
            settings=replace(settings, repair=isinstance(proposer, Repairer)),
            selector=selector,
            starts=found,
            test=test,
            workload=FunctionWorkload(
                evaluate, {**objects, **sealed}, sandboxed=sandbox is not None
            ),
            proposer=proposer,
            proposal_seconds=seconds,
            workers=int(workers),
            isolation=sandbox,
            folder=place,
            listeners=read_listeners(listen),
            imports=imports,
            briefing=(inspect.getdoc(evaluate) or "") if routine else "",
            about={"evaluate": name_of(evaluate), "propose": name_of(propose)},
        )

    async def search(self, *, threads: bool) -> Result:
        """Run the search, or continue the one in the folder.

        If a listener ends it, or nothing new was proposed, what was found until then is returned.
        """
        wanted: list[StopRun] = []

        def listen(event: Event) -> None:
            try:
                each_of(self.listeners)(event)
            except StopRun as stop:
                wanted.append(stop)
                raise

        probe = None
        if self.folder is None or not (self.folder / "run.db").exists():
            check_opening(self.settings, self.selector, self.starts, self.test, self.imports)
            probe = await probed(self.proposer)
        with self._journal() as journal:
            self._begin(journal, probe)
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
                listen=listen,
                proposal_seconds=self.proposal_seconds,
                rules=Rules(briefing=self.briefing),
            )
            try:
                await search.run()
            except StopRun as stop:
                ended = stop in wanted or isinstance(stop, EmptyRounds)
                if not ended or best(search.state) is None:
                    raise self._explained(stop) from stop.__cause__ or self.workload.error_in(stop)
        if isinstance(journal, MemoryJournal):
            return Result(search.state, journal)
        assert self.folder is not None
        return Result(search.state, RunFolder(self.folder), Run(self.folder))

    def _journal(self) -> AbstractContextManager[MemoryJournal | RunStore]:
        if self.folder is None:
            return nullcontext(MemoryJournal())
        if (self.folder / "run.db").exists():
            return RunStore.open(self.folder)
        return RunStore.create(self.folder)

    def _begin(self, journal: Journal, probe: Usage | None) -> None:
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
                imports=self.imports,
                probe=probe,
            )
        else:
            self._check_same(first)
            self._extend(Recorder(journal))

    def _check_same(self, first: Mapping[str, Any]) -> None:
        """Refuse to resume a run with arguments that differ from those of its start."""
        if BY_OPTIMIZE not in first["config"]:
            raise InputError(
                f"folder {str(self.folder)!r} has a run that optimize did not start; resume it "
                "with coevolve.open(folder).resume(), or pass another folder."
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
            "in_flight": self.settings.in_flight == first["settings"].get("in_flight"),
            "protocol or fraction": now["protocol"] == then["protocol"],
        }
        if other := [name for name, equal in same.items() if not equal]:
            raise InputError(
                f"folder {str(self.folder)!r} has a run with different {', '.join(other)}; pass "
                "the same to resume it, or another folder to start a new run."
            )

    def _extend(self, recorder: Recorder) -> None:
        """Record higher limits."""
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
                    f"{name} is {after!r}, but the run in {str(self.folder)!r} has {shown}; "
                    "limits can only be raised."
                )
            higher[name] = after
        if higher:
            extend(recorder, higher)

    def _explained(self, stop: StopRun) -> StopRun:
        if self.folder is None:
            stop.add_note("The run was in memory; pass folder= to keep it on disk.")
        elif stop.resumable:
            stop.add_note("Nothing is lost: call optimize again with the same folder to continue.")
        return stop


def _ctrl_c_is_pythons() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt here; asyncio then replaces its handler."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
