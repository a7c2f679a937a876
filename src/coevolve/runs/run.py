"""A run as one object: start it, continue it, extend it, read it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Self

from coevolve.core.events import Event
from coevolve.errors import InputError, StateError
from coevolve.past_results import PastResults, read_past
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.config_changes import check_config
from coevolve.runs.extension import extend
from coevolve.runs.rescoring import rescore
from coevolve.runs.result import CandidateResult, Result, RunFolder
from coevolve.runs.session import (
    create_run,
    discarded_if_refused,
    import_into,
    open_folder,
    read_state,
    run_folder,
    session,
)
from coevolve.search.journal import Recorder
from coevolve.search.loop import Search
from coevolve.search.past_outcomes import Import
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from coevolve.views.report import Report, report
from coevolve.views.score_table import ScoreTable, Split

Listener = Callable[[Event], object]
"""Called with every event of a run, after its effect."""
_JOURNAL = "run.db"


def loop_runs() -> bool:
    """Whether an event loop runs in this thread, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def blocking[T](make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, even if an event loop already runs, as in a notebook.

    There it runs in a thread with its own loop. Ctrl-C cancels it, waits for it to end, and
    raises `KeyboardInterrupt`.

    >>> async def answer():
    ...     return 42
    >>> blocking(answer)
    42
    """
    if not loop_runs():
        return asyncio.run(make())
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()
    outcome: Future[T] = Future()

    async def main() -> T:
        started.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await make()

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(main()))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(
        target=copy_context().run, args=(work,), name="coevolve-search", daemon=True
    ).start()
    try:
        return outcome.result()
    except KeyboardInterrupt:
        loop, task = started.result()
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)
        with suppress(asyncio.CancelledError):
            outcome.result()
        raise


class Run:
    """A run: its folder, what it found so far, and how to start, continue or extend it.

    `coevolve.open` makes one from a TOML file, a run folder or a configuration.

    Args:
        folder: The run folder; it need not exist yet.
        config: What to run, if the run was not started yet.
        file: The TOML file of `config`, if there is one.
        base: The folder that paths in `config` are relative to.

    >>> import coevolve
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     run = coevolve.open({
    ...         "run": {"folder": folder, "name": "first"},
    ...         "search": {"rounds": 2, "protocol": "naive"},
    ...         "benchmark": {"kind": "synthetic", "pools": {"all": 20}},
    ...         "proposer": {"kind": "synthetic"},
    ...         "executor": {"workers": 1},
    ...     })
    ...     result = run.run()
    ...     len(result.candidates), len(run.extend(rounds=3).resume().candidates)
    (4, 5)
    """

    def __init__(
        self,
        folder: Path,
        *,
        config: RunConfig | None = None,
        file: Path | None = None,
        base: Path = Path(),
    ) -> None:
        self.folder = folder
        self._config, self._file, self._base = config, file, base
        self._listeners: list[Listener] = []

    def __repr__(self) -> str:
        phase = self.status.phase if self.started else "not started"
        return f"Run({str(self.folder)!r}, {phase})"

    def _repr_html_(self) -> str:
        """The run in a notebook: static, as of now."""
        from coevolve.formatting import markup

        if not self.started:
            return f"<code>{markup(repr(self))}</code>"
        return self.result._repr_html_()

    @property
    def started(self) -> bool:
        """Whether the run has a journal with events."""
        if not (self.folder / _JOURNAL).exists():
            return False
        with RunStore.read(self.folder) as store:
            return store.count > 0

    @property
    def state(self) -> RunState:
        """The state of the run as of now, also while another process works on it."""
        self._need_start()
        return read_state(self.folder)

    @property
    def result(self) -> Result:
        """What the run has found so far."""
        return Result(self.state, RunFolder(self.folder), self)

    @property
    def status(self) -> Report:
        """The progress, spending and candidates of the run, as displays show them."""
        return report(self.state)

    @property
    def candidates(self) -> tuple[CandidateResult, ...]:
        """Every candidate, starting candidates first, in the order of proposal."""
        return self.result.candidates

    def report(self) -> str:
        """What the run has found so far, as text."""
        return self.result.report()

    def outcomes(self) -> list[dict[str, Any]]:
        """Every outcome so far as a flat row; see `Result.outcomes`."""
        return self.result.outcomes()

    def events(self) -> Iterator[Event]:
        """The events of the journal, in order, each a `dict`."""
        self._need_start()
        return RunFolder(self.folder).events()

    def listen[L: Listener](self, callback: L) -> L:
        """Call a function with every event that this object records from now on.

        It is called after the effect of the event. An exception that it raises ends the session;
        `StopRun` also records the reason. It works as a decorator, too.
        """
        if not callable(callback):
            raise InputError(f"listen needs a function of one event, got {callback!r}.")
        self._listeners.append(callback)
        return callback

    def run(self) -> Result:
        """Start the run and work until it ends."""
        return blocking(self.run_async)

    async def run_async(self) -> Result:
        """Start the run and work until it ends, in the event loop that runs now."""
        self.create()
        with discarded_if_refused(self.folder):
            return await self._work()

    def resume(self, *, accept_change: bool = False, ignore_changes: bool = False) -> Result:
        """Continue the run until it ends; a run that has ended returns its result.

        Args:
            accept_change: Whether to continue if the benchmark has changed. The change is
                recorded, and reports say that scores mix versions.
            ignore_changes: Whether to continue with the recorded configuration if the one that
                this object was opened with differs.

        Raises:
            ChangedBenchmarkError: Parts of the benchmark that can alter scores have changed.
            ChangedConfigError: The configuration differs from the recorded one.
        """
        return blocking(
            lambda: self.resume_async(accept_change=accept_change, ignore_changes=ignore_changes)
        )

    async def resume_async(
        self, *, accept_change: bool = False, ignore_changes: bool = False
    ) -> Result:
        """`resume` in the event loop that runs now."""
        if self._config is not None and not ignore_changes:
            check_config(self.state, self.folder, self._config)
        return await self._work(accept_change=accept_change)

    def create(self, *, past: PastResults | None = None, skip_unknown: bool = False) -> None:
        """Open the run's journal, without evaluating anything yet; `resume` does that.

        Args:
            past: Past results to begin with.
            skip_unknown: Whether to leave out rows of `past` whose tasks are unknown.
        """
        if self.started:
            raise StateError(
                f"{self.folder} already has a run; call resume() to continue it, or give the new "
                "run another name."
            )
        if self._file is not None:
            create_run(self._file, past=past, skip_unknown=skip_unknown)
        elif self._config is not None:
            open_folder(
                self.folder, self._config, self._base, past=past, skip_unknown=skip_unknown
            )
        else:
            self._need_start()

    @contextmanager
    def session(
        self,
        listen: Listener | None = None,
        *,
        accept_change: bool = False,
        limits: Mapping[str, float | None] | None = None,
    ) -> Iterator[Search]:
        """The search of the run, ready to work; this process owns the run until the end.

        Args:
            listen: Called with every event, besides the functions given to `listen`.
            accept_change: As for `resume`.
            limits: New limits, as for `extend`. They are recorded if the benchmark is unchanged
                or its change is accepted.
        """
        self._need_start()
        listen_all = each_of([*self._listeners, *([] if listen is None else [listen])])
        with session(
            self.folder, listen=listen_all, accept_change=accept_change, limits=limits
        ) as search:
            yield search

    def extend(self, *, rounds: int | None = None, **caps: float | None) -> Self:
        """Raise the limits of the run; if it ended because of them, it can then be resumed.

        Args:
            rounds: The new total of rounds, including earlier ones.
            caps: New caps of the budget, as totals: `trials`, `tokens`, `dollars`, `hours`. A cap
                that is left out does not change. A measure without a cap may get one that is
                above what the run has spent.

        Raises:
            InputError: A limit is unknown, is not raised, or does not let the run continue.
        """
        given = {"rounds": rounds, **caps}
        self._need_start()
        with RunStore.open(self.folder) as store:
            extend(Recorder(store), {k: v for k, v in given.items() if v is not None})
        return self

    def import_past(
        self,
        path: Path | str,
        *,
        candidate: str | None = None,
        scorer: str | None = None,
        skip_unknown: bool = False,
    ) -> Import:
        """Record past results: those of starting harnesses stand for Phase 0.

        A run that was not started is created first; nothing is evaluated. A run that has ended
        uses them when it is extended.

        Args:
            path: A .csv, .jsonl or .parquet table with the columns candidate, task and score, an
                Inspect log, a Harbor job folder, or a folder of such files.
            candidate: Another name for the only candidate of the results.
            scorer: Which score of an Inspect log counts, if there are several.
            skip_unknown: Whether to leave out rows of tasks that the run does not have.

        Raises:
            HistoryError: Something in the file is wrong; the message names row and column.
            StateError: The same file was imported before.
        """
        results = read_past(path, scorer=scorer)
        if candidate is not None:
            results = results.renamed(candidate)
        if self.started:
            return import_into(self.folder, results, skip_unknown=skip_unknown)
        self.create(past=results, skip_unknown=skip_unknown)
        return self.state.past.imports[-1]

    def rescore(
        self,
        candidates: Sequence[str] | str,
        *,
        split: Split = "validation",
        workers: int | None = None,
        accept_change: bool = False,
    ) -> ScoreTable:
        """Evaluate candidates on every task with the run's benchmark and model, at any time.

        The outcomes join the journal. They do not change the search, and do not count towards its
        budget. What is recorded is not evaluated again.

        Args:
            candidates: Their names.
            split: "validation", or "test" for the sealed test.
            workers: Trials at once; as in the configuration if left out.
            accept_change: Whether to continue if the benchmark has changed since the last
                session; the change is recorded.
        """
        self._need_start()
        names = [candidates] if isinstance(candidates, str) else list(candidates)
        return blocking(
            lambda: rescore(
                self.folder,
                names,
                split=split,
                workers=workers,
                accept_change=accept_change,
                listen=each_of(self._listeners),
            )
        )

    async def _work(self, *, accept_change: bool = False) -> Result:
        if self.state.ended is None:
            with self.session(accept_change=accept_change) as search:
                await search.run()
        return self.result

    def _need_start(self) -> None:
        if not self.started:
            raise StateError(f"the run in {self.folder} has not started; call run().")


def open(source: Path | str | Mapping[str, Any]) -> Run:
    """A run: from its TOML file, its folder, or a configuration like that in a TOML file.

    Paths in a TOML file start from its folder, those in a mapping from the current folder.

    Raises:
        InputError: There is no such file or folder, or it is not a run.
        ConfigError: The configuration is not valid; the message names the key.

    >>> config = {
    ...     "search": {"rounds": 3},
    ...     "benchmark": {"kind": "synthetic"},
    ...     "proposer": {"kind": "synthetic"},
    ... }
    >>> open(config)
    Run('runs/run', not started)
    """
    if isinstance(source, Mapping):
        config = RunConfig.from_json(source)
        config.check_paths(Path())
        return Run(Path(config.run.folder, config.run.name), config=config)
    if not isinstance(source, str | Path):
        raise InputError(
            f"open needs a TOML file, a run folder or a configuration, got {source!r}."
        )
    path = Path(source)
    if path.is_dir():
        if not (path / _JOURNAL).exists():
            raise InputError(f"{path} is not a run folder: it has no {_JOURNAL}.")
        return Run(path)
    if not path.is_file():
        raise InputError(f"there is no file or folder {str(source)!r}.")
    if path.suffix != ".toml":
        raise InputError(f"{path} is neither a TOML file nor a run folder.")
    config = read_config(path)
    return Run(run_folder(path, config), config=config, file=path, base=path.parent)


def each_of(listeners: list[Listener]) -> Callable[[Event], None]:
    """A function that calls all listeners."""

    def listen(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return listen
