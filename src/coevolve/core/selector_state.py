"""The state of a selector: a fold over its events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coevolve.core.allocation import Adaptive
from coevolve.core.arrays import Bools
from coevolve.core.assignment import Assignment, Design, Sample, drawn_samples
from coevolve.core.estimators import Estimator, EstimatorRule
from coevolve.core.events import SCHEMA, Event
from coevolve.core.missingness import Cell, Losses
from coevolve.core.outcome_table import OutcomeTable, all_cells
from coevolve.core.outcomes import Told, Usage, is_whole
from coevolve.core.pool import Pool
from coevolve.core.posterior import JointModel, Posterior, check_posterior
from coevolve.core.protocols import (
    SearchProtocol,
    part_from_json,
    part_to_json,
    protocol_from_json,
)
from coevolve.core.variance import Past
from coevolve.errors import EventError, InputError


def check_settings(pool: Pool, seed: int, trials: int, draw_per: str, confidence: float) -> None:
    """Refuse invalid settings of a selector."""
    if not isinstance(pool, Pool):
        raise InputError(f"pool must be a Pool, got {type(pool).__name__}; try Pool(tasks).")
    for name, value, least in (("seed", seed, 0), ("trials", trials, 1)):
        if not is_whole(value, least=least):
            raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if draw_per not in ("round", "candidate"):
        raise InputError(f"draw_per must be 'round' or 'candidate', got {draw_per!r}.")
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence!r}.")


@dataclass(slots=True)
class Asked:
    """The tasks that every candidate was asked about, and how many of each pool are left.

    `total` counts the tasks of all draws.

    >>> asked = Asked(Pool(["a", "b", "c"]))
    >>> asked.everything("start")
    >>> asked.left["start"], asked.count("start"), asked.total
    ([0], 3, 0)
    """

    pool: Pool
    masks: dict[str, Bools] = field(default_factory=dict)
    left: dict[str, list[int]] = field(default_factory=dict)
    total: int = 0

    def add(self, candidate: str, designs: Sequence[Design], *, anew: bool) -> None:
        """Count a draw; a round that is drawn again starts `anew`."""
        if anew:
            self.masks[candidate] = np.zeros(len(self.pool), dtype=np.bool_)
        mask = self.masks[candidate]
        for design in designs:
            mask[design.positions] = True
            self.total += len(design.positions)
        pools = map(self.pool.members, self.pool.names)
        self.left[candidate] = [int(np.count_nonzero(~mask[members])) for members in pools]

    def everything(self, candidate: str) -> None:
        """Count a candidate that is evaluated on every task, without a draw."""
        self.masks[candidate] = np.ones(len(self.pool), dtype=np.bool_)
        self.left[candidate] = [0] * len(self.pool.names)

    def count(self, candidate: str) -> int:
        """Number of tasks a candidate was asked about."""
        return int(np.count_nonzero(self.masks[candidate]))


@dataclass(slots=True)
class Progress:
    """How many trials of an assignment were told, and how many of these have a score.

    `scored` counts the scores alone, `answered` also the missing outcomes that count as failed.
    """

    assignment: Assignment
    asked: frozenset[str]
    told: int = 0
    scored: int = 0

    @property
    def complete(self) -> bool:
        return self.told == len(self.assignment)

    def recount(self, table: OutcomeTable, pool: Pool) -> None:
        """Count again, after outcomes were told for the whole pool."""
        tasks = pool.positions(self.assignment.tasks)
        self.told = self.scored = 0
        for trial in self.assignment.trials:
            known, scores = table.find(
                self.assignment.candidate, tasks, np.full(len(tasks), trial, dtype=np.int64)
            )
            self.told += int(known.sum())
            self.scored += int((~np.isnan(scores)).sum())

    def answered(self, failed: Sequence[Cell]) -> int:
        """The outcomes with a score, and those of `failed` among the missing ones."""
        if not failed:
            return self.scored
        drawn = np.concatenate([design.positions for design in self.assignment.designs])
        asked = set(drawn.tolist())
        trials = self.assignment.trials
        return self.scored + sum(task in asked and trial in trials for task, trial in failed)

    def empty_pool(self, table: OutcomeTable, failed: Sequence[Cell]) -> bool:
        """Whether it has no outcome that counts in some pool."""
        if self.scored == self.told:
            return False
        samples = Evidence((self,), failed=failed).samples(table)
        return any(not len(sample.scores) for sample in samples)


@dataclass(frozen=True, slots=True)
class Round:
    """One round and its candidates."""

    number: int
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The assignments that an estimate uses: one draw and its further batches.

    `coming` counts the trials of further batches that are not told in full yet. `failed` are the
    missing outcomes that count as 0.
    """

    batches: tuple[Progress, ...]
    coming: int = 0
    failed: Sequence[Cell] = ()

    @classmethod
    def of(cls, batches: Sequence[Progress], failed: Sequence[Cell]) -> "Evidence":
        """The evidence for a candidate with these assignments.

        A round that is drawn again has other trial numbers and starts anew. It counts once it is
        complete, unless it has fewer outcomes that count than the draw before. Batches that are
        still open count only if nothing is complete.
        """
        draws: dict[tuple[int, ...], list[Progress]] = {}
        for progress in batches:
            draws.setdefault(progress.assignment.trials, []).append(progress)
        found = [
            cls(
                tuple(progress for progress in draw if progress.complete),
                coming=sum(len(p.assignment) for p in draw if not p.complete),
                failed=failed,
            )
            for draw in draws.values()
            if draw[0].complete
        ]
        latest_first = reversed(found)  # of equals, the latest counts
        only = cls((batches[0],), failed=failed)
        return max(latest_first, key=lambda one: one.answered, default=only)

    @property
    def complete(self) -> bool:
        return all(progress.complete for progress in self.batches)

    @property
    def answered(self) -> int:
        return sum(progress.answered(self.failed) for progress in self.batches)

    @property
    def note(self) -> str:
        """What is still missing, if anything."""
        asked = sum(len(progress.assignment) for progress in self.batches)
        told = sum(progress.told for progress in self.batches)
        notes = [failures_note(self.failed)]
        if told < asked:
            notes.append(f"{asked - told} of {asked} trials are not told yet")
        elif 2 * self.answered < told:
            notes.append("under half of the trials have a score")
        elif self.coming:
            notes.append(f"{self.coming} more trials are asked for and not told yet")
        return "; ".join(filter(None, notes))

    def samples(self, table: OutcomeTable) -> list[Sample]:
        """One sample per pool."""
        first = self.batches[0].assignment
        designs = [progress.assignment.designs for progress in self.batches]
        means = table.means(first.candidate, first.trials, self.failed)
        return drawn_samples(designs, *means)


