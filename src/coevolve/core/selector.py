"""The front door: ask which tasks to evaluate, tell what came out, estimate, choose."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from coevolve.core.assignment import Assignment
from coevolve.core.checks import check_names, check_settings
from coevolve.core.choice import Choice, Standing
from coevolve.core.drawing import draw_round
from coevolve.core.estimate import Estimate
from coevolve.core.estimators import Estimator, Hajek
from coevolve.core.events import SCHEMA, Event, Log, sealed, verified
from coevolve.core.history import History
from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol, part_to_json
from coevolve.core.protocols import protocol as find_protocol
from coevolve.core.results import Results, Told, read_results
from coevolve.core.rule import EstimatorRule
from coevolve.core.sample import drawn_samples, whole_samples
from coevolve.core.state import Progress, State
from coevolve.errors import (
    ChangedOutcomeError,
    CoevolveError,
    EventError,
    InputError,
    NoOutcomeError,
    NotAskedError,
    PhaseError,
    UnknownCandidateError,
    nearest,
)


class Selector:
    """Chooses tasks for candidates and estimates their full-set scores from the outcomes.

    Args:
        pool: The tasks.
        fraction: ρ, the share of each pool a round draws; `full` draws everything at any ρ.
            The protocol's own (20%) when left out.
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
        chosen = protocol if isinstance(protocol, SearchProtocol) else find_protocol(protocol)
        if fraction is not None:
            chosen = replace(chosen, allocation=chosen.allocation.at(fraction))
        check_settings(pool, seed, trials, draw_per, confidence)
        seed, trials = int(seed), int(trials)
        opened = {
            "schema": SCHEMA,
            "pool": pool.to_json(),
            "protocol": chosen.to_json(),
            "seed": seed,
            "trials": trials,
            "draw_per": draw_per,
            "confidence": confidence,
        }
        line = sealed(0, "opened", opened, "")
        self._state = State.opened(line.event, chosen, pool)
        self._log = Log()
        self._log.append(line)

    @classmethod
    def from_events(
        cls, events: Iterable[Mapping[str, Any]], *, protocol: SearchProtocol | None = None
    ) -> Self:
        """The selector that made these events, ready to go on as if it had never stopped.

        Args:
            events: What `events` gave, or any part of it from the beginning.
            protocol: Needed only if the protocol has parts that are neither built in nor
                registered.
        """
        selector = cls.__new__(cls)
        selector._log = Log()
        for line in verified(events):
            event = line.event
            try:
                if not len(selector._log):
                    selector._state = State.opened(event, protocol)
                else:
                    selector._state.apply(event)
            except EventError:
                raise
            except (CoevolveError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise EventError(
                    f"event {event['seq']} ({event['type']!r}) does not fit: {error!r}."
                ) from error
            selector._log.append(line)
        if not len(selector._log):
            raise EventError("no events: a selector cannot be restored from nothing.")
        return selector

    def __repr__(self) -> str:
        done = f"{len(self.candidates)} candidates, {self.evaluations} evaluations"
        return f"Selector({self.protocol.name}, {self.pool!r}, {done})"

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, as plain JSON."""
        return self._log.since(0)

    def events_since(self, seq: int) -> tuple[Event, ...]:
        """The events from number `seq` on, for whoever keeps a journal."""
        return self._log.since(seq)

    @property
    def pool(self) -> Pool:
        """The tasks."""
        return self._state.pool

    @property
    def protocol(self) -> SearchProtocol:
        """The protocol in force."""
        return self._state.protocol

    @property
    def starts(self) -> tuple[str, ...]:
        """The starting harnesses, in the order told."""
        return tuple(self._state.starts)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The generated candidates, in the order of proposal."""
        return tuple(name for round in self._state.rounds for name in round.candidates)

    @property
    def evaluations(self) -> int:
        """Number of trials told for assignments; Phase 0 and re-scoring are not counted."""
        return self._state.evaluations

    @property
    def usage(self) -> Usage:
        """What all told trials consumed together."""
        return self._state.usage

    def history(self, first: int = 0, last: int | None = None) -> History:
        """Success rates of the tasks over rounds `first` to `last`, both included.

        Round 0 are the starting harnesses.
        """
        return self._state.table.history(first, last)

    def outstanding(self) -> list[Assignment]:
        """Assignments with trials that have not been told yet."""
        return [p.assignment for p in self._state.progress.values() if not p.complete]

    def tell_full(self, candidate: str, scores: Results) -> None:
        """Record a candidate's scores on every task.

        Before the first `ask` this makes it a starting harness (Phase 0). Later it completes a
        candidate that was asked about, whose score is then exact. Scores recorded before must be
        repeated as they are, for outcomes are never rewritten; for a trial that was missing, a
        score is recorded as one more trial.
        """
        state = self._state
        check_names([candidate])
        if candidate not in state.table and state.rounds:
            raise PhaseError(
                f"candidate {candidate!r} is new, and starting harnesses must be told before the "
                "first ask; use ask(['" + candidate + "']) for it."
            )
        told = read_results(candidate, scores, range(state.trials))
        positions = state.pool.positions(told.tasks)
        if len(told.tasks) < len(state.pool) * state.trials:
            short = np.flatnonzero(
                np.bincount(positions, minlength=len(state.pool)) < state.trials
            )
            raise InputError(
                f"tell_full needs every task of the pool ({state.trials} trials each), but "
                f"{len(short)} of {len(state.pool)} are short, {state.pool.tasks[short[0]]!r} "
                "first; use Missing(reason) for a trial without a score."
            )
        fresh = self._new(candidate, self._renumbered(candidate, told))
        if fresh.tasks or candidate not in state.whole:
            self._happen("told_full", {"candidate": candidate, **fresh.to_json()})

    def ask(self, new: Iterable[str] | None = None) -> list[Assignment]:
        """Open a round for new candidates, or, without any, get what is still wanted.

        Without candidates it returns assignments for rounds in which under half of the outcomes,
        or none of a pool, have a score (such a round is drawn once more), or nothing. Call it
        when a round has been told.
        """
        state = self._state
        new = check_names(new)
        if not new:
            return [a for number in self._failed_rounds() for a in self._draw(number, attempt=1)]
        if known := next((name for name in new if name in state.table), None):
            raise InputError(
                f"candidate {known!r} was already proposed, in round "
                f"{state.table.round_of(known)}; names must be new."
            )
        if state.protocol.needs_history and not state.starts:
            raise PhaseError(
                f"protocol {state.protocol.name!r} draws from the outcomes of the starting "
                "harnesses; call tell_full for one or more of them before the first ask."
            )
        return self._draw(len(state.rounds) + 1, attempt=0, candidates=new)

    def tell(self, assignment: Assignment, results: Results) -> None:
        """Record outcomes of an assignment: all or some of them, in any order.

        Equal repeats change nothing; another score for a recorded outcome is refused, and then
        nothing of the call is recorded.

        Args:
            assignment: What `ask` returned.
            results: Score, `Missing(reason)` or, with several trials, a list of these for each
                task; or `Outcome` records.
        """
        progress = self._progress(assignment)
        told = read_results(assignment.candidate, results, assignment.trials)
        if not progress.asked.issuperset(told.tasks):
            task = next(task for task in told.tasks if task not in progress.asked)
            self._state.pool.position(task)
            raise NotAskedError(
                f"task {task!r} was not asked of candidate {assignment.candidate!r} in round "
                f"{assignment.round}."
            )
        fresh = self._new(assignment.candidate, told)
        if fresh.tasks:
            key = {"candidate": assignment.candidate, "attempt": progress.assignment.attempt}
            self._happen("told", {**key, **fresh.to_json()})

    def estimate(self, candidate: str) -> Estimate:
        """The full-set score of a candidate, from the outcomes told so far."""
        state = self._state
        if not isinstance(candidate, str) or candidate not in state.table:
            raise UnknownCandidateError(
                f"candidate {candidate!r} is not known."
                + nearest(candidate, state.table.candidates)
            )
        notes = ""
        if candidate in state.whole:
            samples = whole_samples(state.pool, *state.table.means(candidate))
            estimator: Estimator = Hajek()
        else:
            standing = state.standing(candidate)
            assignment = standing.assignment
            found = state.table.means(candidate, assignment.trials)
            samples = drawn_samples(assignment.designs, *found)
            estimator, notes = state.decided(), standing.note
        try:
            estimate = estimator.estimate(samples, state.pool.weights, state.confidence)
        except NoOutcomeError as error:
            raise NoOutcomeError(f"candidate {candidate!r}: {error}.") from None
        return replace(estimate, note="; ".join(filter(None, (estimate.note, notes))))

    def best(self) -> Choice:
        """The winner among the candidates that have been told in full, or in part if none has.

        Candidates that cannot stand are named in `left_out`.
        """
        estimated = {name: s for name in self.candidates if (s := self._standing(name))}
        finished = {name: s for name, s in estimated.items() if self._finished(name)}
        generated = finished or estimated
        start = [s for name in self.starts if (s := self._standing(name))]
        choice = self.protocol.choice.choose(list(generated.values()), start)
        left_out = tuple(name for name in self.candidates if name not in generated)
        return replace(choice, left_out=left_out)

    def _finished(self, candidate: str) -> bool:
        return candidate in self._state.whole or self._state.standing(candidate).complete

    def _standing(self, candidate: str) -> Standing | None:
        try:
            estimate = self.estimate(candidate)
        except NoOutcomeError:
            return None
        return Standing(candidate, self._state.table.round_of(candidate), estimate)

    def _decision(self) -> dict[str, Any] | None:
        """What Phase 0 says about the estimator, when it is to be decided."""
        rule = self.protocol.estimator
        if self._state.estimator is not None or not isinstance(rule, EstimatorRule):
            return None
        past = self._state.table.history()
        pools = {name: past.select(self.pool.members(name)) for name in self.pool.names}
        means = {name: float(history.anchors.mean()) for name, history in pools.items()}
        return {"means": means, "estimator": part_to_json(rule.decide(means))}

    def _failed_rounds(self) -> list[int]:
        """Finished rounds, drawn once, with under half of their scores or none of a pool."""
        failed = []
        for round in self._state.rounds:
            parts = [self._state.progress[name, 0] for name in round.candidates]
            asked, scored = sum(len(p.assignment) for p in parts), sum(p.scored for p in parts)
            failing = 2 * scored < asked or any(p.empty_pool for p in parts)
            if round.attempts == 0 and all(p.complete for p in parts) and failing:
                failed.append(round.number)
        return failed

    def _draw(
        self, number: int, *, attempt: int, candidates: list[str] | None = None
    ) -> list[Assignment]:
        state = self._state
        names = candidates or list(state.rounds[number - 1].candidates)
        drawn = {
            "round": number,
            "attempt": attempt,
            "candidates": names,
            "decision": self._decision(),
            "draws": draw_round(state, number, attempt, len(names)),
        }
        self._happen("drawn", drawn)
        return [state.progress[name, attempt].assignment for name in names]

    def _progress(self, assignment: Assignment) -> Progress:
        if not isinstance(assignment, Assignment):
            raise InputError(f"tell needs an assignment from ask, got {assignment!r}.")
        known = self._state.progress.get((assignment.candidate, assignment.attempt))
        same = known is not None and (
            known.assignment is assignment or known.assignment.tasks == assignment.tasks
        )
        if known is None or not same:
            raise NotAskedError(
                f"the assignment of candidate {assignment.candidate!r} (round {assignment.round}, "
                f"attempt {assignment.attempt}) is not from this selector."
            )
        return known

    def _new(self, candidate: str, told: Told) -> Told:
        """What is new in `told`; refuses what contradicts the record."""
        state = self._state
        if not isinstance(candidate, str) or candidate not in state.table:
            return told
        positions, trials = state.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
        known, scores = state.table.find(candidate, positions, trials)
        for at in np.flatnonzero(known).tolist():
            key = candidate, int(positions[at]), told.trials[at]
            before: object = state.reasons.get(key, float(scores[at]))
            now = told.missing.get(str(at), told.scores[at])
            if before != now:
                raise ChangedOutcomeError(
                    f"task {told.tasks[at]!r}, trial {told.trials[at]}, of candidate "
                    f"{candidate!r} is recorded as {before!r} and was told as {now!r}; outcomes "
                    "are never rewritten."
                )
        return told.without(known)

    def _renumbered(self, candidate: str, told: Told) -> Told:
        """With scores for trials recorded as missing moved to trial numbers of their own.

        The first two times r numbers belong to the two attempts of a round.
        """
        state = self._state
        for at, (task, score) in enumerate(zip(told.tasks, told.scores, strict=True)):
            position = state.pool.position(task)
            if score is None or (candidate, position, told.trials[at]) not in state.reasons:
                continue
            told.trials[at] += 2 * state.trials
            while state.recorded(candidate, position, told.trials[at]) not in (None, score):
                told.trials[at] += state.trials
        return told

    def _happen(self, kind: str, body: Mapping[str, Any]) -> None:
        line = sealed(len(self._log), kind, body, self._log.seal)
        self._state.apply(line.event)
        self._log.append(line)
