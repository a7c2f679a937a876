"""What each part of a run has spent: Phase 0, search, proposing, rescoring, sealed test."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coevolve.core.events import Event
from coevolve.search.budget import Ledger

PHASE_0, TRIALS, FAILED, PREPARATION = "phase 0", "trials", "failed attempts", "preparation"
PROPOSING, RESCORING, SEALED_TEST, REQUEST = "proposing", "rescoring", "sealed test", "on request"
SEARCH = "search"
SEARCHED = (TRIALS, FAILED, PREPARATION)
"""The parts that evaluated generated candidates before the choice."""
EVALUATING = (PHASE_0, *SEARCHED, RESCORING, SEALED_TEST)
"""The parts whose sum is the ledger of evaluating, as `coevolve status` shows it."""
PHASES = (PHASE_0, SEARCH, RESCORING, SEALED_TEST)
"""The phases whose wall clock adds up to that of the run."""
_OF_SPLIT = {"rescore": RESCORING, "test": SEALED_TEST}
_REQUESTED = ("requested", "scored", "retried")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendParts:
    """Ledgers and wall-clock seconds of the parts of a run.

    `ledgers` has the parts in `EVALUATING`, `PROPOSING` and `REQUEST`. Phase 0 includes the checks
    and the preparation of the starting harnesses; it, rescoring, the sealed test and evaluations
    on request include their failed attempts. `seconds` is the wall clock of the `PHASES` and of
    `REQUEST`; time between sessions does not count. That of `PROPOSING` is a part of theirs.
    """

    ledgers: Mapping[str, Ledger]
    seconds: Mapping[str, float]

    def total(self, *parts: str) -> Ledger:
        """The sum of some parts."""
        found = Ledger()
        for part in parts:
            found.add(self.ledgers[part])
        return found


def spend_parts(events: Iterable[Event]) -> SpendParts:
    """The parts of a run, from all its events.

    >>> opened = {"type": "opened", "clock": 0.0, "starts": [{"name": "words"}]}
    >>> outcome = {"type": "outcome", "candidate": "words", "task": "a", "clock": 2.0,
    ...     "usage": [90, 10, 0.0, 2.0], "score": 1.0}
    >>> found = spend_parts([opened, outcome, {**outcome, "candidate": "r1-0", "clock": 3.0}])
    >>> found.ledgers["phase 0"].tokens, found.ledgers["trials"].trials, found.seconds["phase 0"]
    (100, 1, 3.0)
    """
    ledgers = {part: Ledger() for part in (*EVALUATING, PROPOSING, REQUEST)}
    seconds = dict.fromkeys((*PHASES, PROPOSING, REQUEST), 0.0)
    starts: set[str] = set()
    phase, clock, proposing = PHASE_0, 0.0, math.nan
    for event in events:
        kind, split = event["type"], event.get("split", "")
        if kind in ("outcome", "failed") and split in _OF_SPLIT:
            phase = _OF_SPLIT[split]
        seconds[REQUEST if kind in _REQUESTED else phase] += max(0.0, event["clock"] - clock)
        clock = max(clock, event["clock"])
        match kind:
            case "opened":
                starts = {start["name"] for start in event["starts"]}
            case "checked" | "prepared":
                part = PHASE_0 if event["candidate"] in starts else PREPARATION
                ledgers[part].spend(event["usage"])
            case "proposing":
                proposing = event["clock"]
            case "probed" | "proposed" | "repaired":
                ledgers[PROPOSING].spend(event["usage"])
                if kind == "proposed" and not math.isnan(proposing):
                    seconds[PROPOSING] += event["clock"] - proposing
            case "outcome" | "failed" | "scored" | "retried":
                repeated = kind in ("failed", "retried")
                part = part_of(kind, split, event["candidate"] in starts)
                ledgers[part].spend(
                    event["usage"], trials=int(not repeated), failed_attempts=int(repeated)
                )
            case "told" if phase == PHASE_0:
                phase = SEARCH
            case "extended":
                phase = SEARCH
            case _:
                pass
    return SpendParts(ledgers=ledgers, seconds=seconds)


def part_of(kind: str, split: str, start: bool) -> str:
    """The part that a trial or an attempt of this type of event, split and harness belongs to."""
    if kind in ("scored", "retried"):
        return REQUEST
    if split in _OF_SPLIT:
        return _OF_SPLIT[split]
    if start:
        return PHASE_0
    return TRIALS if kind == "outcome" else FAILED
