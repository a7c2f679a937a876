"""Scores of harnesses that were evaluated in full or on chosen tasks, side by side."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coevolve.core.comparison import Comparison
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.core.population import Evaluated, part_of
from coevolve.errors import NoOutcomeError, titled
from coevolve.search.budget import Ledger
from coevolve.search.journal import Journal
from coevolve.search.request import Requested, cells_of
from coevolve.search.requesting import pool_of
from coevolve.search.run_state import RunState
from coevolve.views.outcome_rows import OutcomeRow, outcome_rows

Split = Literal["validation", "test"]
Results = Mapping[tuple[Any, int], float | Missing]
"""Scores by task and number of the trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What is recorded of one harness with one model.

    `harness` is the name that the user gave, `name` that in the journal of `folder`. `faults`
    counts what went wrong by its description. `search` is the estimate of the search, if the
    harness is a candidate of a run.
    """

    harness: str
    name: str
    address: str
    folder: str
    results: Results
    cost: Ledger
    faults: Mapping[str, int]
    leaks: tuple[str, ...] = ()
    search: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """The score of one harness with one model.

    `score` is None if some pool has no outcome, and `reason` says so. `difference` is that to the
    first harness with the same model. If the model is not `priced`, the dollars are unknown.
    """

    harness: str
    model: str
    name: str
    address: str
    folder: str
    score: Estimate | None
    reason: str
    difference: Comparison | None
    search: Estimate | None
    scores: Mapping[Any, float]
    missing: int
    faults: Mapping[str, int]
    leaks: tuple[str, ...]
    cost: Ledger
    priced: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "harness": self.harness,
            "model": self.model,
            "name": self.name,
            "address": self.address,
            "folder": self.folder,
            "score": None if self.score is None else self.score.to_json(),
            "reason": self.reason,
            "difference": None if self.difference is None else self.difference.to_json(),
            "estimate": None if self.search is None else self.search.to_json(),
            "cost": self.cost.to_json() | ({} if self.priced else {"dollars": None}),
            "missing": self.missing,
            "faults": dict(self.faults),
            "leaks": list(self.leaks),
            "scores": dict(self.scores),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """Harnesses, each with one or several models, on the same tasks.

    `tasks` counts the tasks, `trials` the trials of each. `warnings` are for the reader of the
    scores.

    >>> found = Scored(harness="mine", name="mine", address="", folder="", cost=Ledger(),
    ...     results={("a", 0): 1.0, ("b", 0): 0.0}, faults={})
    >>> rows = score_rows("embedded", [found], Pool(["a", "b"]), confidence=0.95)
    >>> table = ScoreTable(rows=tuple(rows), split="validation", tasks=2, trials=1,
    ...     confidence=0.95)
    >>> table.models, table.row("mine").score.value
    (('embedded',), 0.5)
    """

    rows: tuple[ScoreRow, ...]
    split: Split
    tasks: int
    trials: int
    confidence: float
    warnings: tuple[str, ...] = ()

    @property
    def harnesses(self) -> tuple[str, ...]:
        """The harnesses, in the order they were given."""
        return tuple(dict.fromkeys(row.harness for row in self.rows))

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order they were given."""
        return tuple(dict.fromkeys(row.model for row in self.rows))

    @property
    def cost(self) -> Ledger:
        """What all rows cost together."""
        total = Ledger()
        for row in self.rows:
            total.add(row.cost)
        return total

    def row(self, harness: str, model: str | None = None) -> ScoreRow:
        """The row of a harness, with a model if there are several."""
        return next(
            row for row in self.rows if row.harness == harness and model in (None, row.model)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "split": self.split,
            "tasks": self.tasks,
            "trials": self.trials,
            "confidence": self.confidence,
            "warnings": list(self.warnings),
            "cost": self.cost.to_json(),
            "rows": [row.to_json() for row in self.rows],
        }


def score_rows(
    model: str, found: Sequence[Scored], pool: Pool, *, confidence: float, priced: bool = True
) -> list[ScoreRow]:
    """A row for each harness with one model, compared with the first."""
    evaluated = Evaluated(pool, confidence=confidence)
    for one in found:
        evaluated.tell(one.harness, one.results)
    rows = []
    for one in found:
        score, reason = None, ""
        try:
            score = evaluated.estimate(one.harness)
        except NoOutcomeError as error:
            reason = str(error)
        first = found[0].harness
        rows.append(
            ScoreRow(
                harness=one.harness,
                model=model,
                name=one.name,
                address=one.address,
                folder=one.folder,
                score=score,
                reason=reason,
                difference=None if one.harness == first else evaluated.compare(one.harness, first),
                search=one.search,
                scores=evaluated.scores(one.harness),
                missing=sum(isinstance(score, Missing) for score in one.results.values()),
                faults=one.faults,
                leaks=one.leaks,
                cost=one.cost,
                priced=priced,
            )
        )
    return rows


