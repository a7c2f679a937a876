"""Everything known about one candidate, task or round, about single trials and two candidates."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coevolve.search.journal import Journal
from coevolve.search.run_state import RunState, Status
from coevolve.views.answer_text import parsed
from coevolve.views.outcome_rows import OutcomeRow, outcome_row, outcome_rows
from coevolve.views.questions import Shared, file_diff, shared_tasks
from coevolve.views.report import CandidateRow, report
from coevolve.views.run_columns import IMPORTED, OUTCOME
from coevolve.views.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDetails:
    """A candidate: its row in the report, origin, files and outcomes.

    `sent_for_repair` says whether it failed its check and was sent back for repair. `files` has
    the size of each file in bytes; `transcripts` are addresses.
    """

    row: CandidateRow
    children: tuple[str, ...]
    sent_for_repair: bool
    files: dict[str, int]
    transcripts: tuple[str, ...]
    outcomes: tuple[OutcomeRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the row of the report is on the same level as the rest."""
        found = asdict(self)
        row: dict[str, Any] = found.pop("row")
        return row | found


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A task that a round drew, and its probability."""

    round: int
    kind: str
    task: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """A task: its pool, mean score, draws and outcomes."""

    task: str
    pool: str | None
    split: str
    mean: float | None
    candidates: int
    missing: int
    draws: tuple[Draw, ...]
    outcomes: tuple[OutcomeRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDetails:
    """A round: its candidates, its draws and its trials; round 0 has the starting harnesses.

    It is `thin` if under half of its outcomes have a score.
    """

    round: int
    candidates: tuple[CandidateRow, ...]
    trials: int
    settled: bool = True
    note: str = ""
    missing: int = 0
    thin: bool = False
    transcript: str | None = None
    draws: tuple[Draw, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDetails:
    """A trial: its outcome, and the content of its trace, None without one."""

    outcome: OutcomeRow
    content: Any

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the outcome is on the same level as the content."""
        return {**self.outcome.to_json(), "content": self.content}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two candidates: their rows in the report, shared tasks, and the diff of their files."""

    candidates: tuple[CandidateRow, CandidateRow]
    shared: Shared
    diff: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "candidates": [row.to_json() for row in self.candidates],
            "shared": self.shared._asdict(),
            "diff": "\n".join(self.diff),
        }


def candidate_details(name: str, state: RunState, journal: Journal) -> CandidateDetails:
    """The details of a candidate."""
    entry = state.candidates[name]
    return CandidateDetails(
        row=report(state).candidate(name),
        children=tuple(
            n for n, other in state.candidates.items() if name in other.candidate.parents
        ),
        sent_for_repair=entry.repaired,
        files={path: len(data) for path, data in _files(name, state, journal).items()},
        transcripts=tuple(transcripts(name, state).values()),
        outcomes=tuple(o for o in outcome_rows(journal.events()) if o.candidate == name),
    )


def transcripts(name: str, state: RunState) -> dict[str, str]:
    """Addresses of the transcripts of a candidate: of its "proposal" and of its "repair"."""
    round = state.candidates[name].candidate.round
    if not round or state.evaluation:
        return {}
    known = state.rounds[round - 1]
    addresses = {"proposal": known.transcript, "repair": known.repairs.get(name)}
    return {kind: address for kind, address in addresses.items() if address is not None}


def task_details(task: str, state: RunState, journal: Journal) -> TaskDetails:
    """The details of a task."""
    rows = tuple(row for row in outcome_rows(journal.events()) if row.task == task)
    scores = [row.score for row in rows if row.score is not None]
    return TaskDetails(
        task=task,
        pool=rows[0].pool if rows else None,
        split="validation" if task in state.selector.pool.tasks else "test",
        mean=sum(scores) / len(scores) if scores else None,
        candidates=len({row.candidate for row in rows}),
        missing=len(rows) - len(scores),
        draws=tuple(draw for draw in _draws(journal) if draw.task == task),
        outcomes=rows,
    )


def round_details(round: int, state: RunState, journal: Journal) -> RoundDetails:
    """The details of a round."""
    rows = tuple(row for row in report(state).candidates if row.round == round)
    if not round:
        trials = sum(row.estimate["tasks"] for row in rows if row.estimate)
        return RoundDetails(round=0, candidates=rows, trials=trials)
    found = state.rounds[round - 1]
    return RoundDetails(
        round=round,
        candidates=rows,
        trials=found.trials,
        settled=found.settled,
        note=found.note,
        missing=found.missing,
        thin=found.thin,
        transcript=found.transcript,
        draws=tuple(draw for draw in _draws(journal) if draw.round == round),
    )


def trial_details(candidate: str, task: str, journal: Journal) -> list[TrialDetails]:
    """Every trial of a candidate on a task, with its trace."""
    return [
        _with_trace(row, journal)
        for row in outcome_rows(journal.events())
        if (row.candidate, row.task) == (candidate, task)
    ]


def _with_trace(row: OutcomeRow, journal: Journal) -> TrialDetails:
    content = parsed(journal.get(row.trace).decode(errors="replace")) if row.trace else None
    return TrialDetails(outcome=row, content=content)


def recorded_trials(
    candidate: str, task: str, timeline: Timeline, journal: Journal
) -> list[TrialDetails]:
    """Like `trial_details`, with a timeline that knows where in the journal the trials are."""
    columns, state = timeline.columns, timeline.state
    number = {**columns.tasks, **columns.test_tasks}[task]
    rows = columns.rows
    here = (rows.candidate == columns.candidates[candidate]) & (rows.task == number)
    found = []
    for seq in dict.fromkeys(rows.seq[here & np.isin(rows.kind, (OUTCOME, IMPORTED))].tolist()):
        [event] = journal.events(seq, seq + 1)
        if event["type"] == "imported":
            opened = next(iter(journal.events(0, 1)))
            given = outcome_rows([opened, event])
            found += [o for o in given if (o.candidate, o.task) == (candidate, task)]
            continue
        split = event.get("split", "validation")
        pool = state.test.pool if split == "test" and state.test else state.selector.pool
        label = pool.labels[pool.position(task)]
        round = state.candidates[candidate].candidate.round
        found.append(outcome_row(event, round, split, label))
    return [_with_trace(row, journal) for row in found]


def compare(first: str, second: str, state: RunState, journal: Journal) -> Comparison:
    """Two candidates side by side."""
    found = report(state)
    files = [_files(name, state, journal) for name in (first, second)]
    return Comparison(
        candidates=(found.candidate(first), found.candidate(second)),
        shared=shared_tasks(_scores(first, state), _scores(second, state)),
        diff=tuple(file_diff(files[0], files[1], (first, second))),
    )


def _files(name: str, state: RunState, journal: Journal) -> dict[str, bytes]:
    files = state.candidates[name].candidate.files
    return {path: journal.get(address) for path, address in files.items()}


def _scores(name: str, state: RunState) -> dict[str, float]:
    if state.candidates[name].status != Status.EVALUATED:
        return {}
    found = state.selector.scores(name).items()
    return {task: value for task, value in found if isinstance(value, float)}


def _draws(journal: Journal) -> Iterator[Draw]:
    """Every drawn task with its probability, once per draw."""
    for event in journal.events():
        if event["type"] != "asked":
            continue
        for drawn in event["events"]:
            for design in (design for draw in drawn["draws"] for design in draw):
                for task, probability in zip(
                    design["tasks"], design["probabilities"], strict=True
                ):
                    yield Draw(
                        round=drawn["round"],
                        kind=drawn["kind"],
                        task=task,
                        probability=probability,
                    )
