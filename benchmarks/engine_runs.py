"""Runs for the benchmark of the engine: trials that do nothing, and a long journal.

The events of the long journal go through the recorder and the state of a real run. Only the
execution of trials and the writing of candidates are left out, and events are committed in large
batches.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np

from coevolve import Pool, Selector
from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.executors.isolation import Harness
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate
from coevolve.search.journal import Journal, MemoryJournal, Recorder
from coevolve.search.loop import open_run
from coevolve.search.proposal import Proposal, View
from coevolve.search.run_state import ready
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from coevolve.store import RunStore

CODE = "def answer(task):\n    return 1.0\n"

Work = Literal["nothing", "call", "fresh"]


class NoOp:
    """Trials that score 1.

    Args:
        work: "nothing" leaves the candidate alone, "call" calls a function of it, "fresh" starts a
            new sandbox for every call.
    """

    def __init__(self, work: Work) -> None:
        self._work = work

    def check(self, harness: Harness) -> None:
        pass

    def prepare(self, harness: Harness) -> object:
        return None

    def run(self, harness: Harness, task: str, trial: int) -> float:
        if self._work == "nothing":
            return 1.0
        if self._work == "fresh":
            harness.close()
        return float(harness.call("answer", task, returns=float))


class InstantExecutor:
    """Trials that are over at once, in the engine's own process."""

    capacity = 2

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        return Result(score=float(crc32(f"{trial.candidate} {trial.task}".encode()) % 2))

    async def close(self) -> None:
        pass


class Copier:
    """Writes candidates that differ by a comment."""

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        return [
            Proposal(files=files(f"{view.round}.{i}"), name=f"r{view.round}-{i}")
            for i in range(count)
        ]


def files(comment: str) -> dict[str, bytes]:
    """The files of a candidate."""
    return {"harness.py": f"# {comment}\n{CODE}".encode()}


def opened(journal: Journal, *, tasks: int, rounds: int, candidates: int, fraction: float) -> None:
    """Open a run of no-op trials; with fraction 1, of every candidate on every task."""
    open_run(
        journal,
        name="no-op",
        settings=Settings(rounds=rounds, candidates=candidates),
        selector=Selector(
            Pool([f"task-{i:04d}" for i in range(tasks)]),
            protocol="full" if fraction == 1 else "task-coevolve",
            fraction=fraction,
        ),
        starts={name: files(name) for name in ("plain", "terse")},
    )


TASKS, FRACTION, PER_ROUND = 1_000, 0.2, 10
BATCH = 20_000
NO_USAGE = [0, 0, 0.0, 0.0]
LATE = Fault(blame=Blame.CANDIDATE, kind="time-limit", reason="ran past 60 s")
LOST = Fault(blame=Blame.INFRASTRUCTURE, kind="RateLimitError", reason="slow down")


class Batches(MemoryJournal):
    """A journal that hands events on to a store, many at a time."""

    def __init__(self, store: RunStore) -> None:
        super().__init__()
        self._store, self._waiting = store, list[tuple[str, Mapping[str, Any]]]()
        self._next = store.count

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Keep events for the next batch."""
        self._waiting += events
        made = [
            {"seq": self._next + i, "type": kind, "clock": 0.0, **body}
            for i, (kind, body) in enumerate(events)
        ]
        self._next += len(made)
        if len(self._waiting) >= BATCH:
            self.flush()
        return made

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """What the store has."""
        return self._store.events(since, until)

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Keep some bytes in the store."""
        return self._store.put(data, durable=durable)

    def flush(self) -> None:
        """Commit what waits."""
        self._store.append(self._waiting)
        self._waiting = []


def write_long_journal(folder: Path, outcomes: int) -> int:
    """Make a run of at least so many outcomes, and return its number of events."""
    with RunStore.create(folder) as store:
        _open(store, outcomes)
        journal = Batches(store)
        recorder = Recorder(journal)
        rng = np.random.default_rng(0)
        recorder.record("session", {"capacity": 10})
        _make_ready(recorder, recorder.state.starts)
        _evaluate(recorder, rng)
        for round in count(1):
            if recorder.state.evaluating.trials >= outcomes:
                break
            _round(recorder, round, rng)
        journal.flush()
        return store.count


def _open(store: RunStore, outcomes: int) -> None:
    open_run(
        store,
        name="long",
        settings=Settings(rounds=outcomes, candidates=PER_ROUND),
        selector=Selector(Pool([f"task-{i:04d}" for i in range(TASKS)]), fraction=FRACTION),
        starts={f"start-{i}": {"harness.py": f"# {i}\n".encode()} for i in range(2)},
    )


def _round(
    recorder: Recorder,
    round: int,
    rng: np.random.Generator,
    ended: Callable[[], None] = lambda: None,
) -> None:
    recorder.record("proposing", {"round": round})
    names = [f"r{round}-{i}" for i in range(PER_ROUND)]
    rows = [{"candidate": _candidate(name, round).to_json(), "refused": ""} for name in names]
    body = {"candidates": rows, "usage": [90_000, 4_000, 0.41, 312.5], "transcript": None}
    recorder.record("proposed", {"round": round, "note": "", **body})
    _make_ready(recorder, names)
    selector = recorder.state.selector
    draws = selector.plan(ready(recorder.state))
    recorder.record("asked", {"events": draws, "final": False})
    _evaluate(recorder, rng, ended)
    recorder.record("settled", {"round": round})


def _candidate(name: str, round: int) -> Candidate:
    return Candidate.of(
        {"harness.py": f"# {name}\n".encode()},
        name=name,
        round=round,
        parents=("start-0",),
        hypothesis="a shorter prompt leaves more room for the examples",
    )


def _make_ready(recorder: Recorder, names: Sequence[str]) -> None:
    for name in names:
        body = {"candidate": name, "fault": None, "usage": NO_USAGE}
        recorder.record("checked", body)
        recorder.record("prepared", body | {"state": None})


def _evaluate(
    recorder: Recorder, rng: np.random.Generator, ended: Callable[[], None] = lambda: None
) -> None:
    """Outcomes of a wave in the order trials might end: 2% time out, 1% are tried again.

    `ended` is called after every outcome.
    """
    wave = recorder.state.wave
    cells = [] if wave is None else list(wave.open)
    rng.shuffle(cells)
    luck = rng.random(len(cells)).tolist()
    for cell, chance in zip(cells, luck, strict=True):
        trial = Trial(candidate=cell[0], task=cell[1], trial=int(cell[2]))
        tokens, seconds = 400 + int(4_000 * chance), round(3 + 40 * chance, 6)
        usage = Usage(
            tokens_in=tokens, tokens_out=tokens // 9, dollars=tokens * 2e-6, seconds=seconds
        )
        if chance < 0.01:
            recorder.failed(trial, Result(fault=LOST, usage=Usage(seconds=0.25)))
        if chance > 0.98:
            recorder.outcome(trial, Result(fault=LATE, usage=usage))
        else:
            recorder.outcome(trial, Result(score=float(chance < 0.6), usage=usage))
        ended()
    recorder.told()
