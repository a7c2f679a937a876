"""Runs on disk for the pages to show: whole, begun, stopped, imported, and large ones."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.past_results import read_past
from coevolve.search.budget import Budget, Settings
from coevolve.search.candidate import Candidate
from coevolve.search.journal import Journal, MemoryJournal, Recorder
from coevolve.search.loop import Search, import_past, open_run
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.run_state import ready
from coevolve.search.trials import Blame, Fault, Result, Trial
from coevolve.store import RunStore
from tests.search.stubs import POOL, TEST, StubExecutor, chance

SOURCE = '''"""A harness that answers in two steps."""

import json

LIMIT = 3  # answers of one call


def answer(task: str) -> str:
    """What the model says."""
    return json.dumps({"task": task, "limit": LIMIT})
'''
STARTS = {
    "plain": {"harness.py": SOURCE.encode(), "notes.md": b"# Notes\n\nPlain.\n"},
    "terse": {"harness.py": SOURCE.replace("LIMIT = 3", "LIMIT = 2").encode()},
}
LOST = Fault(blame=Blame.INFRASTRUCTURE, kind="sandbox", reason="did not start", shared=True)
LATE = Fault(blame=Blame.CANDIDATE, kind="time-limit", reason="ran longer than 60 s")
BROKEN = Fault(blame=Blame.CANDIDATE, kind="SyntaxError", reason="invalid syntax in line 3")
NO_KEY = Fault(
    blame=Blame.OPERATOR, kind="no key", reason="the model needs a key", advice="Set MODEL_KEY."
)
CHAT = [
    {"role": "system", "content": "Answer with one word."},
    {"role": "user", "content": "Which law applies?\nName it."},
    {"role": "assistant", "content": "Habeas corpus"},
]
STEPS = {
    "model": "stub",
    "steps": [
        {"by": "agent", "said": "I list the files.", "called": "ls -la", "saw": "total 0\nREADME"},
        {"by": "user", "said": "Go on."},
    ],
}


def act(trial: Trial) -> Result | None:
    """Solved, failed, partial, late or lost, by chance; with a conversation or terminal steps."""
    luck = chance("sample", *trial.cell)
    usage = Usage(tokens_in=900, tokens_out=80, dollars=0.01, seconds=1 + 30 * luck)
    content = CHAT if trial.task.startswith("law") else STEPS
    trace = json.dumps({"calls": [{"messages": content}], "task": trial.task})
    if trial.candidate.startswith("r"):
        if luck < 0.05:
            return Result(fault=LOST, usage=Usage(seconds=0.5))
        if luck > 0.95:
            return Result(fault=LATE, usage=usage, trace=trace)
    value = round(luck, 2) if 0.3 < luck < 0.45 else float(luck > 0.4)
    return Result(score=value, usage=usage, trace=trace)


class SampleProposer:
    """Writes candidates that change a number, and says why."""

    async def propose(self, view: View, count: int) -> Proposed:
        made = [
            Proposal(
                files={
                    "harness.py": SOURCE.replace(
                        "LIMIT = 3", f"LIMIT = {10 * view.round + i}"
                    ).encode()
                },
                name=f"r{view.round}-{i}",
                parents=(view.parent,),
                hypothesis=f"Limit {10 * view.round + i} leaves room for examples.",
                kind="explore" if i else "exploit",
                components=("two steps", "json"),
            )
            for i in range(count)
        ]
        usage = Usage(tokens_in=4_000, tokens_out=900, dollars=0.2, seconds=20.0)
        return Proposed(
            proposals=tuple(made), usage=usage, transcript=f"Round {view.round}.\nI try a limit."
        )


def refuse_the_second(candidate: Candidate) -> Fault | None:
    """The second candidate of round 2 does not start."""
    return BROKEN if candidate.name == "r2-1" else None


def begin(journal: Journal, *, rounds: int = 3, candidates: int = 2, name: str = "sample") -> None:
    """Open a run of two pools with a sealed test."""
    open_run(
        journal,
        name=name,
        settings=Settings(
            rounds=rounds, candidates=candidates, seed=7, rescore=True, budget=Budget(trials=900)
        ),
        selector=Selector(POOL, fraction=0.4, seed=7),
        starts=STARTS,
        test=TEST,
    )


def work(journal: Journal, executor: StubExecutor | None = None) -> None:
    """Work on a run to its end, or until it stops."""
    chosen = executor or StubExecutor(act=act, refuse=refuse_the_second)
    asyncio.run(Search(journal, chosen, SampleProposer(), pause=0.0).run())


def finished_run(folder: Path, *, rounds: int = 3) -> Path:
    """A whole run: two pools, partial scores, faults, a refused candidate, a sealed test."""
    with RunStore.create(folder) as store:
        begin(store, rounds=rounds)
        work(store)
    return folder


def opened_run(folder: Path) -> Path:
    """A run on which nobody has worked yet."""
    with RunStore.create(folder) as store:
        begin(store)
    return folder


def part_of(whole: Path, folder: Path, kept: int) -> Path:
    """The first events of a run, as if it had been killed then."""
    added = ("seq", "type", "seal", "at", "clock")
    with RunStore.read(whole) as source, RunStore.create(folder) as store:
        for event in source.events(until=kept):
            body = {name: value for name, value in event.items() if name not in added}
            store.append([(event["type"], body)])
    shutil.copytree(whole / "blobs", folder / "blobs", dirs_exist_ok=True)
    return folder


def first_of(folder: Path, kind: str) -> int:
    """The number of events before the first one of a type."""
    with RunStore.read(folder) as store:
        return next(int(event["seq"]) for event in store.events() if event["type"] == kind)


def stopped_run(folder: Path) -> Path:
    """A run that stopped in Phase 0 because a key is missing."""

    def without_key(trial: Trial) -> Result | None:
        return Result(fault=NO_KEY) if trial.task == "law-7" else act(trial)

    with RunStore.create(folder) as store:
        begin(store)
        try:
            work(store, StubExecutor(act=without_key))
        except Exception as error:
            if "key" not in str(error):
                raise
    return folder


def imported_run(folder: Path, table: Path) -> Path:
    """A run whose Phase 0 is a table of somebody else's results."""
    rows = ["candidate,task,score"]
    for name in STARTS:
        rows += [f"{name},{task},{chance(name, task):.0f}" for task in POOL.tasks]
    table.write_text("\n".join(rows) + "\n")
    with RunStore.create(folder) as store:
        begin(store, rounds=1)
        import_past(Recorder(store), read_past(table))
        work(store)
    return folder


