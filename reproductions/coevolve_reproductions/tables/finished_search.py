"""A finished search, its estimates and its winner, also under another estimator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coevolve.analysis.matrix import Series
from coevolve.analysis.matrix_files import matrix_of_run
from coevolve.analysis.replay_search import Stage, play
from coevolve.core.arrays import DECIMALS, Floats, spearman
from coevolve.core.choice import Choice, Contender, HighestEstimate
from coevolve.core.estimators import Estimate, Estimator
from coevolve.core.events import Event
from coevolve.core.identifiers import Id, text_of
from coevolve.core.judgement import chosen, estimated
from coevolve.core.outcome_table import History
from coevolve.core.outcomes import Missing
from coevolve.core.posterior import JointModel
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector import Selector
from coevolve.core.selector_state import State
from coevolve.errors import NoOutcomeError, StateError
from coevolve.views.spend_parts import SpendParts

_ROUNDING = 10.0**-DECIMALS
PAY = (
    "Score more candidates with --rescore all or --rescore top10 (a run folder), or record "
    "scores on every task with Selector.tell_full(candidate, scores)."
)
"""What to do if too few candidates have a true score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The winner of a search compared with the true scores; None where these are unknown.

    `rank` is that of the winner by true score among the `ranked` candidates that have one.
    """

    winner: str
    truth: float | None
    best: float | None
    rank: int | None
    ranked: int
    spearman: float | None

    @property
    def regret(self) -> float | None:
        """How far the winner is below the best."""
        return None if self.truth is None or self.best is None else self.best - self.truth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """A search before any generated candidate was scored on every task.

    `truth` has the known full-set scores, including those of starting harnesses; `events` has all
    events of the run. `rescored` has the scores that were recorded apart from the search, and
    `spent` what each part of the run has spent.

    >>> from coevolve import Pool
    >>> selector = Selector(Pool(["a", "b"]), protocol="naive", fraction=0.5)
    >>> selector.tell_full("start", {"a": 1, "b": 0})
    >>> (assignment,) = selector.ask(["new"])
    >>> selector.tell(assignment, {task: 1 for task in assignment.tasks})
    >>> selector.tell_full("new", {"a": 1, "b": 1})
    >>> search = Search.of_events(selector.events)
    >>> print(search.estimates()["new"], search.truth)
    1.000 ± ? (1 of 2 tasks, raw mean) {'start': 0.5, 'new': 1.0}
    """

    state: State
    truth: Mapping[str, float]
    events: tuple[Event, ...] = ()
    rescored: Selector | None = None
    spent: SpendParts | None = None

    @classmethod
    def of_events(
        cls,
        events: Iterable[Mapping[str, Any]],
        *,
        rescored: Selector | None = None,
        spent: SpendParts | None = None,
    ) -> Self:
        """The search of a run; candidates scored on every task have true scores.

        Args:
            events: The events of the selector.
            rescored: A selector that was told scores on every task apart from the search.
            spent: What each part of the run has spent, if it is known.
        """
        selector = Selector.from_events(events)
        found = [(c, _estimate(selector, c)) for c in (*selector.starts, *selector.candidates)]
        truth = {name: e.value for name, e in found if e is not None and e.exact}
        if rescored is not None:
            whole = ((name, _estimate(rescored, name)) for name in rescored.starts)
            truth |= {name: e.value for name, e in whole if e is not None}
        events = selector.events
        state = _before_rescoring(events)
        return cls(state=state, truth=truth, events=events, rescored=rescored, spent=spent)

    @classmethod
    def replayed(
        cls, stage: Stage, protocol: SearchProtocol, *, fraction: float, per_round: int
    ) -> Self:
        """A search replayed on a series."""
        played = play(stage, protocol, fraction=fraction, per_round=per_round)
        return cls(state=_before_rescoring(played.selector.events), truth=stage.truth)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The generated candidates, in the order of proposal."""
        return self.state.candidates

    def history(self, last: int) -> History:
        """Success rates of the tasks after a round; round 0 has the starting harnesses."""
        return self.state.table.history(0, last)

    def estimates(self) -> dict[str, Estimate]:
        """The estimates of the generated candidates that have one, in the order of proposal."""
        found = {name: _estimate(self.state, name) for name in self.candidates}
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    def choice(self) -> Choice:
        """The winner, by the protocol's own rule."""
        return chosen(self.state)

    def highest(self, rule: HighestEstimate) -> Choice:
        """The winner among all candidates with an estimate, by another rule."""
        rounds = self.state.table.round_of
        field = [Contender(name, rounds(name), e) for name, e in self.estimates().items()]
        return rule.choose(field, [])

    def re_estimated(self, estimator: Estimator | JointModel) -> "Search":
        """The same draws and outcomes under another estimator."""
        if estimator == self.state.estimator:
            return self
        return replace(self, state=self.state.under(estimator))

    def scored_series(self) -> Series:
        """The starting harnesses and the candidates with a true score, as a series to replay.

        Raises:
            StateError: Fewer than two candidates have one.
        """
        known = [name for name in self.candidates if name in self.truth]
        if len(known) < 2:
            raise StateError(
                f"{len(known)} of {len(self.candidates)} candidates have a full-set score, and a "
                f"replay needs two or more. {PAY}"
            )
        series = matrix_of_run("run", self.events).series[0]
        row = {name: at for at, name in enumerate(series.candidates)}
        outcomes, rescored = series.outcomes.copy(), self.rescored
        if rescored is not None:
            for name in set(known) & set(rescored.starts):
                outcomes[row[text_of(name)]] = self._whole(rescored, name)
        kept = [*range(series.started), *(row[text_of(name)] for name in known)]
        return replace(series, outcomes=outcomes).rows(kept)

    def _whole(self, rescored: Selector, name: Id) -> Floats:
        """The scores of a candidate on every task, from 0 to 1; NaN where one is missing."""
        scores = rescored.scores(name)
        found = [scores.get(task, np.nan) for task in self.state.pool.tasks]
        return self.state.pool.to_unit(
            np.array([np.nan if isinstance(score, Missing) else score for score in found])
        )

    def verdict(self) -> Verdict:
        """How the winner and the estimates compare with the true scores."""
        winner = self.choice().candidate
        true = {name: self.truth[name] for name in self.candidates if name in self.truth}
        pairs = [(e.value, true[name]) for name, e in self.estimates().items() if name in true]
        agreement = spearman(*np.array(pairs).T) if len(pairs) > 1 else np.nan
        won = true.get(winner)
        above = [score for score in true.values() if won is not None and score > won + _ROUNDING]
        return Verdict(
            winner=winner,
            truth=won,
            best=max(true.values(), default=None),
            rank=None if won is None else 1 + len(above),
            ranked=len(true),
            spearman=None if np.isnan(agreement) else float(agreement),
        )


def _before_rescoring(events: Iterable[Mapping[str, Any]]) -> State:
    """The state without the events that scored a generated candidate on every task."""
    opened, *later = (dict(event) for event in events)
    state = State.opened(opened)
    for event in later:
        if event["type"] != "told_full" or not state.rounds:
            state.apply(event)
    return state


def _estimate(source: Selector | State, candidate: str) -> Estimate | None:
    try:
        if isinstance(source, Selector):
            return source.estimate(candidate)
        return estimated(source, candidate)
    except NoOutcomeError:
        return None
