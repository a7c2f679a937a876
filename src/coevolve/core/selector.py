"""The selector: ask which tasks to evaluate, tell the outcomes, estimate, choose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from coevolve.core.assignment import Assignment
from coevolve.core.choice import Choice
from coevolve.core.comparison import Comparison, Ranked, compared, standings_of
from coevolve.core.drawing import further_event, requests, round_event
from coevolve.core.estimators import Estimate, Estimator
from coevolve.core.events import SCHEMA, Event, Line, sealed
from coevolve.core.identifiers import KINDS, Id, all_frozen, is_id, plain
from coevolve.core.judgement import chosen, estimated, pool_scores_of, scores_of
from coevolve.core.outcome_table import History
from coevolve.core.outcomes import Missing, Results, Usage
from coevolve.core.pool import Pool
from coevolve.core.posterior import JointModel
from coevolve.core.protocols import SearchProtocol
from coevolve.core.protocols import protocol as find_protocol
from coevolve.core.recorded import Recorded, alone
from coevolve.core.selector_state import check_settings
from coevolve.core.telling import (
    newly_observed,
    open_assignment,
    told_in_full,
    told_of_assignment,
)
from coevolve.errors import (
    InputError,
    PhaseError,
    UnknownCandidateError,
    nearest,
)


class Selector(Recorded):
    """Chooses tasks for candidates and estimates their full-set scores from the outcomes.

    Several threads may use a selector: its methods run one at a time. The events have the order
    in which the calls arrived.

    Args:
        pool: The tasks.
        fraction: ρ, the share of each pool a round draws; `full` draws everything at any ρ.
            That of the protocol (20%) if left out.
        protocol: The name of a registered protocol, or a `SearchProtocol`.
        seed: Seed of every draw, together with round and pool.
        trials: r, how often each drawn task is run; a task's score is the mean of its trials.
        draw_per: "round" lets the candidates of a round share a draw, as in the paper;
            "candidate" draws for each.
        confidence: Level of the intervals.

    >>> selector = Selector(Pool([f"task-{i}" for i in range(10)]), fraction=0.3, seed=7)
    >>> selector.tell_full("start-a", {f"task-{i}": float(i < 6) for i in range(10)})
    >>> selector.tell_full("start-b", {f"task-{i}": float(i < 4) for i in range(10)})
    >>> for assignment in selector.ask(["candidate-1"]):
    ...     selector.tell(assignment, {task: 1.0 for task in assignment.tasks})
    >>> print(selector.estimate("candidate-1"))
    0.920 ± 0.363 (3 of 10 tasks, difference)
    >>> selector.best().candidate
    'candidate-1'
    """

    def __init__(
        self,
        pool: Pool,
        *,
        fraction: float | None = None,
        protocol: str | SearchProtocol = "task-coevolve",
        seed: int = 0,
        trials: int = 1,
        draw_per: Literal["round", "candidate"] = "round",
        confidence: float = 0.95,
    ) -> None:
        rule = protocol if isinstance(protocol, SearchProtocol) else find_protocol(protocol)
        if fraction is not None:
            rule = replace(rule, allocation=rule.allocation.at(fraction))
        check_settings(pool, seed, trials, draw_per, confidence)
        seed, trials = int(seed), int(trials)
        opened = {
            "schema": SCHEMA,
            "pool": pool.to_json(),
            "protocol": rule.to_json(),
            "seed": seed,
            "trials": trials,
            "draw_per": draw_per,
            "confidence": confidence,
        }
        super().__init__(sealed(0, "opened", opened, ""), rule, pool)

    @alone
    def __repr__(self) -> str:
        done = f"{len(self.candidates)} candidates, {self.evaluations} evaluations"
        return f"Selector({self.protocol.name}, {self.pool!r}, {done})"

    @property
    @alone
    def pool(self) -> Pool:
        """The tasks."""
        return self._state.pool

    @property
    def protocol(self) -> SearchProtocol:
        """The protocol."""
        return self._state.protocol

    @property
    def draw_per(self) -> str:
        """Who shares a draw: "round" or "candidate"."""
        return self._state.draw_per

    @property
    def confidence(self) -> float:
        """Level of the intervals."""
        return self._state.confidence

    @property
    @alone
    def starts(self) -> tuple[Id, ...]:
        """The starting harnesses, in the order told."""
        return tuple(self._state.starts)

    @property
    @alone
    def candidates(self) -> tuple[Id, ...]:
        """The generated candidates, in the order of proposal."""
        return self._state.candidates

    @property
    @alone
    def observed(self) -> tuple[Id, ...]:
        """The candidates with nothing but observed outcomes."""
        return tuple(self._state.others)

    @property
    @alone
    def evaluations(self) -> int:
        """Number of trials told for assignments, without Phase 0 and rescoring."""
        return self._state.evaluations

    @property
    @alone
    def usage(self) -> Usage:
        """What all told trials consumed."""
        return self._state.usage

    @alone
    def history(self, first: int = 0, last: int | None = None) -> History:
        """Success rates of the tasks over rounds `first` to `last`, both included.

        Round 0 are the starting harnesses. Rates are from 0 to 1 on any scale of scores.
        """
        return self._state.table.history(first, last)

    @alone
    def scores(self, candidate: Id) -> dict[Id, float | Missing]:
        """The scores of a candidate: per task the mean of its trials, or why it is missing.

        Outcomes that were only observed are not included.

        >>> selector = Selector(Pool(["a", "b"]))
        >>> selector.tell_full("start", {"a": 1.0, "b": Missing("no sandbox")})
        >>> selector.scores("start")
        {'a': 1.0, 'b': Missing(reason='no sandbox')}
        """
        return scores_of(self._state, candidate)

    @alone
    def pool_scores(self, candidate: Id) -> dict[str, float]:
        """The score in each pool of a candidate that was told in full.

        A pool without any outcome is left out.

        >>> selector = Selector(Pool({"easy": ["a", "b"], "hard": ["c"]}))
        >>> selector.tell_full("start", {"a": 1.0, "b": 0.0, "c": 0.0})
        >>> selector.pool_scores("start")
        {'easy': 0.5, 'hard': 0.0}
        """
        return pool_scores_of(self._state, candidate)

    @alone
    def outstanding(self) -> list[Assignment]:
        """Assignments with trials that were not told yet."""
        return [progress.assignment for progress in self._state.waiting.values()]

    @alone
    def tell_full(self, candidate: Id, scores: Results) -> None:
        """Record a candidate's scores on every task.

        Before the first `ask` this makes it a starting harness (Phase 0). Later it completes a
        candidate that was asked about, whose score is then exact. Scores that are already recorded
        must be repeated unchanged, because outcomes are never rewritten. A score for a trial that
        was missing is recorded as one more trial.
        """
        (candidate,) = _checked_names([candidate])
        fresh = told_in_full(self._state, candidate, scores)
        if fresh.tasks or candidate not in self._state.whole:
            self._record("told_full", {"candidate": plain(candidate), **fresh.to_json()})

    @alone
    def ask(
        self,
        new: Iterable[Id] | None = None,
        *,
        candidates: Iterable[Id] | None = None,
        final: bool = False,
    ) -> list[Assignment]:
        """Open a round for new candidates; without any, return further assignments.

        Asking again is safe: a candidate that was asked about before opens no new round, and its
        assignments are returned as long as outcomes of them are not told.

        Further assignments may be for any candidate: an adaptive protocol evaluates contenders on
        more tasks, and a candidate with a score on under half of its draw, or on none of a pool,
        gets one more draw. Tell all outcomes, then call it again, until it returns nothing.

        Args:
            new: Names of new candidates.
            candidates: Return further assignments for these candidates alone, also while outcomes
                of others are not told. Candidates with outcomes that are not told get none.
            final: Whether the last round is over; then no reserve is kept.
        """
        names = _checked_names(new)
        lines = self._planned(names, candidates, final)
        for line in lines:
            self._apply(line)
        drawn = [name for line in lines for name in all_frozen(line.event["candidates"])]
        return [a for name in names or drawn for a in self._open_of(name)]

    @alone
    def plan(
        self,
        new: Iterable[Id] | None = None,
        *,
        candidates: Iterable[Id] | None = None,
        final: bool = False,
    ) -> list[Event]:
        """The events that `ask` would apply; apply each with `follow`.

        A program that keeps a journal records them first. Then the selector is never ahead of the
        journal. A plan fits until the next event: with several threads, hold a lock of your own
        until its events have been followed.
        """
        return [line.event for line in self._planned(_checked_names(new), candidates, final)]

    @alone
    def tell(self, assignment: Assignment, results: Results) -> None:
        """Record outcomes of an assignment: all or some of them, in any order.

        Repeated outcomes are ignored if they are equal. A different score for a recorded outcome
        is an error, and the call records nothing.

        Args:
            assignment: What `ask` returned.
            results: Score, `Missing(reason)` or, with several trials, a list of these for each
                task; or `Outcome` records.
        """
        fresh = told_of_assignment(self._state, assignment, results)
        if fresh.tasks:
            key = {"candidate": plain(assignment.candidate), "batch": assignment.batch}
            self._record("told", {**key, **fresh.to_json()})

    @alone
    def withdraw(self, assignment: Assignment, reason: str, *, shared: bool = False) -> None:
        """Give up the trials of an assignment that were not told, because its candidate died.

        These trials are missing for this reason, and the candidate gets no further assignment. Its
        told outcomes stay. Like other missing outcomes, what exceeds the losses of other
        candidates counts as failed, unless `shared` says that the candidate did not cause it.
        Withdrawing again changes nothing.

        Args:
            assignment: What `ask` returned.
            reason: Why the trials will not be told.
            shared: Whether the cause has nothing to do with the candidate.

        >>> selector = Selector(Pool(["a", "b"]), protocol="full")
        >>> (assignment,) = selector.ask(["new"])
        >>> selector.withdraw(assignment, "the machine is gone", shared=True)
        >>> selector.outstanding(), selector.scores("new")["a"]
        ([], Missing(reason='the machine is gone'))
        """
        progress = open_assignment(self._state, assignment)
        gone = Missing(reason, shared=shared)
        if not progress.withdrawn:
            key = {"candidate": plain(assignment.candidate), "batch": assignment.batch}
            self._record("withdrawn", {**key, "reason": gone.reason, "shared": gone.shared})

    @alone
    def observe(self, candidate: Id, results: Results) -> None:
        """Record outcomes that were not drawn: past results, or tasks that others chose.

        They inform the history of the tasks, and with it the weights and anchors of later draws,
        and the joint model. A design-based estimate is made from draws alone: it ignores observed
        outcomes, and says so. The candidate may be new, or known in any way. It is not a contender
        for `best` unless it is asked about.

        Observed outcomes are separate from told ones, with trial numbers of their own. A repeated
        one is ignored if it is equal, and refused if not. A `Missing` says nothing and is ignored.

        Args:
            candidate: Its name.
            results: As for `tell`, of any tasks.

        >>> selector = Selector(Pool(["a", "b", "c"]), protocol="joint")
        >>> selector.observe("last year's", {"a": 1.0, "b": 0.0})
        >>> selector.observed, selector.estimate("last year's").observed
        (("last year's",), 2)
        """
        (candidate,) = _checked_names([candidate])
        fresh = newly_observed(self._state, candidate, results)
        if fresh.tasks:
            data = fresh.to_json()
            columns = {name: data[name] for name in ("tasks", "trials", "scores")}
            self._record("observed", {"candidate": plain(candidate), **columns})

    @alone
    def add_tasks(
        self,
        tasks: Iterable[Id] | Mapping[str, Iterable[Id]],
        *,
        pools: Sequence[str] | Mapping[Id, str] | None = None,
        weights: Mapping[str, float] | None = None,
        costs: Sequence[float] | Mapping[Id, float] | None = None,
    ) -> None:
        """Add tasks to the pool; the arguments are those of `Pool.grown`.

        Later draws are from all tasks. A draw from before had no chance to include a new task, so
        its inclusion probabilities, and the design-based estimates made with it, are for the tasks
        at that time, and say so. Its further draws are from the same tasks. A joint model
        estimates every candidate for all tasks. `tell_full` completes a candidate.

        >>> selector = Selector(Pool(["a", "b"]), protocol="joint")
        >>> selector.add_tasks(["c"])
        >>> len(selector.pool)
        3
        """
        before = len(self._state.pool)
        data = self._state.pool.grown(tasks, pools=pools, weights=weights, costs=costs).to_json()
        new = {name: data[name] and data[name][before:] for name in ("tasks", "pools", "costs")}
        if new["tasks"]:
            self._record("grown", {**new, "weights": data["weights"]})

    @alone
    def estimate(self, candidate: Id) -> Estimate:
        """The full-set score of a candidate, from the outcomes told so far."""
        return estimated(self._state, candidate)

    @alone
    def best(self, *, include_start: bool | None = None, unfinished: bool = False) -> Choice:
        """The winner among the candidates whose outcomes are all told, or all if there are none.

        A candidate with a score on under half of its trials is considered only if no other has
        more. `left_out` names the candidates that were not considered.

        Args:
            include_start: Whether a starting harness may win. The protocol decides if left out.
            unfinished: Whether a candidate may win of which at least half of the outcomes are
                told: the best to build on before the others are.
        """
        if include_start not in (True, False, None):
            raise InputError(f"include_start must be True or False, got {include_start!r}.")
        return chosen(self._state, include_start, unfinished=unfinished)

    @alone
    def best_by(self, estimator: Estimator | JointModel) -> Choice:
        """The winner that another estimator would choose from the same draws and outcomes.

        Args:
            estimator: The other estimator.

        >>> from coevolve.core.estimators import Hajek
        >>> selector = Selector(Pool(["a", "b"]), protocol="random-resample", fraction=0.5)
        >>> (assignment,) = selector.ask(["new"])
        >>> selector.tell(assignment, {task: 1 for task in assignment.tasks})
        >>> selector.best().estimate.method, selector.best_by(Hajek()).estimate.method
        ('raw mean', 'Hájek')
        """
        if isinstance(estimator, type) or not isinstance(estimator, Estimator | JointModel):
            raise InputError(
                f"estimator must be an estimator or a joint model such as Hajek() or Joint(), "
                f"got {estimator!r}."
            )
        return chosen(self._state.under(estimator))

    @alone
    def standings(self) -> list[Ranked]:
        """All candidates and starting harnesses, the highest estimate first.

        Those without an estimate are at the end, with the reason.

        >>> selector = Selector(Pool(["a", "b"]), protocol="full")
        >>> selector.tell_full("start", {"a": 1, "b": 0})
        >>> selector.ask(["new"])[0].tasks
        ('a', 'b')
        >>> [(row.rank, row.candidate, row.kind, row.waiting) for row in selector.standings()]
        [(1, 'start', 'start', 0), (None, 'new', 'candidate', 2)]
        """
        return standings_of(self._state)

    @alone
    def compare(self, a: Id, b: Id) -> Comparison:
        """How much higher `a` scores than `b`, with an interval.

        A joint model has the covariance of the two scores. Otherwise candidates that share a draw
        are compared task by task, and others as independent.

        >>> selector = Selector(Pool(["a", "b", "c", "d"]), protocol="random-resample",
        ...     fraction=0.5)
        >>> for number, assignment in enumerate(selector.ask(["x", "y"])):
        ...     first, second = assignment.tasks
        ...     selector.tell(assignment, {first: 0.5, second: number / 2})
        >>> selector.compare("x", "y").method, selector.compare("x", "y").value
        ('paired', -0.25)
        """
        return compared(self._state, a, b)

    def _planned(
        self, names: list[Id], candidates: Iterable[Id] | None, final: bool
    ) -> list[Line]:
        """The draws of `ask`, which depend on the state alone and not on each other."""
        state = self._state
        among = None if candidates is None else self._known(candidates)
        draws: list[Event] = []
        if names:
            self._check_new(names, among, final)
            if new := [name for name in names if name not in state.batches]:
                draws = [round_event(state, len(state.rounds) + 1, new, again=False)]
        elif failed := state.failed_rounds(among):
            draws = [round_event(state, r.number, list(r.candidates), again=True) for r in failed]
        elif wanted := requests(state, final, among):
            draws = [further_event(state, wanted)]
        lines: list[Line] = []
        before = self._log.seal
        for seq, draw in enumerate(draws, len(self._log)):
            lines.append(sealed(seq, "drawn", draw, before))
            before = lines[-1].event["seal"]
        return lines

    def _open_of(self, candidate: Id) -> list[Assignment]:
        state = self._state
        asked = [progress.assignment for progress in state.batches[candidate]]
        return [a for a in asked if (candidate, a.batch) in state.waiting]

    def _known(self, candidates: Iterable[Id]) -> frozenset[Id]:
        """Names of generated candidates, checked."""
        names = _checked_names(candidates)
        for name in names:
            if name in self._state.starts:
                raise InputError(
                    f"candidate {name!r} is a starting harness, told in full; only candidates "
                    "that were asked about get further assignments."
                )
            if name not in self._state.batches:
                raise UnknownCandidateError(
                    f"candidate {name!r} was not asked about before; use ask([{name!r}])."
                    + nearest(name, self._state.candidates)
                )
        return frozenset(names)

    def _check_new(self, names: list[Id], among: frozenset[Id] | None, final: bool) -> None:
        state = self._state
        if final:
            raise InputError("final=True is for after the last round; it takes no new candidates.")
        if among is not None:
            raise InputError("ask takes new candidates or candidates=, not both.")
        for name in names:
            if name in state.starts:
                raise InputError(
                    f"candidate {name!r} is a starting harness; names of candidates must be new."
                )
        if state.protocol.needs_history and not state.starts:
            if state.table.history().count.any():
                return
            raise PhaseError(
                f"protocol {state.protocol.name!r} draws from the outcomes of the starting "
                "harnesses; call tell_full for one or more of them before the first ask, or "
                "observe for past outcomes."
            )


def _checked_names(given: Iterable[Id] | None) -> list[Id]:
    """The names of new candidates in their order."""
    if given is None:
        return []
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | set | frozenset):
        raise InputError(f"ask needs a list of candidate names, got {given!r}.")
    names = list(all_frozen(given))
    for name in names:
        if not is_id(name):
            raise InputError(f"the name of a candidate must be {KINDS}, got {name!r}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"candidate {twice!r} is named twice in one round.")
    return names
