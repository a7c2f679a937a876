"""The report of a run: its phase, its candidates, and what it has spent."""

from dataclasses import asdict, dataclass
from typing import Any

from coevolve.core.selector import Selector
from coevolve.errors import NoOutcomeError
from coevolve.formatting import score
from coevolve.search.attempts import closing_trials
from coevolve.search.benchmark_version import mixture
from coevolve.search.budget import Ledger
from coevolve.search.past_outcomes import Import
from coevolve.search.run_state import CandidateState, RunState, Status, broken, unready
from coevolve.search.wave import Tally
from coevolve.views.spend import Spend, spend_of

_ROUNDING = 1e-12
"""Scores closer than this are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """A candidate in a report; `estimate`, `full` and `test` are None while unknown.

    `full` is the score on every validation task, `test` the score on the sealed test. `done` of
    the `asked` trials in the present wave are recorded. `address` is the address of its files.
    `leaks` are the places where it mentions tasks it must not know.
    """

    name: str
    address: str
    round: int
    start: bool
    status: str
    reason: str
    parents: tuple[str, ...]
    hypothesis: str
    kind: str
    components: tuple[str, ...]
    leaks: tuple[str, ...]
    estimate: dict[str, Any] | None
    full: float | None
    test: float | None
    zeros: int
    missing: int
    done: int
    asked: int

    @property
    def true_score(self) -> float | None:
        """The score on every validation task; a starting harness has it from Phase 0."""
        if self.full is None and self.start and self.estimate is not None:
            exact = self.estimate["tasks"] == self.estimate["pool_size"]
            return float(self.estimate["value"]) if exact else None
        return self.full

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


NOT_STARTED = "not started"
"""The phase of a run that was created, for example by an import, and never worked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run as displays show it.

    `phase` is "not started", "preparing", "phase 0", "searching", "final", "rescoring", "test" or
    "ended", or "evaluation" if it is not a run.
    `doing` says what is under way, and `why` how the run ended or why it stopped. `left` is the
    expected number of seconds to the end, if it is known. `done` of the `asked` trials in the
    present wave are recorded, and `under_way` run now. `warning` says that a starting harness is
    ahead of the best candidate, or has won; it is empty otherwise. `mixed` says which versions of
    the benchmark the scores mix; it is empty if there is one. `imports` are the imports of past
    results. `requested` is what evaluations on request have spent, which is not part of `spend`.
    `tested` names the generated candidates that the sealed test was used for.
    """

    name: str
    phase: str
    doing: str
    why: str
    stopped: bool
    round: int
    rounds: int
    done: int
    asked: int
    under_way: int
    tasks: int
    trials: int
    protocol: str
    best: str | None
    chosen: dict[str, Any] | None
    warning: str
    candidates: tuple[CandidateRow, ...]
    spend: Spend
    failures: dict[str, int]
    missing: int
    thin_rounds: tuple[int, ...]
    notes: dict[int, str]
    mixed: str
    imports: tuple[Import, ...]
    seconds: float
    left: float | None
    events: int
    requested: dict[str, float]
    tested: tuple[str, ...]

    @property
    def sealed_warning(self) -> str:
        """What readers of the sealed test must know; empty if one candidate ran it at most."""
        return sealed_warning(len(self.tested))

    @property
    def zeros(self) -> int:
        """Trials that scored 0 because of a fault."""
        return sum(row.zeros for row in self.candidates)

    def candidate(self, name: str) -> CandidateRow:
        """The row of one candidate."""
        return next(row for row in self.candidates if row.name == name)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; what was spent is on the same level as the rest."""
        found = asdict(self)
        spend: dict[str, Any] = found.pop("spend")
        return found | spend


def report(state: RunState, *, clock: float | None = None, under_way: int = 0) -> Report:
    """The report of a run after `clock` seconds."""
    seconds = state.clock if clock is None else max(clock, state.clock)
    tally = state.tally
    wave = state.wave
    why = (state.ended or state.stopped or {"why": ""})["why"]
    current = state.current_round
    waves = _waves(state)
    return Report(
        name=state.name,
        phase=phase(state),
        doing=doing(state),
        why=why,
        stopped=state.stopped is not None and state.ended is None,
        round=len(state.rounds) if current is None or state.rolling else current.number,
        rounds=state.settings.rounds,
        done=0 if wave is None else wave.recorded,
        asked=0 if wave is None else wave.size,
        under_way=under_way,
        tasks=len(state.selector.pool),
        trials=state.trials,
        protocol=state.selector.protocol.name,
        best=best(state),
        chosen=state.chosen,
        warning=start_ahead(state),
        candidates=tuple(_row(state, entry, waves, tally) for entry in state.candidates.values()),
        spend=spend_of(state, seconds),
        failures=tally.failures,
        missing=sum(tally.missing.values()),
        thin_rounds=tuple(one.number for one in state.rounds if one.thin),
        notes={one.number: one.note for one in state.rounds if one.note},
        mixed=mixture(state),
        imports=tuple(state.past.imports),
        seconds=seconds,
        left=_left(state, seconds),
        events=state.events,
        requested=_requested(state).to_json(),
        tested=tuple(state.tested),
    )


def phase(state: RunState) -> str:
    """The current phase of a run."""
    if state.evaluation:
        return "evaluation"
    if state.ended is not None:
        return "ended"
    if not state.sessions:
        return NOT_STARTED
    if state.chosen is not None:
        return "rescoring" if state.wave and state.wave.kind == "rescore" else "test"
    if state.wave is not None and state.wave.kind == "start":
        return "phase 0"
    if not all(state.candidates[n].status == Status.EVALUATED for n in state.starts):
        return "preparing"
    over = not state.open_rounds and len(state.rounds) >= state.settings.rounds
    return "final" if state.finishing or over else "searching"