def failures_note(failed: Sequence[Cell]) -> str:
    """What an estimate says of missing outcomes that count as failed."""
    if not failed:
        return ""
    what = "trial without a score counts" if len(failed) == 1 else "trials without a score count"
    return f"{len(failed)} {what} as failed, because other candidates lost fewer"


_REFIT = 8
"""Rounds between the fits that later fits start from, if draws do not depend on the model."""


@dataclass(slots=True, kw_only=True)
class State:
    """The state of a selector; only `apply` changes it.

    `whole` names the candidates told in full, `batches` has the assignments of each, `waiting`
    those not told yet, `reasons` why outcomes are missing, `losses` those of them that others did
    not lose. `past` has the history of every pool
    before each round, for adaptive protocols. `fitted` is the fit that the next one starts from,
    and `fresh` the present one, if it is known.
    """

    pool: Pool
    protocol: SearchProtocol
    seed: int
    trials: int
    draw_per: str
    confidence: float
    table: OutcomeTable
    asked: Asked
    losses: Losses
    estimator: Estimator | JointModel | None = None
    starts: list[str] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    rounds: list[Round] = field(default_factory=list)
    past: list[list[Past]] = field(default_factory=list)
    batches: dict[str, list[Progress]] = field(default_factory=dict)
    waiting: dict[tuple[str, int], Progress] = field(default_factory=dict)
    unsettled: dict[int, Round] = field(default_factory=dict)
    reasons: dict[tuple[str, int, int], str] = field(default_factory=dict)
    fitted: Posterior | None = None
    fresh: Posterior | None = None
    evaluations: int = 0
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def opened(
        cls, event: Event, protocol: SearchProtocol | None = None, pool: Pool | None = None
    ) -> "State":
        """The state after the first event, which must be "opened"."""
        if event["type"] != "opened":
            raise EventError(f"the first event must be 'opened', got {event['type']!r}.")
        if event["schema"] != SCHEMA:
            raise EventError(
                f"the events have schema {event['schema']!r}; this version reads schema {SCHEMA}."
            )
        pool = pool or Pool.from_json(event["pool"])
        check_settings(
            pool, event["seed"], event["trials"], event["draw_per"], event["confidence"]
        )
        rule = protocol_from_json(event["protocol"], protocol)
        return cls(
            pool=pool,
            protocol=rule,
            seed=event["seed"],
            trials=event["trials"],
            draw_per=event["draw_per"],
            confidence=event["confidence"],
            table=OutcomeTable(len(pool)),
            asked=Asked(pool),
            losses=Losses(seed=event["seed"]),
            estimator=None if isinstance(rule.estimator, EstimatorRule) else rule.estimator,
        )

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        handlers: dict[str, Callable[[Event], None]] = {
            "told_full": self._told_full,
            "drawn": self._drawn,
            "told": self._told,
        }
        if event["type"] not in handlers:
            raise EventError("its type is unknown.")
        handlers[event["type"]](event)

    def posterior(self) -> Posterior:
        """The joint model, fitted to all outcomes; candidates are in the order of the table.

        A fit starts from that of the last draw. It depends on the events alone, not on how often
        it was read in between.
        """
        if self.fresh is None:
            model = self.decided()
            if not isinstance(model, JointModel):
                raise EventError(f"{model!r} is not a joint model.")
            failed = {name: self.failed(name) for name in self.losses.lost}
            self.fresh = model.fit(all_cells(self.table, self.pool, failed), self.fitted)
            check_posterior(self.fresh, len(self.table.candidates), len(self.pool), model)
        return self.fresh

    @property
    def candidates(self) -> tuple[str, ...]:
        """The generated candidates, in the order of proposal."""
        return tuple(name for round in self.rounds for name in round.candidates)

    def recorded(self, candidate: str, position: int, trial: int) -> float | None:
        """The score of one trial (NaN if it is missing), if there is an outcome."""
        known, scores = self.table.find(candidate, np.array([position]), np.array([trial]))
        return float(scores[0]) if known[0] else None

    def decided(self) -> Estimator | JointModel:
        """The estimator, which is decided when the first round is drawn."""
        if self.estimator is None:
            raise EventError("no estimator was decided before the first round.")
        return self.estimator

    def failed_rounds(self) -> list[Round]:
        """Rounds, drawn once and told, with the candidates that lost too much of their draw."""
        found = [Round(r.number, self._thin(r) or ()) for r in self.unsettled.values()]
        return [round for round in found if round.candidates]

    def failed(self, candidate: str) -> Sequence[Cell]:
        """The missing outcomes of a candidate that count as failed; none of a starting harness."""
        if candidate not in self.losses.lost or candidate in self.starts:
            return ()
        together = self.rounds[self.table.round_of(candidate) - 1].candidates
        rate = self.losses.base_rate(self.starts, [n for n in together if n != candidate])
        return self.losses.failures(candidate, rate)

    def _thin(self, round: Round) -> tuple[str, ...] | None:
        """The candidates whose first draw has under half of its outcomes, or none of a pool.

        None if not all are told. Missing outcomes that count as failed are outcomes.
        """
        first = {name: self.batches[name][0] for name in round.candidates}
        if not all(progress.complete for progress in first.values()):
            return None
        return tuple(
            name
            for name, progress in first.items()
            if 2 * progress.answered(self.failed(name)) < len(progress.assignment)
            or progress.empty_pool(self.table, self.failed(name))
        )

    def now(self) -> list[Past]:
        """The present history of every pool, for a draw."""
        history = self.table.history()
        return [Past.of(history.select(self.pool.members(name))) for name in self.pool.names]

    def evidence(self, candidate: str) -> Evidence:
        """The assignments that the estimate of a candidate uses."""
        return Evidence.of(self.batches[candidate], self.failed(candidate))

    def _told_full(self, event: Event) -> None:
        candidate, told = event["candidate"], Told.from_json(event)
        if candidate not in self.table:
            self.table.open(candidate, round=0)
            self.starts.append(candidate)
        self._record(candidate, told)
        self.whole.add(candidate)
        self.asked.everything(candidate)
        for progress in self.batches.get(candidate, ()):
            progress.recount(self.table, self.pool)
            self._count(progress)

    def _decide(self, decision: dict[str, Any]) -> None:
        rule = self.protocol.estimator
        decided = rule.decide(decision["means"]) if isinstance(rule, EstimatorRule) else rule
        same = part_to_json(decided) == decision["estimator"]
        self.estimator = decided if same else part_from_json(decision["estimator"])

    def _drawn(self, event: Event) -> None:
        number, kind = event["round"], event["kind"]
        candidates = tuple(event["candidates"])
        draws = [tuple(Design.from_json(d, self.pool) for d in draw) for draw in event["draws"]]
        if event["decision"] is not None:
            self._decide(event["decision"])
        if isinstance(self.estimator, JointModel) and self._refits(number, kind):
            self.fitted = self.posterior()
        if kind == "first":
            self._open(number, candidates)
        elif kind == "again":
            self.unsettled.pop(number, None)
            if self.past:
                self.past[number - 1] = self.now()
        elif kind != "further":
            raise EventError(f"its kind {kind!r} is unknown.")
        tasks = [tuple(task for design in draw for task in design.tasks) for draw in draws]
        asked = [frozenset(drawn) for drawn in tasks]
        for index, candidate in enumerate(candidates):
            which = index if len(draws) > 1 else 0
            batches = self.batches.setdefault(candidate, [])
            trials = _trials(kind, batches, self.trials)
            assignment = Assignment(
                candidate=candidate,
                round=number,
                batch=len(batches),
                tasks=tasks[which],
                trials=trials,
                designs=draws[which],
            )
            batches.append(Progress(assignment, asked[which]))
            self.waiting[candidate, assignment.batch] = batches[-1]
            self.asked.add(candidate, draws[which], anew=kind != "further")

    def _refits(self, round: int, kind: str) -> bool:
        """Whether later fits start from the present one: always if draws depend on the model."""
        return self.protocol.draws_by_model or (kind == "first" and round % _REFIT == 1)

    def _open(self, number: int, candidates: tuple[str, ...]) -> None:
        if number != len(self.rounds) + 1:
            raise EventError(f"round {number} cannot follow round {len(self.rounds)}.")
        self.rounds.append(Round(number, candidates))
        self.unsettled[number] = self.rounds[-1]
        self.fresh = None
        if isinstance(self.protocol.allocation, Adaptive):
            self.past.append(self.now())
        for candidate in candidates:
            self.table.open(candidate, round=number)

    def _told(self, event: Event) -> None:
        told = Told.from_json(event)
        if event["batch"] < 0:
            raise EventError(f"there is no batch {event['batch']}.")
        progress = self.batches[event["candidate"]][event["batch"]]
        if not progress.asked.issuperset(told.tasks):
            raise EventError("it has tasks that were not asked for.")
        if not set(told.trials) <= set(progress.assignment.trials):
            raise EventError("it has trials that were not asked for.")
        self._record(event["candidate"], told)
        progress.told += len(told.tasks)
        progress.scored += len(told.tasks) - len(told.missing)
        self._count(progress)
        self.evaluations += len(told.tasks)

    def _count(self, progress: Progress) -> None:
        """Update which assignments and rounds are still open."""
        key = progress.assignment.candidate, progress.assignment.batch
        if not progress.complete and key[0] not in self.whole:
            self.waiting[key] = progress
            return
        self.waiting.pop(key, None)
        number = self.table.round_of(progress.assignment.candidate)
        if progress.assignment.batch == 0 and self._thin(self.rounds[number - 1]) == ():
            self.unsettled.pop(number, None)

    def _record(self, candidate: str, told: Told) -> None:
        positions, trials = self.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
        if self.table.find(candidate, positions, trials)[0].any():
            raise EventError("it has outcomes that are already recorded.")
        self.table.add(candidate, positions, trials, told.values())
        self.fresh = None
        for at, reason in told.missing.items():
            key = candidate, int(positions[int(at)]), told.trials[int(at)]
            self.reasons[key] = reason
        lost = told.unexplained
        cells = [(int(positions[int(at)]), told.trials[int(at)]) for at in lost]
        self.losses.add(candidate, told=len(told.tasks), lost=cells)
        self.usage += told.total_usage()


def _trials(kind: str, batches: list[Progress], trials: int) -> tuple[int, ...]:
    """Trial numbers: new ones for a round drawn again, those of the draw for further tasks."""
    if kind == "further":
        return batches[-1].assignment.trials
    first = trials if kind == "again" else 0
    return tuple(range(first, first + trials))
