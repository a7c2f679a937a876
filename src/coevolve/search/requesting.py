"""Runs what the operator requested: the same trials, retries and controls as in a search.

Requested evaluations have no effect on the search. They have events of their own, are not part of
its waves, and do not count towards its budget: a run that is resumed continues as if nothing had
been requested.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.errors import InputError, StateError, nearest
from coevolve.search.acceptance import clean, unique
from coevolve.search.attempts import Attempts
from coevolve.search.benchmark_version import settle_version
from coevolve.search.candidate import Candidate, Files
from coevolve.search.evaluation import Evaluation, Order, longest_first
from coevolve.search.journal import Journal, Recorder
from coevolve.search.preparation import Preparation
from coevolve.search.request import cells_of
from coevolve.search.retries import Retries
from coevolve.search.run_state import RunState, Status
from coevolve.search.trials import Executor, Result, Trial

RequestSplit = Literal["rescore", "test"]
READY = (Status.READY, Status.EVALUATED)
"""The candidates that are checked and prepared."""


class RequestRecorder(Recorder):
    """Records outcomes as requested ones, which are not part of a wave of the search."""

    def outcome(self, trial: Trial, result: Result) -> None:
        """Record the outcome of a trial."""
        self.record("scored", self._row(trial, result))

    def failed(self, trial: Trial, result: Result) -> None:
        """Record an attempt that will be repeated."""
        body = self._row(trial, result)
        del body["score"]
        self.record("retried", body | {"attempt": trial.attempt})


class Requesting:
    """Evaluates candidates of a journal on request, as often as they are asked for.

    Args:
        journal: The record of a run or of an evaluation.
        executor: Where trials run.
        listen: Called with every event after it was applied.
        pause: Upper limit in seconds of the first wait before a failed trial is retried.
        order: Which trials start first.
    """

    def __init__(
        self,
        journal: Journal,
        executor: Executor,
        *,
        listen: Callable[[Event], None] = lambda event: None,
        pause: float = 1.0,
        order: Order = longest_first,
    ) -> None:
        self._recorder = RequestRecorder(journal, listen)
        self._executor, self._order = executor, order
        self._attempts = Attempts(
            recorder=self._recorder,
            executor=executor,
            retries=Retries(pause=pause),
            rng=np.random.default_rng([self.state.settings.seed, self.state.events]),
            capped=False,
        )

    @property
    def state(self) -> RunState:
        """The state of the run or evaluation."""
        return self._recorder.state

    def settle(self, parts: Mapping[str, str], *, accept: bool) -> None:
        """Record the version of the benchmark.

        Raises:
            ChangedBenchmarkError: It has changed since trials were scored, and the change is not
                accepted.
        """
        settle_version(self._recorder, parts, accept=accept)

    def add(self, name: str, files: Files, leaks: Sequence[str] = ()) -> str:
        """Add a harness to an evaluation, and return its name there.

        Files that were added before keep their name, and what is known of them.
        """
        state, journal = self.state, self._recorder.journal
        known = {one.candidate.address: one for one in state.candidates.values()}
        new = Candidate.of(files, name=name, round=1)
        before = known.get(new.address)
        if before is not None and before.status != Status.REFUSED:
            return before.name
        taken = set(state.candidates)
        own = before.name if before is not None else unique(clean(name), taken)
        for content in files.values():
            journal.put(content, durable=True)
        added = replace(new, name=own)
        self._recorder.record("added", {"candidate": added.to_json(), "leaks": list(leaks)})
        return own

    async def prepare(self, names: Sequence[str]) -> None:
        """Check and prepare candidates that are neither yet.

        Raises:
            InputError: One of them failed; `coevolve.search.preparation` has tried it as often
                as in a run.
        """
        known = [self.state.candidates[name] for name in names]
        await Preparation(self._attempts).run([k for k in known if k.status not in READY])
        for one in known:
            if one.status == Status.REFUSED:
                raise InputError(
                    f"harness {one.name!r} cannot be evaluated: {one.reason.rstrip('.')}. Fix its "
                    "files, or leave it out."
                )

    async def run(
        self,
        names: Sequence[str],
        split: RequestSplit = "rescore",
        *,
        tasks: Sequence[str] | None = None,
        trials: int | None = None,
    ) -> None:
        """Evaluate candidates on some tasks, by default all; what is known is not repeated.

        Raises:
            StateError: A candidate cannot be evaluated.
            StopRun: The operator must act first; what was recorded is kept.
        """
        check_request(self.state, names, split)
        pool = pool_of(self.state, split)
        count = self.state.trials if trials is None else trials
        wanted = pool.tasks if tasks is None else tasks
        known = self.state.requested.get(split)
        cells = {cell for name in names for cell in cells_of(name, wanted, count)}
        scored = set() if known is None else _scored(known.wave.done)
        if cells <= scored:
            return
        body: dict[str, Any] = {
            "candidates": list(names),
            "split": split,
            "tasks": None if tasks is None else list(tasks),
            "trials": count,
            "open": len(cells - scored),
            "since": self.state.clock,
            "capacity": self._executor.capacity,
            "isolation": getattr(self._executor, "isolation_name", ""),
        }
        self._recorder.record("requested", body)
        await Evaluation(
            self._attempts,
            self.state.requested[split].wave,
            self._order,
            proposing=lambda: False,
            among=cells,
        ).run()

    async def close(self) -> None:
        """Close the executor."""
        await self._executor.close()


def _scored(done: dict[Any, Any]) -> set[Any]:
    return {cell for cell, score in done.items() if isinstance(score, float)}


def pool_of(state: RunState, split: str) -> Pool:
    """The tasks of a split.

    Raises:
        InputError: It is the sealed test, and there is none.
    """
    if split != "test":
        return state.selector.pool
    if state.test is None:
        raise InputError(
            "the benchmark has no sealed test, so there is no split 'test'; use the split "
            "'validation', or give the benchmark test tasks."
        )
    return state.test.pool


def check_request(state: RunState, names: Sequence[str], split: str) -> None:
    """Refuse candidates that are unknown, are not ready, or are being scored by the run itself.

    Raises:
        InputError: A name is unknown or given twice, or the split does not exist.
        StateError: A candidate cannot be evaluated, or not now.
    """
    pool_of(state, split)
    for name in names:
        if name not in state.candidates:
            raise InputError(
                f"the run has no candidate {name!r}.{nearest(name, state.candidates)} "
                "`coevolve status` lists its candidates."
            )
        one = state.candidates[name]
        if one.status == Status.REFUSED:
            raise StateError(
                f"candidate {name!r} was refused and cannot be evaluated: {one.reason}"
            )
        if one.status not in READY:
            raise StateError(
                f"candidate {name!r} is not checked and prepared yet; resume the run first."
            )
        if state.wave is not None and state.wave.kind == split and name in state.wave.cells:
            raise StateError(
                f"the run is about to score {name!r} on these tasks itself; resume the run."
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InputError(f"candidate {twice!r} is named twice; name it once.")


def can_request(state: RunState, name: str, split: str) -> bool:
    """Whether a candidate can be evaluated on request now."""
    try:
        check_request(state, [name], split)
    except StateError:
        return False
    return True
