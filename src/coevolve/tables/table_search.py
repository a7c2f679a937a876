"""Whole searches on a table: the real loop, selector and proposer, outcomes from the table."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.benchmarks.textclass.data_sets import shuffled
from coevolve.benchmarks.textclass.harness_files import read_start_files
from coevolve.core.arrays import spearman
from coevolve.core.estimators import EstimatorRule
from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.core.protocol_settings import PARTS
from coevolve.core.selector import Selector
from coevolve.errors import InputError, StateError, nearest
from coevolve.proposers.offline import OfflineProposer
from coevolve.proposers.offline.building_blocks import BuildingBlocks, Recipe
from coevolve.proposers.offline.restricted_blocks import RestrictedBlocks
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate, Files
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, Proposed, Proposer, View
from coevolve.search.trials import Prepared, Result, Trial
from coevolve.tables.harness_runs import SEED
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.mutation_proposer import MutationProposer

ProposerName = Literal["offline", "mutation"]
SOLVED = Result(score=1.0)
SWAPPED = ("difference", "hajek", "horvitz-thompson", "raw-mean", "joint")
"""Estimators whose winners are compared where a protocol picks its estimator after Phase 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSetting:
    """A search on a table.

    Args:
        protocol: The name of the protocol.
        fraction: The share of validation tasks per candidate.
        rounds: Rounds of proposing.
        candidates: Candidates per round.
    """

    protocol: str
    fraction: float
    rounds: int = 20
    candidates: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The current choice after a round.

    Args:
        evaluations: Trials so far, those of starting harnesses included.
        validation: The true score of the current choice on all validation tasks.
        test: Its true score on the test.
        solvability: How many validation tasks were solved by none of the candidates that ran
            them, by less than a third, by up to two thirds, and by more. After the last round:
            as before it.
    """

    evaluations: int
    validation: float
    test: float
    solvability: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The winner that another estimator chooses from the same draws and outcomes.

    Args:
        estimator: The other estimator, by the name that settings give it.
        estimate: Its estimate of its winner.
        validation: The true score of that winner on all validation tasks; `test` on the test.
    """

    estimator: str
    estimate: float
    validation: float
    test: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a search went.

    Args:
        seed: Its seed.
        winner: The key of the winner in the table.
        estimate: The search's own estimate of it.
        validation: Its true score on all validation tasks.
        test: Its true score on the sealed test.
        start: The true validation score of the best starting harness; `start_test` on the test.
        best: The highest true validation score among the candidates of the search.
        evaluations: Trials of candidates; those of starting harnesses are `first`.
        tokens: Tokens of the trials of candidates.
        candidates: Candidates that were evaluated.
        spearman: Rank correlation of estimates and true scores over these candidates.
        rank: The place of the winner among them by true score; 1 if none is better.
        tied: How many of them share the highest estimate, the winner included.
        latest_test: The true test score of the latest of these.
        curve: The current choice after Phase 0 and after every round.
        swapped: The winners of several estimators, if that was asked for and the protocol picks
            its estimator after Phase 0.
    """

    seed: int
    winner: str
    estimate: float
    validation: float
    test: float
    start: float
    start_test: float
    best: float
    evaluations: int
    first: int
    tokens: int
    candidates: int
    spearman: float
    rank: int
    tied: int
    latest_test: float
    curve: tuple[Point, ...]
    swapped: tuple[Swapped, ...]


class TableExecutor:
    """Answers trials from a table.

    Attributes:
        rows: The row of each candidate.
        tokens: Tokens of the trials of candidates that were proposed.
        trials: All trials; `first` are those of starting harnesses.
    """

    capacity = 1_000_000

    def __init__(self, table: HarnessTable) -> None:
        self._table = table
        self._columns = {task: column for column, task in enumerate(table.tasks)}
        self.rows: dict[str, int] = {}
        self.tokens = self.trials = self.first = 0

    async def check(self, candidate: Candidate) -> Prepared:
        """Find the row of a candidate."""
        key = " ".join(candidate.components) or candidate.name
        if key not in self._table.keys:
            raise InputError(f"the table has no harness {key!r}; it is not closed.")
        self.rows[candidate.name] = self._table.keys[key]
        return Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Nothing to do."""
        return Prepared()

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """The outcome of a trial, with the parts of its trace that the offline proposer reads."""
        table, row, column = self._table, self.rows[candidate.name], self._columns[trial.task]
        self.trials += 1
        if candidate.round:
            self.tokens += int(table.tokens[row, column])
        else:
            self.first += 1
        if table.correct[row, column]:
            return SOLVED
        return _failed(
            int(table.answers[row, column]),
            int(table.gold[column]),
            offered=bool(table.offered[row, column]),
            shown=bool(table.shown[row, column]),
            free="ask:free" in candidate.components,
        )

    async def close(self) -> None:
        """Nothing to do."""


