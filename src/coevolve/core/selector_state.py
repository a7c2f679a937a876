"""The state of a selector: a fold over its events."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coevolve.core.allocation import Adaptive
from coevolve.core.assignment import Assignment, Design
from coevolve.core.blas_threads import one_blas_thread
from coevolve.core.estimators import Estimate, Estimator, EstimatorRule
from coevolve.core.events import SCHEMA, Event
from coevolve.core.evidence import Asked, Evidence, Progress
from coevolve.core.identifiers import Id, all_frozen, frozen
from coevolve.core.missingness import Cell, Losses
from coevolve.core.outcome_table import OutcomeTable, all_cells
from coevolve.core.outcomes import MOST_TRIALS, Told, Usage, is_whole
from coevolve.core.pool import Pool
from coevolve.core.posterior import JointModel, Posterior, checked
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
    if trials > MOST_TRIALS:
        raise InputError(f"trials must be at most {MOST_TRIALS:,}, got {trials!r}.")
    if draw_per not in ("round", "candidate"):
        raise InputError(f"draw_per must be 'round' or 'candidate', got {draw_per!r}.")
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence!r}.")


@dataclass(frozen=True, slots=True)
class Round:
    """One round and its candidates."""

    number: int
    candidates: tuple[Id, ...]


_REFIT = 8
"""Rounds between the fits that later fits start from, if draws do not depend on the model."""


@dataclass(slots=True, kw_only=True)
class State:
    """The state of a selector; only `apply` changes it.

    `whole` has the candidates told in full, with the tasks at that time, `others` those with
    nothing but observed outcomes, `batches` has the assignments of each, `waiting`
    those not told yet, `reasons` why outcomes are missing, `losses` those of them that others did
    not lose, `withdrawn` why candidates are not asked about any more. `past` has the history of
    every pool before the draw of each candidate, for adaptive protocols. `fitted` is the fit that
    the next one starts from, and `fresh` the present one, if it is known. `estimates` are those
    that were computed since an event last changed them, `checks` the design-based ones beside
    those of a joint model, and `used` the evidence for both; a changed copy has none.
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
    starts: list[Id] = field(default_factory=list)
    whole: dict[Id, Pool] = field(default_factory=dict)
    others: list[Id] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    past: dict[Id, list[Past]] = field(default_factory=dict)
    batches: dict[Id, list[Progress]] = field(default_factory=dict)
    waiting: dict[tuple[Id, int], Progress] = field(default_factory=dict)
    unsettled: dict[int, Round] = field(default_factory=dict)
    withdrawn: dict[Id, str] = field(default_factory=dict)
    reasons: dict[tuple[Id, int, int], str] = field(default_factory=dict)
    fitted: Posterior | None = None
    fresh: Posterior | None = None
    estimates: dict[Id, Estimate] = field(default_factory=dict, init=False)
    checks: dict[Id, Estimate | None] = field(default_factory=dict, init=False)
    used: dict[Id, Evidence] = field(default_factory=dict, init=False)
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
            asked=Asked(),
            losses=Losses(seed=event["seed"]),
            estimator=None if isinstance(rule.estimator, EstimatorRule) else rule.estimator,
        )

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        handlers: dict[str, Callable[[Event], None]] = {
            "told_full": self._told_full,
            "drawn": self._drawn,
            "told": self._told,
            "withdrawn": self._withdrawn,
            "observed": self._observed,
            "grown": self._grown,
        }
        if event["type"] not in handlers:
            raise EventError("its type is unknown.")
        self._forget_estimates(event)
        handlers[event["type"]](event)

    def _forget_estimates(self, event: Event) -> None:
        """Forget the estimates that an event may change.

        A design-based estimate follows from the outcomes of its candidate, and from what the
        others of its round and the starting harnesses have lost. A joint model learns from all
        outcomes.
        """
        names = event.get("candidates", [event.get("candidate")])
        known = [name for name in all_frozen(names) if name in self.table]
        if event["type"] == "grown" or any(name in self.starts for name in known):
            self.estimates.clear()
            self.checks.clear()
            self.used.clear()
            return
        if self.estimator is None or isinstance(self.estimator, JointModel):
            self.estimates.clear()
        for name in known:
            number = self.table.round_of(name)
            together = self.rounds[number - 1].candidates if 0 < number <= len(self.rounds) else ()
            for one in (name, *together):
                self.estimates.pop(one, None)
                self.checks.pop(one, None)
                self.used.pop(one, None)

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
            cells = all_cells(self.table, self.pool, failed)
            rounds = zip(self.table.candidates, cells.rounds, strict=True)
            observed = set(self.others)  # no starting harnesses, even before the first round
            cells = replace(
                cells, rounds=tuple(max(n, 1) if c in observed else n for c, n in rounds)
            )
            with one_blas_thread():
                found = model.fit(cells, self.fitted)
            self.fresh = checked(found, len(self.table.candidates), len(self.pool), model)
        return self.fresh

    def under(self, estimator: Estimator | JointModel) -> "State":
        """The same draws and outcomes, with the estimates of another estimator."""
        return replace(self, estimator=estimator, fitted=None, fresh=None)

    @property
    def candidates(self) -> tuple[Id, ...]:
        """The generated candidates, in the order of proposal."""
        return tuple(name for round in self.rounds for name in round.candidates)

    def recorded(self, candidate: Id, position: int, trial: int) -> float | None:
        """The score of one trial (NaN if it is missing), if there is an outcome."""
        known, scores = self.table.find(candidate, np.array([position]), np.array([trial]))
        return float(scores[0]) if known[0] else None

    def decided(self) -> Estimator | JointModel:
        """The estimator, which is decided when the first round is drawn."""
        if self.estimator is None:
            raise EventError("no estimator was decided before the first round.")
        return self.estimator

    def failed_rounds(self, among: Collection[Id] | None = None) -> list[Round]:
        """Rounds, drawn once and told, with the candidates that lost too much of their draw."""
        found = [
            Round(r.number, tuple(n for n in self._thin(r) or () if among is None or n in among))
            for r in self.unsettled.values()
        ]
        return [round for round in found if round.candidates]

    def failed(self, candidate: Id) -> Sequence[Cell]:
        """The missing outcomes of a candidate that count as failed; none of a starting harness."""
        if candidate not in self.losses.lost or candidate in self.starts:
            return ()
        together = self.rounds[self.table.round_of(candidate) - 1].candidates
        others = [n for n in together if n != candidate and n not in self.withdrawn]
        rate = self.losses.base_rate(self.starts, others)
        return self.losses.failures(candidate, rate)

    def _thin(self, round: Round) -> tuple[Id, ...] | None:
        """The candidates whose first draw has under half of its outcomes, or none of a pool.

        None if not all are told. Missing outcomes that count as failed are outcomes.
        """
        first = {name: self.batches[name][0] for name in round.candidates}
        if not all(progress.complete for progress in first.values()):
            return None
        return tuple(
            name
            for name, progress in first.items()
            if name not in self.withdrawn and self._is_thin(name, progress)
        )

    def _is_thin(self, name: Id, progress: Progress) -> bool:
        failed = self.failed(name)
        few = 2 * progress.answered(failed) < len(progress.assignment)
        return few or progress.empty_pool(self.table, failed)

    def now(self) -> list[Past]:
        """The present history of every pool, for a draw."""
        history = self.table.history()
        return [Past.of(history.select(self.pool.members(name))) for name in self.pool.names]

    def evidence(self, candidate: Id) -> Evidence:
        """The assignments that the estimate of a candidate uses."""
        found = self.used.get(candidate)
        if found is None:
            found = Evidence.of(self.batches[candidate], self.failed(candidate))
            self.used[candidate] = found
        return found

    def _told_full(self, event: Event) -> None:
        candidate, told = frozen(event["candidate"]), Told.from_json(event)
        if candidate not in self.starts and candidate not in self.batches:
            self._enter(candidate, round=0)
            self.starts.append(candidate)
        self._record(candidate, told)
        self.whole[candidate] = self.pool
        self.asked.everything(candidate, self.pool)
        for progress in self.batches.get(candidate, ()):
            progress.recount(self.table)
            self._count(progress)

    def _decide(self, decision: dict[str, Any]) -> None:
        rule = self.protocol.estimator
        decided = rule.decide(decision["means"]) if isinstance(rule, EstimatorRule) else rule
        same = part_to_json(decided) == decision["estimator"]
        self.estimator = decided if same else part_from_json(decision["estimator"])

    def _drawn(self, event: Event) -> None:
        number, kind = event["round"], event["kind"]
        candidates = tuple(all_frozen(event["candidates"]))
        pools = [self.pool] * len(candidates)
        if kind == "further":  # from the tasks that the draw before was made from
            pools = [self.batches[candidate][-1].pool for candidate in candidates]
        draws = [
            tuple(Design.from_json(design, pool) for design in draw)
            for draw, pool in zip(event["draws"], pools, strict=False)
        ]
        if event["decision"] is not None:
            self._decide(event["decision"])
        if isinstance(self.estimator, JointModel) and self._refits(number, kind):
            self.fitted = self.posterior()
        if kind == "first":
            self._open(number, candidates)
        elif kind == "again":
            self._settle(number, candidates)
            self._remember(candidates)
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
            batches.append(Progress(assignment, pools[index], asked[which]))
            self.waiting[candidate, assignment.batch] = batches[-1]
            self.asked.add(candidate, draws[which], pools[index], anew=kind != "further")

    def _refits(self, round: int, kind: str) -> bool:
        """Whether later fits start from the present one: always if draws depend on the model."""
        return self.protocol.draws_by_model or (kind == "first" and round % _REFIT == 1)

    def _open(self, number: int, candidates: tuple[Id, ...]) -> None:
        if number != len(self.rounds) + 1:
            raise EventError(f"round {number} cannot follow round {len(self.rounds)}.")
        self.rounds.append(Round(number, candidates))
        self.unsettled[number] = self.rounds[-1]
        self.fresh = None
        self._remember(candidates)
        for candidate in candidates:
            self._enter(candidate, round=number)

    def _enter(self, candidate: Id, *, round: int) -> None:
        """Add a candidate to the table, where it may be already if it was observed."""
        if candidate in self.others:
            self.others.remove(candidate)
            self.table.move(candidate, round=round)
        else:
            self.table.open(candidate, round=round)

    def _settle(self, number: int, candidates: tuple[Id, ...]) -> None:
        """Candidates of a round get their second draw; others that need one may follow."""
        round = self.unsettled.pop(number, None)
        rest = [n for n in self._thin(round) or () if n not in candidates] if round else []
        if rest:
            self.unsettled[number] = Round(number, tuple(rest))

    def _remember(self, candidates: tuple[Id, ...]) -> None:
        """Keep the history before a draw, for further draws of these candidates."""
        if isinstance(self.protocol.allocation, Adaptive):
            self.past |= dict.fromkeys(candidates, self.now())

    def _told(self, event: Event) -> None:
        told = Told.from_json(event)
        if event["batch"] < 0:
            raise EventError(f"there is no batch {event['batch']}.")
        candidate = frozen(event["candidate"])
        progress = self.batches[candidate][event["batch"]]
        if not progress.asked.issuperset(told.tasks):
            raise EventError("it has tasks that were not asked for.")
        if not set(told.trials) <= set(progress.assignment.trials):
            raise EventError("it has trials that were not asked for.")
        self._record(candidate, told)
        progress.told += len(told.tasks)
        progress.scored += len(told.tasks) - len(told.missing)
        self._count(progress)
        self.evaluations += len(told.tasks)

    def _withdrawn(self, event: Event) -> None:
        candidate, reason = frozen(event["candidate"]), str(event["reason"])
        if event["batch"] < 0:
            raise EventError(f"there is no batch {event['batch']}.")
        progress = self.batches[candidate][event["batch"]]
        cells = progress.untold(self.table)
        lost = [str(at) for at in range(len(cells))]
        self._record(
            candidate,
            Told(
                tasks=[self.pool.tasks[task] for task, _ in cells],
                trials=[trial for _, trial in cells],
                scores=[None] * len(cells),
                missing=dict.fromkeys(lost, reason),
                usage={},
                traces={},
                unexplained=[] if event["shared"] else lost,
            ),
        )
        by_task = Counter(task for task, _ in cells)
        trials = len(progress.assignment.trials)
        self.asked.total -= sum(number == trials for number in by_task.values())
        progress.told, progress.withdrawn = len(progress.assignment), reason
        self.withdrawn[candidate] = reason
        self._count(progress)

    def _observed(self, event: Event) -> None:
        candidate = frozen(event["candidate"])
        positions = self.pool.positions(event["tasks"])
        trials = np.array(event["trials"], dtype=np.int64)
        scores = self.pool.to_unit(np.array(event["scores"], dtype=np.float64))
        if candidate not in self.table:
            self.table.open(candidate, round=len(self.rounds))
            self.others.append(candidate)
        elif self.table.find(candidate, positions, trials, observed=True)[0].any():
            raise EventError("it has outcomes that are already recorded.")
        self.table.add(candidate, positions, trials, scores, observed=True)
        self.fresh = None

    def _grown(self, event: Event) -> None:
        new = {name: event[name] for name in ("pools", "weights", "costs")}
        self.pool = self.pool.grown(event["tasks"], **new)
        self.table.grow(len(self.pool))
        self.fresh = None

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

    def _record(self, candidate: Id, told: Told) -> None:
        positions, trials = self.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
        if self.table.find(candidate, positions, trials)[0].any():
            raise EventError("it has outcomes that are already recorded.")
        self.table.add(candidate, positions, trials, self.pool.to_unit(told.values()))
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