def doing(state: RunState) -> str:
    """What the run does now, or does next if it is stopped."""
    if state.ended is not None:
        return ""
    parts = []
    if state.wave is not None:
        parts.append("evaluating")
    if state.wave is not None and not state.rolling:
        pass
    elif unready(state):
        parts.append("preparing candidates")
    elif names := broken(state):
        parts.append(f"repairing {', '.join(names)}")
    if state.proposing_since is not None:
        parts.append(f"proposing round {len(state.rounds) + 1}")
    return " and ".join(parts)


def best(state: RunState) -> str | None:
    """The candidate with the best score so far; a starting harness before the first round."""
    if state.chosen is not None:
        return str(state.chosen["candidate"]) if state.chosen["candidate"] else None
    if any(state.estimate(name) is not None for name in state.selector.candidates):
        return str(state.selector.best().candidate)
    return state.best_start if state.selector.starts else None


def start_ahead(state: RunState) -> str:
    """A sentence if the best candidate does not beat every starting harness; empty otherwise.

    A score on all tasks and on the sealed test counts as much as the estimate.
    """
    name = best(state)
    if name is None or not state.selector.candidates:
        return ""
    if state.candidates[name].start:
        return f"no new candidate is ahead of the starting harness {name}."
    found = state.estimate(name)
    scale = found.scale if found is not None else (0.0, 1.0)
    full = rescored(state, name)
    value = full if full is not None or found is None else found.value
    where = "by estimate" if full is None else "on all tasks"
    known = {start: one.value for start in state.starts if (one := state.estimate(start))}
    sealed = {start: tested(state, start) for start in state.starts}
    measures = ((where, value, known), ("on the sealed test", tested(state, name), sealed))
    behind = []
    for what, mine, theirs in measures:
        scores = {start: one for start, one in theirs.items() if one is not None}
        start = max(scores, key=scores.__getitem__, default="")
        if mine is not None and start and scores[start] > mine + _ROUNDING:
            behind.append(f"{start} {score(scores[start], scale)} to {score(mine, scale)} {what}")
    if not behind:
        return ""
    role = "winner" if state.chosen is not None else "best candidate"
    return f"a starting harness is ahead of the {role}, {name}: {', '.join(behind)}."


def _waves(state: RunState) -> dict[str, tuple[int, int]]:
    """Trials recorded and asked for in the present wave, by candidate."""
    found: dict[str, tuple[int, int]] = {}
    for group in () if state.wave is None else state.wave.groups:
        asked = len(group.tasks) * len(group.trials)
        waiting = sum(cell in state.wave.open for cell in group.cells()) if state.wave else 0
        done, before = found.get(group.candidate, (0, 0))
        found[group.candidate] = done + asked - waiting, before + asked
    return found


def _row(
    state: RunState, entry: CandidateState, waves: dict[str, tuple[int, int]], tally: Tally
) -> CandidateRow:
    candidate = entry.candidate
    estimate = state.estimate(candidate.name)
    done, asked = waves.get(candidate.name, (0, 0))
    return CandidateRow(
        name=candidate.name,
        address=candidate.address,
        round=candidate.round,
        start=candidate.round == 0,
        status=entry.status.value,
        reason=entry.reason,
        parents=candidate.parents,
        hypothesis=candidate.hypothesis,
        kind=candidate.kind,
        components=candidate.components,
        leaks=entry.leaks,
        estimate=None if estimate is None else estimate.to_json(),
        full=rescored(state, candidate.name),
        test=tested(state, candidate.name),
        zeros=tally.zeros.get(candidate.name, 0),
        missing=tally.missing.get(candidate.name, 0),
        done=done,
        asked=asked,
    )


def _left(state: RunState, seconds: float) -> float | None:
    """Expected seconds to the end at the pace so far, proposing and waiting included."""
    if state.ended is not None:
        return 0.0
    told = [one.trials for one in state.rounds if one.settled and one.trials]
    if not told or not state.evaluating.trials:
        return None
    starts = len(state.starts) * len(state.selector.pool) * state.trials - len(state.past.given)
    searched = max(1, state.evaluating.trials - starts)
    rounds = state.settings.rounds - len(told)
    coming = max(0, rounds) * sum(told) / len(told) + closing_trials(state)
    if state.chosen is not None:
        coming = len(state.wave.open) if state.wave is not None else 0
    return float(coming * seconds / (searched + starts))


def _requested(state: RunState) -> Ledger:
    """What evaluations on request have spent."""
    total = Ledger()
    for requested in state.requested.values():
        total.add(requested.wave.tally.ledger)
    return total


def sealed_warning(candidates: int) -> str:
    """What readers of the sealed test must know; empty if one candidate ran it at most.

    >>> sealed_warning(1), sealed_warning(2)[:44]
    ('', 'the sealed test was used for 2 candidates; i')
    """
    if candidates <= 1:
        return ""
    return (
        f"the sealed test was used for {candidates:,} candidates; its score is no longer an "
        "unbiased measure of the best of them. Report the scores of all."
    )


def tested(state: RunState, name: str) -> float | None:
    """The score on the sealed test, or None before it is complete in every pool."""
    return None if state.test is None else _whole_score(state.test, name)


def rescored(state: RunState, name: str) -> float | None:
    """The score on every validation task, if the candidate was rescored."""
    return _whole_score(state.rescored, name)


def _whole_score(selector: Selector, name: str) -> float | None:
    if name not in selector.starts:
        return None
    try:
        return selector.estimate(name).value
    except NoOutcomeError:
        return None