@lru_cache(maxsize=10_000)
def _failed(answer: int, gold: int, *, offered: bool, shown: bool, free: bool) -> Result:
    """The result of a trial with a wrong answer; the labels are numbers."""
    said, right = f"l{answer}.", f"l{gold}."
    if answer == gold:  # neither is a label that occurs in training
        said = "none."
    choices = [said, right] if offered else [said] * (not free)
    call = {"prompt": right if shown else "", "choices": choices}
    trace = {"answer": said, "gold": right, "calls": [call]}
    return Result(score=0.0, trace=json.dumps({"trace": trace}))


class TableJournal(MemoryJournal):
    """A journal in memory that keeps its events as they are recorded, without seals or copies.

    The loop reads all of them before every proposal; nothing changes an event.
    """

    def __init__(self) -> None:
        super().__init__()
        self._events: list[Event] = []

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Record events."""
        made = [
            {"seq": seq, "type": kind, **body, "at": 0.0, "clock": 0.0}
            for seq, (kind, body) in enumerate(events, len(self._events))
        ]
        self._events += made
        return made

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events in order."""
        return iter(self._events[since:until])


class PlainBlocks(RestrictedBlocks):
    """Building blocks whose candidates are the names of their recipes.

    A search on a table runs no harness, so writing its source would only take time.
    """

    def render(self, recipe: Recipe, hypothesis: str) -> Files:
        return {"harness.py": " ".join(recipe.components).encode()}