def large_run(
    folder: Path, *, tasks: int, candidates: int, fraction: float = 0.2, per_round: int = 10
) -> Path:
    """A run of many tasks and candidates, recorded without executing anything."""
    names = [f"task-{i:04d}" for i in range(tasks)]
    half = tasks // 2
    with RunStore.create(folder) as store:
        open_run(
            store,
            name="large",
            settings=Settings(rounds=candidates, candidates=per_round),
            selector=Selector(
                Pool.grouped({"first": names[:half], "second": names[half:]}), fraction=fraction
            ),
            starts={f"start-{i}": {"harness.py": f"# {i}\n".encode()} for i in range(2)},
        )
        journal = Batches(store)
        recorder = Recorder(journal)
        rng = np.random.default_rng(0)
        recorder.record("session", {"capacity": 10})
        _make_ready(recorder, recorder.state.starts)
        _evaluate(recorder, rng)
        made, round = 2, 0
        while made < candidates:
            round += 1
            count = min(per_round, candidates - made)
            _round(recorder, round, count, rng)
            made += count
        journal.flush()
    return folder


class Batches(MemoryJournal):
    """A journal that hands events on to a store, many at a time."""

    def __init__(self, store: RunStore) -> None:
        super().__init__()
        self._store, self._waiting = store, list[tuple[str, Mapping[str, Any]]]()
        self._next = store.count

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        self._waiting += events
        made = [
            {"seq": self._next + i, "type": kind, "clock": 0.0, **body}
            for i, (kind, body) in enumerate(events)
        ]
        self._next += len(made)
        return made

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        return self._store.events(since, until)

    def flush(self) -> None:
        """Commit everything at once."""
        self._store.append(self._waiting)
        self._waiting = []


def _round(recorder: Recorder, round: int, count: int, rng: np.random.Generator) -> None:
    recorder.record("proposing", {"round": round})
    made = [
        Candidate.of(
            {"harness.py": f"# {round}.{i}\n".encode()},
            name=f"r{round}-{i}",
            round=round,
            parents=("start-0",),
        )
        for i in range(count)
    ]
    rows = [{"candidate": one.to_json(), "refused": ""} for one in made]
    body = {"candidates": rows, "usage": [90_000, 4_000, 0.41, 312.5], "transcript": None}
    recorder.record("proposed", {"round": round, "note": "", **body})
    _make_ready(recorder, [one.name for one in made])
    draws = recorder.state.selector.plan(ready(recorder.state))
    recorder.record("asked", {"events": draws, "final": False})
    _evaluate(recorder, rng)
    recorder.record("settled", {"round": round})


def _make_ready(recorder: Recorder, names: Sequence[str]) -> None:
    for name in names:
        body = {"candidate": name, "fault": None, "usage": [0, 0, 0.0, 0.0]}
        recorder.record("checked", body)
        recorder.record("prepared", body | {"state": None})


def _evaluate(recorder: Recorder, rng: np.random.Generator) -> None:
    """Outcomes of a wave: tasks with a larger number are solved less often; 2% time out."""
    wave = recorder.state.wave
    cells = [] if wave is None else list(wave.open)
    tasks = recorder.state.selector.pool.tasks
    place = {task: i / len(tasks) for i, task in enumerate(tasks)}
    luck = rng.random(len(cells)).tolist()
    usage = Usage(tokens_in=400, tokens_out=40, dollars=0.001, seconds=3.0)
    for cell, value in zip(cells, luck, strict=True):
        trial = Trial(candidate=cell[0], task=cell[1], trial=int(cell[2]))
        if value > 0.98:
            recorder.outcome(trial, Result(fault=LATE, usage=usage))
        else:
            recorder.outcome(trial, Result(score=float(value > place[cell[1]]), usage=usage))
    recorder.told()
