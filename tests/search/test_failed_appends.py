"""A journal that fails: the same search continues, for its state is never ahead of the journal."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Self

import pytest

from coevolve.core.allocation import Request, SearchView
from coevolve.core.arrays import Floats
from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.core.protocols import PLUGS, SearchProtocol
from coevolve.core.selector import Selector
from coevolve.errors import StoreError
from coevolve.search.budget import Budget, Settings
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.trials import Blame, Fault, Result, Trial
from tests.effort import effort
from tests.search.snapshots import snapshot
from tests.search.stubs import STARTS, StubExecutor, StubProposer
from tests.search.test_repairing import MissingFiles, Repairing

STAMPS = ("seq", "at", "clock", "seal")
PASSING = ("session", "stopped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneByOne:
    """One task per candidate, a second for the newest, and a third in the final draw."""

    needs_model: ClassVar[bool] = False

    def at(self, fraction: float) -> Self:
        return self

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return (1,) * len(pool.names)

    def further(self, view: SearchView) -> Sequence[Request]:
        goal = 3 if view.final else 2
        return [Request(int(i), (1,)) for i in view.newest if view.asked[i] < goal]


@pytest.fixture(autouse=True)
def _one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SearchProtocol(name="one-by-one", summary="for this test", allocation=OneByOne())
    monkeypatch.setitem(PLUGS, known.name, known)


class FailingJournal(MemoryJournal):
    """Fails one append: before it is kept, or after, as an interrupted write to a disk may."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0.0)
        self.fail, self.kept, self.appends = 0, False, 0
        self.places: dict[tuple[str, ...], int] = {}

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        self.appends += 1
        self.places.setdefault(tuple(kind for kind, _ in events), self.appends)
        fails = self.appends == self.fail
        recorded = super().append(events) if self.kept or not fails else []
        if fails:
            raise StoreError("the disk is full.")
        return recorded


class Rough(MissingFiles):
    """Trials whose faults reopen Phase 0, and have the first round drawn again."""

    def __init__(self, journal: MemoryJournal) -> None:
        super().__init__(journal)
        self.journal = journal

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        if trial.candidate == "plain" and trial.task == "s1":
            fails = all(event["type"] != "reopened" for event in self.journal.events())
        else:
            fails = candidate.round == 1 and trial.trial == 0 and trial.task != "l1"
        if fails:
            fault = Fault(
                blame=Blame.INFRASTRUCTURE, kind="sandbox", reason="did not start", shared=True
            )
            return Result(fault=fault)
        return await super().run(candidate, trial)


@dataclass
class Plot:
    """A small run, and what must happen in it for the test to mean anything."""

    happens: set[str]
    tasks: dict[str, list[str]]
    protocol: str = "task-coevolve"
    fraction: float = 1.0
    rough: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def play(self, fail: int = 0, *, kept: bool = False) -> tuple[Search, FailingJournal]:
        """Run it to its end with one search object, called again after an error."""
        journal = FailingJournal()
        selector = Selector(
            Pool.grouped(self.tasks), protocol=self.protocol, fraction=self.fraction, seed=7
        )
        settings = Settings(candidates=2, seed=7, **self.settings)
        test = Pool(["t1"])
        open_run(journal, name="x", settings=settings, selector=selector, starts=STARTS, test=test)
        executor = Rough(journal) if self.rough else StubExecutor()
        proposer = Repairing() if self.rough else StubProposer()
        search = Search(journal, executor, proposer, pause=0.0)
        journal.fail, journal.kept, journal.appends, journal.places = fail, kept, 0, {}
        for _ in range(2 if fail else 1):
            try:
                asyncio.run(search.run())
                break
            except StoreError:
                assert journal.appends >= fail
        return search, journal


PLOTS = {
    "repairs": Plot(
        happens={"repaired", "failed", "reopened", "again", "rescore", "test"},
        tasks={"law": ["l1", "l2"], "s2d": ["s1"]},
        rough=True,
        settings={"rounds": 1, "repair": True, "rescore": True},
    ),
    "overlap": Plot(
        happens={"further", "final", "proposing"},
        tasks={"law": ["l1", "l2", "l3", "l4"]},
        protocol="one-by-one",
        settings={"rounds": 2, "overlap": True},
    ),
    "budget": Plot(
        happens={"exhausted", "test"},
        tasks={"law": ["l1", "l2"]},
        settings={"rounds": 3, "budget": Budget(trials=10)},
    ),
}


def happened(journal: MemoryJournal) -> set[str]:
    events = list(journal.events())
    draws = [(e, draw) for e in events if e["type"] == "asked" for draw in e["events"]]
    finals = {"final" for event, _ in draws if event["final"]}
    splits = {event.get("split", "") for event in events}
    return {e["type"] for e in events} | {d["kind"] for _, d in draws} | finals | splits


def told(journal: MemoryJournal) -> dict[str, list[Any]]:
    """What a run recorded, whatever the sessions and the order in which trials ended."""
    kept: dict[str, list[Any]] = {}
    for event in journal.events():
        if event["type"] not in PASSING:
            body = {key: value for key, value in event.items() if key not in STAMPS}
            kept.setdefault(event["type"], []).append(body)
    for kind in ("outcome", "checked", "prepared"):
        kept[kind].sort(key=repr)
    return kept


@pytest.mark.parametrize("kept", [False, True], ids=["lost", "kept"])
@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_the_same_search_continues_after_any_append_that_failed(plot: Plot, kept: bool) -> None:
    undisturbed, journal = plot.play()
    assert happened(journal) >= plot.happens
    some = sorted({*journal.places.values(), *range(1, journal.appends, 9)})
    for fail in effort(some, count(1)):
        search, failed = plot.play(fail, kept=kept)
        if failed.appends < fail:
            break
        assert told(failed) == told(journal), fail
        assert snapshot(search.state) == snapshot(undisturbed.state), fail
        assert snapshot(fold(failed.events())) == snapshot(search.state), fail