class TableSearches:
    """Searches on one table; they share what does not depend on the search.

    Args:
        table: The table.
        proposer: "offline", "mutation", or a function that makes a proposer from the building
            blocks; a proposer keeps no state between searches.
        swapped: Whether to note the winners of other estimators.
    """

    def __init__(
        self,
        table: HarnessTable,
        proposer: ProposerName | Callable[[BuildingBlocks], Proposer] = "offline",
        *,
        swapped: bool = False,
    ) -> None:
        known: dict[str, Callable[[BuildingBlocks], Proposer]] = {
            "offline": OfflineProposer,
            "mutation": MutationProposer,
        }
        if isinstance(proposer, str) and proposer not in known:
            raise InputError(
                f"a proposer is one of {', '.join(known)}, got {proposer!r}."
                f"{nearest(proposer, known)}"
            )
        blocks = PlainBlocks(TextBlocks(characters=table.facts.characters), table.space.stages[-1])
        made = known[proposer] if isinstance(proposer, str) else proposer
        self._table, self._proposer, self._swaps = table, made(blocks), swapped
        self._starts = read_start_files(table.starts)
        self._tasks = tuple(table.tasks[n] for n in shuffled(len(table.tasks), SEED))
        self._keys = tuple(table.keys)
        for row in table.space.rows():
            if row.key not in table.keys:
                raise InputError(f"the table has no harness {row.key!r}, which its space has.")
        table.load()

    def search(self, setting: SearchSetting, seed: int) -> Found:
        """A whole search; the same seed gives the same search."""
        return asyncio.run(self._search(setting, seed))

    async def _search(self, setting: SearchSetting, seed: int) -> Found:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # no trial waits
        table, journal, pool = self._table, TableJournal(), Pool(self._tasks)
        open_run(
            journal,
            name="searches",
            settings=Settings(rounds=setting.rounds, candidates=setting.candidates, seed=seed),
            selector=Selector(
                pool, protocol=setting.protocol, fraction=setting.fraction, seed=seed
            ),
            starts=self._starts,
        )
        executor = TableExecutor(table)
        proposer = WatchedProposer(self._proposer, executor)
        state = await Search(journal, executor, proposer).run()
        if state.chosen is None:
            raise StateError(f"a search of {setting.protocol!r} with seed {seed} has no winner.")
        winner = state.chosen["candidate"]
        names = [*state.selector.candidates]
        if winner not in names:
            names.append(winner)  # a starting harness
        estimates = {name: state.selector.estimate(name).value for name in names}
        groups = proposer.points[-1][2]
        return self._found(
            seed,
            executor,
            winner=winner,
            estimates=estimates,
            tied=state.chosen["tied_with"],
            points=(*proposer.points, (executor.trials, winner, groups)),
            swapped=_swapped(table, executor, state.selector) if self._swaps else (),
        )

    def _found(
        self,
        seed: int,
        executor: "TableExecutor",
        *,
        winner: str,
        estimates: Mapping[str, float],
        tied: Sequence[str],
        points: Sequence[tuple[int, str, tuple[int, ...]]],
        swapped: tuple[Swapped, ...],
    ) -> Found:
        table, rows = self._table, executor.rows
        starts = [table.keys[name] for name in table.starts]
        start = starts[int(np.argmax(table.validation[starts]))]
        generated = [name for name in estimates if name not in table.starts]
        values = np.array([estimates[name] for name in generated])
        true = table.validation[[rows[name] for name in generated]]
        latest = max([winner, *tied], key=list(estimates).index)
        proposed = [row for name, row in rows.items() if name not in table.starts]
        return Found(
            seed=seed,
            winner=self._keys[rows[winner]],
            estimate=estimates[winner],
            validation=float(table.validation[rows[winner]]),
            test=float(table.test[rows[winner]]),
            start=float(table.validation[start]),
            start_test=float(table.test[start]),
            best=float(table.validation[proposed].max()),
            evaluations=executor.trials - executor.first,
            first=executor.first,
            tokens=executor.tokens,
            candidates=len(proposed),
            spearman=spearman(values, true),
            rank=1 + int((true > table.validation[rows[winner]]).sum()),
            tied=1 + len(tied),
            latest_test=float(table.test[rows[latest]]),
            curve=tuple(
                Point(
                    evaluations=trials,
                    validation=float(table.validation[rows[name]]),
                    test=float(table.test[rows[name]]),
                    solvability=groups,
                )
                for trials, name, groups in points
            ),
            swapped=swapped,
        )


def _swapped(
    table: HarnessTable, executor: TableExecutor, selector: Selector
) -> tuple[Swapped, ...]:
    """The winners of several estimators; none unless the protocol picks one after Phase 0."""
    if not isinstance(selector.protocol.estimator, EstimatorRule):
        return ()
    found = []
    for name in SWAPPED:
        choice = selector.best_by(PARTS["estimator"][name])
        row = executor.rows[str(choice.candidate)]
        found.append(
            Swapped(
                estimator=name,
                estimate=choice.estimate.value,
                validation=float(table.validation[row]),
                test=float(table.test[row]),
            )
        )
    return tuple(found)


class WatchedProposer:
    """A proposer that notes the current choice and the trials so far before every round."""

    def __init__(self, proposer: Proposer, executor: TableExecutor) -> None:
        self._proposer, self._executor = proposer, executor
        self.points: list[tuple[int, str, tuple[int, ...]]] = []

    async def propose(self, view: View, count: int) -> Proposed | Sequence[Proposal]:
        """What the proposer proposes."""
        name = view.parent if view.best is None else view.best.candidate
        self.points.append((self._executor.trials, name, _groups(view)))
        return await self._proposer.propose(view, count)


def _groups(view: View) -> tuple[int, ...]:
    """How many tasks are in each group of the paper's table of solvability."""
    means = np.array([known.mean for known in view.solvability.values()])
    edges = (means == 0, (means > 0) & (means < 1 / 3), (means >= 1 / 3) & (means <= 2 / 3))
    counts = [int(group.sum()) for group in edges]
    return (*counts, len(means) - sum(counts))
