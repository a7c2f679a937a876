"""What a wave of trials came to: all of it that the state of a run remembers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from coevolve.core.events import Event
from coevolve.core.outcomes import Missing
from coevolve.errors import titled
from coevolve.search.budget import Ledger
from coevolve.search.pace import Pace


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the trials of a wave consumed, how long they took, and what went wrong.

    >>> tally = Tally()
    >>> tally.outcome({"candidate": "c1", "task": "a", "score": 1.0, "usage": [9, 1, 0.0, 2.5]})
    1.0
    >>> tally.ledger.trials, tally.pace.seconds("a")
    (1, 2.5)
    """

    ledger: Ledger = field(default_factory=Ledger)
    pace: Pace = field(default_factory=Pace)
    failures: dict[str, int] = field(default_factory=dict)
    zeros: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def outcome(self, event: Event) -> float | Missing:
        """Count an outcome, and return its score or why it is missing."""
        usage, score = event["usage"], event["score"]
        self.ledger.spend(usage, trials=1)
        self.pace.note(event["task"], usage)
        if (fault := event.get("fault")) is None:
            return float(score)
        _add(self.failures, fault["kind"], 1)
        _add(self.missing if score is None else self.zeros, event["candidate"], 1)
        if score is not None:
            return float(score)
        return Missing(titled(fault["kind"], fault["reason"]))

    def failed(self, event: Event) -> None:
        """Count an attempt that is made again."""
        tokens_in, tokens_out, dollars, _ = event["usage"]
        self.ledger.spend(event["usage"], failed_attempts=1)
        self.pace.dearer(tokens_in + tokens_out, dollars)

    def forgive(self, candidate: str, count: int) -> None:
        """Take back missing outcomes, which are waited for once more."""
        _add(self.missing, candidate, -count)
        if not self.missing[candidate]:
            del self.missing[candidate]

    def add(self, other: "Tally") -> None:
        """Add what another tally counted."""
        self.ledger.add(other.ledger)
        self.pace.add(other.pace)
        for name in ("failures", "zeros", "missing"):
            for key, count in getattr(other, name).items():
                _add(getattr(self, name), key, count)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "ledger": self.ledger.exact(),
            "pace": self.pace.to_json(),
            "failures": self.failures,
            "zeros": self.zeros,
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The tally `to_json` described."""
        return cls(
            ledger=Ledger(**data["ledger"]),
            pace=Pace.from_json(data["pace"]),
            failures=dict(data["failures"]),
            zeros=dict(data["zeros"]),
            missing=dict(data["missing"]),
        )


def _add(counts: dict[str, int], key: str, count: int) -> None:
    counts[key] = counts.get(key, 0) + count