def chosen_pool(pool: Pool, tasks: Sequence[str] | None) -> Pool:
    """The pool, or the chosen tasks of it."""
    return pool if tasks is None else part_of(pool, tasks)


def scored(
    state: RunState,
    journal: Journal,
    names: Mapping[str, str],
    split: Split,
    *,
    folder: str,
    tasks: Sequence[str] | None = None,
    trials: int | None = None,
) -> list[Scored]:
    """What a journal has recorded of some candidates.

    Args:
        state: The state of the journal.
        journal: The journal.
        names: The name of each candidate in the journal, by the name that the user gave.
        split: Which tasks.
        folder: The folder of the journal.
        tasks: The chosen tasks, if not all.
        trials: Trials of each task; those of the run if left out.
    """
    wanted = pool_of(state, split).tasks if tasks is None else tuple(tasks)
    count, whole_test = state.trials if trials is None else trials, split == "test"
    rows = _rows(journal, set(names.values()), split)
    found = []
    for harness, name in names.items():
        known = state.candidates[name]
        results = recorded_results(state, name, split)
        own = [row for row in rows.get(name, ()) if row.task in set(wanted)]
        if results is None:
            requested = state.requested.get(kind_of(split)) or Requested(split=kind_of(split))
            cells, done = cells_of(name, wanted, count), requested.wave.done
            results = {(cell.task, cell.trial): done[cell] for cell in cells if cell in done}
            cost = Ledger()
            cost.add(known.preparing if state.evaluation else Ledger())
            for cell in cells:
                cost.add(requested.costs.get(cell, Ledger()))
            own = [row for row in own if row.split == kind_of(split) and row.trial < count]
        else:
            cost = _cost(own)
        faults = Counter(titled(row.fault, row.reason) for row in own if row.fault)
        found.append(
            Scored(
                harness=harness,
                name=name,
                address=known.candidate.address,
                folder=folder,
                results=results,
                cost=cost,
                faults=dict(faults.most_common()),
                leaks=known.leaks,
                search=None if whole_test or state.evaluation else state.estimate(name),
            )
        )
    return found


def kind_of(split: Split) -> Literal["rescore", "test"]:
    """The split of requested trials in the journal."""
    return "test" if split == "test" else "rescore"


def recorded_results(state: RunState, name: str, split: Split) -> Results | None:
    """The results on every task that the run itself has recorded, if there are any.

    Starting harnesses have them from Phase 0, a winner from its rescoring, and both from the
    sealed test. They are means over trials.
    """
    if state.evaluation or name in _requested_names(state, split):
        return None
    whole = state.test if split == "test" else state.rescored
    if whole is not None and name in whole.starts:
        return {(task, 0): score for task, score in whole.scores(name).items()}
    estimate = state.estimate(name) if split == "validation" else None
    if estimate is None or not estimate.exact:
        return None
    return {(task, 0): score for task, score in state.selector.scores(name).items()}


def is_requested(
    state: RunState, name: str, split: Split, tasks: Sequence[str], trials: int
) -> bool:
    """Whether a candidate was evaluated on request on some tasks, and every trial has a score."""
    requested = state.requested.get(kind_of(split))
    done = {} if requested is None else requested.wave.done
    return all(isinstance(done.get(cell), float) for cell in cells_of(name, tasks, trials))


def is_recorded(state: RunState, name: str, split: Split) -> bool:
    """Whether a run has the results of a candidate on every task, of its own or on request."""
    if recorded_results(state, name, split) is not None:
        return True
    return is_requested(state, name, split, pool_of(state, split).tasks, state.trials)


def _requested_names(state: RunState, split: Split) -> Iterable[str]:
    requested = state.requested.get(kind_of(split))
    return () if requested is None else requested.wave.cells


def _rows(journal: Journal, names: set[str], split: Split) -> dict[str, list[OutcomeRow]]:
    """The outcomes of some candidates on the tasks of a split."""
    found: dict[str, list[OutcomeRow]] = {}
    for row in outcome_rows(journal.events()):
        if row.candidate in names and (row.split == "test") == (split == "test"):
            found.setdefault(row.candidate, []).append(row)
    return found


def _cost(rows: Iterable[OutcomeRow]) -> Ledger:
    cost = Ledger()
    for row in rows:
        cost.spend([row.tokens_in, row.tokens_out, row.dollars, row.seconds], trials=1)
    return cost
