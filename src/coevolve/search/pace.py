"""How long trials of each task take and what they cost, learned as a run goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from coevolve.core.pool import Pool
from coevolve.search.budget import Spending


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

    costs: dict[str, float]
    total: float = 0.0
    trials: int = 0
    tokens: float = 0
    dollars: float = 0.0
    sums: dict[str, list[float]] = field(default_factory=dict)

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
        known = self.sums.get(task)
        if known is None:
            known = self.sums[task] = [0.0, 0]
        known[0] += seconds
        known[1] += 1
        self.total += seconds
        self.trials += 1
        if dollars > self.dollars:
            self.dollars = dollars
        if tokens_in + tokens_out > self.tokens:
            self.tokens = tokens_in + tokens_out

    def seconds(self, task: str) -> float:
        """Expected seconds of a trial of a task."""
        if task in self.sums:
            seconds, count = self.sums[task]
            return seconds / count
        mean = self.total / self.trials if self.trials else 1.0
        return mean * self.costs.get(task, 1.0)

    @property
    def dearest(self) -> Spending:
        """The most a single trial has cost."""
        return Spending(trials=1, tokens=self.tokens, dollars=self.dollars)
