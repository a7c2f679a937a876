"""What went wrong in a run: faults by kind, missing outcomes, refusals, leaks, stops."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from coevolve.core.events import Event
from coevolve.formatting import amount, short
from coevolve.search.run_state import RunState, Status
from coevolve.views.report import Report
from coevolve.views.run_columns import ATTEMPT, NONE, OUTCOME, PARTS, RunColumns
from coevolve.views.spend_parts import FAILED, PHASE_0, TRIALS

IncidentKind = Literal[
    "refused", "repair", "leak", "note", "thin round", "rerun", "budget", "stopped", "resumed",
    "changed benchmark",
]  # fmt: skip
_LONGEST = 500
"""Characters of an incident; the journal has the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """Faults of one kind and blame, and what became of the trials.

    `missing` have no score, `zeros` scored 0, `retried` are attempts that were repeated, `checks`
    are candidates that failed their check or preparation. `candidates` and `tasks` count those
    concerned. `reasons` are the most frequent ones, with their numbers.
    """

    kind: str
    blame: str
    missing: int
    zeros: int
    retried: int
    checks: int
    candidates: int
    tasks: int
    first: float
    last: float
    reasons: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        return self.missing + self.zeros + self.retried + self.checks

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyRound:
    """Trials of a round that have a score, scored 0 by a fault, are missing, or were repeated."""

    round: int
    trials: int
    zeros: int
    missing: int
    retried: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that a reader of the run should know, with its time on the working clock."""

    clock: float
    seq: int
    round: int
    kind: IncidentKind
    candidate: str
    text: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What went wrong: faults, the rounds they hit, and incidents in order.

    `missing`, `zeros` and `retried` are totals of all trials.
    """

    faults: tuple[FaultRow, ...]
    rounds: tuple[FaultyRound, ...]
    incidents: tuple[Incident, ...]
    missing: int
    zeros: int
    retried: int
    refused: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


class IncidentLog:
    """The incidents of a run; call `take` with every event after it was applied."""

    def __init__(self) -> None:
        self.incidents: list[Incident] = []

    def take(self, event: Event, state: RunState) -> None:
        """Add what an event says, if it is an incident."""
        for kind, candidate, text in _incidents(event, state):
            self.incidents.append(
                Incident(
                    clock=event["clock"],
                    seq=event["seq"],
                    round=len(state.rounds),
                    kind=kind,
                    candidate=candidate,
                    text=short(text, _LONGEST),
                )
            )


def _incidents(event: Event, state: RunState) -> Iterator[tuple[IncidentKind, str, str]]:
    match event["type"]:
        case "proposed":
            for row in event["candidates"]:
                yield from _judged(row["candidate"]["name"], row)
            if event["note"]:
                yield "note", "", event["note"]
        case "repaired":
            yield from _judged(event["candidate"], event)
            if event["note"]:
                yield "note", event["candidate"], event["note"]
        case "checked" | "prepared" if event["fault"] is not None:
            entry = state.candidates[event["candidate"]]
            repair = entry.status == Status.BROKEN
            yield "repair" if repair else "refused", event["candidate"], entry.reason
        case "settled" if state.rounds[event["round"] - 1].thin:
            yield "thin round", "", f"under half of the outcomes of round {event['round']} count"
        case "reopened":
            names = ", ".join(event["candidates"])
            yield "rerun", "", f"the missing trials of {names} run again"
        case "exhausted":
            cap = event["cap"]
            yield "budget", "", f"{amount(cap, event['spent'][cap])} spent; {cap} reached the cap"
        case "stopped":
            yield "stopped", "", event["why"]
        case "session" if state.sessions > 1:
            yield "resumed", "", f"session {state.sessions}"
        case "fingerprinted" if event["changed"] and state.changes:
            yield "changed benchmark", "", ", ".join(event["changed"])


def _judged(name: str, row: Event) -> Iterator[tuple[IncidentKind, str, str]]:
    if row["refused"]:
        yield "refused", name, row["refused"]
    for leak in row.get("leaks", ()):
        yield "leak", name, leak


def failures(columns: RunColumns, now: Report, incidents: list[Incident]) -> Failures:
    """What went wrong in a run."""
    return Failures(
        faults=tuple(sorted(_faults(columns), key=lambda row: (-row.total, row.kind))),
        rounds=tuple(_rounds(columns)),
        incidents=tuple(incidents),
        missing=now.missing,
        zeros=now.zeros,
        retried=int(now.spend.evaluating["failed_attempts"]),
        refused=sum(row.status == "refused" for row in now.candidates),
    )


def _faults(columns: RunColumns) -> Iterator[FaultRow]:
    rows = columns.rows
    scored = ~np.isnan(rows.score)
    for number, fault in enumerate(columns.faults):
        mine = rows.fault == number
        trials, clocks = mine & (rows.kind == OUTCOME), rows.clock[mine]
        yield FaultRow(
            kind=fault.kind,
            blame=fault.blame,
            missing=int((trials & ~scored).sum()),
            zeros=int((trials & scored).sum()),
            retried=int((mine & (rows.kind == ATTEMPT)).sum()),
            checks=int((mine & (rows.task == NONE)).sum()),
            candidates=len(np.unique(rows.candidate[mine])),
            tasks=len(np.unique(rows.task[mine & (rows.task != NONE)])),
            first=float(clocks.min()),
            last=float(clocks.max()),
            reasons=tuple(fault.reasons.most_common(3)),
        )


def _rounds(columns: RunColumns) -> Iterator[FaultyRound]:
    """The rounds of the search; those of rescoring and of the sealed test are not among them."""
    rows = columns.rows
    searching = np.isin(rows.part, [PARTS.index(part) for part in (PHASE_0, TRIALS, FAILED)])
    searching &= rows.task != NONE
    scored = ~np.isnan(rows.score)
    for round in np.unique(rows.round[searching]).tolist():
        mine = searching & (rows.round == round)
        trials, faulty = mine & (rows.kind == OUTCOME), rows.fault != NONE
        yield FaultyRound(
            round=round,
            trials=int(trials.sum()),
            zeros=int((trials & faulty & scored).sum()),
            missing=int((trials & ~scored).sum()),
            retried=int((mine & (rows.kind == ATTEMPT)).sum()),
        )
