"""Everything a run paid for, in columns: trials, failed attempts, checks, proposals.

A run of 100,000 outcomes takes 12 MB, and an event is one more row. Every projection that needs
single trials is made from these columns: the matrix of outcomes, costs over time, failures.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.events import Event
from coevolve.formatting import short
from coevolve.views.spend_parts import (
    EVALUATING,
    PHASE_0,
    PREPARATION,
    PROPOSING,
    REQUEST,
    part_of,
)

PARTS = (*EVALUATING, PROPOSING, REQUEST)
"""The parts of a run that cost something; a row has the number of its part."""
SPLITS = ("validation", "rescore", "test")
OUTCOME, ATTEMPT, OTHER, IMPORTED = range(4)
"""Kinds of rows: a trial, an attempt that was repeated, a check or proposal, a past outcome."""
NONE = -1
"""Instead of the number of a candidate, task or fault, where there is none."""
_MOST_REASONS = 8
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """One entry per row, in the order of the events.

    `candidate`, `task` and `fault` are numbers in the lists of `RunColumns`; tasks of the sealed
    test follow those of the search. `round` is the round in which a trial ran, 0 for Phase 0.
    `score` is NaN where there is none. `seq` is the number of the event.
    """

    kind: Indices
    part: Indices
    split: Indices
    candidate: Indices
    task: Indices
    trial: Indices
    round: Indices
    fault: Indices
    tokens_in: Indices
    tokens_out: Indices
    seq: Indices
    score: Floats
    dollars: Floats
    seconds: Floats
    clock: Floats

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def tokens(self) -> Indices:
        return np.asarray(self.tokens_in + self.tokens_out)


_TYPES: dict[str, Any] = {
    "kind": np.uint8,
    "part": np.uint8,
    "split": np.uint8,
    "candidate": np.int32,
    "task": np.int32,
    "trial": np.int32,
    "round": np.int32,
    "fault": np.int32,
    "tokens_in": np.int64,
    "tokens_out": np.int64,
    "seq": np.int64,
    "score": np.float64,
    "dollars": np.float64,
    "seconds": np.float64,
    "clock": np.float64,
}


@dataclass(slots=True, kw_only=True)
class FaultKind:
    """Faults of one kind and blame, with some of their reasons and how often each occurred."""

    kind: str
    blame: str
    reasons: Counter[str] = field(default_factory=Counter)

    def note(self, reason: str) -> None:
        """Count a reason; only so many different ones are kept."""
        text = short(reason, _LONGEST_REASON)
        if text in self.reasons or len(self.reasons) < _MOST_REASONS:
            self.reasons[text] += 1


class RunColumns:
    """The columns of a run, which grow with every event.

    `candidates` and `tasks` map names to numbers; `test_tasks` are those of the sealed test, whose
    numbers follow. `faults` are the kinds of faults, by number.

    >>> columns = RunColumns()
    >>> columns.take({"type": "opened", "seq": 0, "starts": [{"name": "words"}], "test": None,
    ...     "selector": {"pool": {"tasks": ["a", "b"]}}})
    >>> columns.take({"type": "outcome", "seq": 1, "candidate": "words", "task": "b", "trial": 0,
    ...     "score": 1.0, "usage": [90, 10, 0.25, 2.0], "clock": 2.0})
    >>> found = columns.rows
    >>> found.task.tolist(), found.tokens.tolist(), found.dollars.tolist()
    ([1], [100], [0.25])
    """

    def __init__(self) -> None:
        self.candidates: dict[str, int] = {}
        self.rounds: list[int] = []
        self.tasks: dict[str, int] = {}
        self.test_tasks: dict[str, int] = {}
        self.faults: list[FaultKind] = []
        self._fault_numbers: dict[tuple[str, str], int] = {}
        self._starts = 0
        self._round = 0
        self._waiting: list[tuple[Any, ...]] = []
        self._rows = Columns(**{name: np.empty(0, dtype=kind) for name, kind in _TYPES.items()})
        self._handlers: dict[str, Callable[[Event], None]] = {
            "opened": self._opened,
            "imported": self._imported,
            "proposed": self._proposed,
            "added": self._added,
            "asked": self._asked,
            "outcome": self._trial,
            "failed": self._trial,
            "scored": self._trial,
            "retried": self._trial,
            "checked": self._other,
            "prepared": self._other,
            "probed": self._other,
            "repaired": self._other,
        }

    def take(self, event: Event) -> None:
        """Add what an event paid for, if anything."""
        handler = self._handlers.get(event["type"])
        if handler is not None:
            handler(event)

    @property
    def rows(self) -> Columns:
        """All rows so far."""
        if self._waiting:
            names = [*_TYPES]
            new = zip(names, zip(*self._waiting, strict=True), strict=True)
            self._rows = Columns(
                **{
                    name: np.concatenate(
                        [getattr(self._rows, name), np.array(values, dtype=_TYPES[name])]
                    )
                    for name, values in new
                }
            )
            self._waiting = []
        return self._rows

    def __len__(self) -> int:
        return len(self._rows) + len(self._waiting)

    def _opened(self, event: Event) -> None:
        for start in event["starts"]:
            self._enter(start["name"], 0)
        self._starts = len(self.candidates)
        tasks = event["selector"]["pool"]["tasks"]
        self.tasks = {task: number for number, task in enumerate(tasks)}
        sealed = event["test"]["tasks"] if event["test"] else ()
        self.test_tasks = {task: number for number, task in enumerate(sealed, len(tasks))}

    def _enter(self, name: str, round: int) -> None:
        if name not in self.candidates:
            self.candidates[name] = len(self.candidates)
            self.rounds.append(round)

    def _proposed(self, event: Event) -> None:
        for row in event["candidates"]:
            self._enter(row["candidate"]["name"], event["round"])
        self._other(event)

    def _added(self, event: Event) -> None:
        self._enter(event["candidate"]["name"], event["candidate"]["round"])

    def _asked(self, event: Event) -> None:
        self._round = max([self._round, *(drawn["round"] for drawn in event["events"])])

    def _trial(self, event: Event) -> None:
        """An outcome, or an attempt that is repeated."""
        kind, split, fault = event["type"], event.get("split", "validation"), event.get("fault")
        name = event["candidate"]
        candidate = self.candidates[name]
        score = event.get("score")
        tokens_in, tokens_out, dollars, seconds = event["usage"]
        start = candidate < self._starts
        task = self.tasks if split != "test" else self.test_tasks
        part = PARTS.index(part_of(kind, split, start))
        self._waiting.append(
            (
                ATTEMPT if kind in ("failed", "retried") else OUTCOME,
                part,
                SPLITS.index(split),
                candidate,
                task[event["task"]],
                event["trial"],
                0 if part == 0 else self._round,
                NONE if fault is None else self._fault(fault),
                int(tokens_in),
                int(tokens_out),
                event["seq"],
                math.nan if score is None else score,
                dollars,
                seconds,
                event["clock"],
            )
        )

    def _fault(self, fault: dict[str, Any]) -> int:
        key = fault["blame"], fault["kind"]
        if key not in self._fault_numbers:
            self._fault_numbers[key] = len(self.faults)
            self.faults.append(FaultKind(kind=fault["kind"], blame=fault["blame"]))
        number = self._fault_numbers[key]
        self.faults[number].note(fault["reason"])
        return number

    def _other(self, event: Event) -> None:
        """A check, a preparation or a proposal."""
        kind, name = event["type"], event.get("candidate")
        candidate = self.candidates.get(name, NONE) if isinstance(name, str) else NONE
        round = self.rounds[candidate] if candidate != NONE else event.get("round", 0)
        part = PROPOSING
        if kind in ("checked", "prepared"):
            part = PHASE_0 if 0 <= candidate < self._starts else PREPARATION
        fault = event.get("fault")
        tokens_in, tokens_out, dollars, seconds = event["usage"]
        self._waiting.append(
            (
                OTHER,
                PARTS.index(part),
                0,
                candidate,
                NONE,
                0,
                round,
                NONE if fault is None else self._fault(fault),
                int(tokens_in),
                int(tokens_out),
                event["seq"],
                math.nan,
                dollars,
                seconds,
                event["clock"],
            )
        )

    def _imported(self, event: Event) -> None:
        """Past outcomes that stand for trials of Phase 0; they cost this run nothing."""
        for name, column in event["phase_0"].items():
            rows = zip(column["tasks"], column["trials"], column["scores"], strict=True)
            for at, trial, score in rows:
                row = (IMPORTED, 0, 0, self.candidates[name], at, trial, 0, NONE, 0, 0)
                self._waiting.append((*row, event["seq"], score, 0.0, 0.0, event["clock"]))
