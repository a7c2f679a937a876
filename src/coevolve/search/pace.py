"""How long trials of each task take and what they cost, learned as a run goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coevolve.core.pool import Pool


@dataclass(slots=True, kw_only=True)
class Pace:
    """Seconds per task and the dearest trial so far.

    Tasks nobody has run yet are taken to be as long as their cost says, or as the average.

    >>> pace = Pace.of(Pool(["a", "b"]))
    >>> pace.note("a", [0, 0, 0, 4.0])
    >>> pace.note("a", [0, 0, 0, 6.0])
    >>> pace.seconds("a"), pace.seconds("b")
    (5.0, 5.0)
    """

    costs: dict[str, float] = field(default_factory=dict)
    tokens: float = 0
    dollars: float = 0.0
    sums: dict[str, list[float]] = field(default_factory=dict)
    total: float = 0.0
    trials: int = 0

    @classmethod
    def of(cls, pool: Pool) -> "Pace":
        """The pace before any trial."""
        costs = {}
        if pool.costs is not None:
            mean = float(pool.costs.mean())
            costs = dict(zip(pool.tasks, (pool.costs / mean).tolist(), strict=True))
        return cls(costs=costs)

    def note(self, task: str, row: Sequence[float]) -> None:
        """Learn from one trial, whose usage is listed in the order of `USAGE`."""
        tokens_in, tokens_out, dollars, seconds = row
        self._add(task, seconds, 1)
        self.dearer(tokens_in + tokens_out, dollars)

    def add(self, other: "Pace") -> None:
        """Learn what another pace has learned."""
        for task, (seconds, trials) in other.sums.items():
            self._add(task, seconds, int(trials))
        self.dearer(other.tokens, other.dollars)

    def seconds(self, task: str) -> float:
        """Expected seconds of a trial of a task."""
        if task in self.sums:
            seconds, trials = self.sums[task]
            return seconds / trials
        mean = self.total / self.trials if self.trials else 1.0
        return mean * self.costs.get(task, 1.0)

    def to_json(self) -> dict[str, Any]:
        """What was learned, as plain JSON."""
        return {"tokens": self.tokens, "dollars": self.dollars, "sums": self.sums}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Pace":
        """The pace `to_json` described."""
        pace = cls(tokens=data["tokens"], dollars=data["dollars"])
        for task, (seconds, trials) in data["sums"].items():
            pace._add(task, seconds, trials)
        return pace

    def _add(self, task: str, seconds: float, trials: int) -> None:
        known = self.sums.get(task)
        if known is None:
            self.sums[task] = [seconds, trials]
        else:
            known[0] += seconds
            known[1] += trials
        self.total += seconds
        self.trials += trials

    def dearer(self, tokens: float, dollars: float) -> None:
        """Remember a price if it is the highest so far."""
        self.tokens = max(self.tokens, tokens)
        self.dollars = max(self.dollars, dollars)
