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
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)

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
        before, count = self.sums.get(task, (0.0, 0))
        self.sums[task] = before + seconds, count + 1
        self.total += seconds
        self.trials += 1
        self.tokens = max(self.tokens, tokens_in + tokens_out)
        self.dollars = max(self.dollars, dollars)

    def seconds(self, task: str) -> float:
        """Expected seconds of a trial of a task."""
        seconds, count = self.sums.get(task, (0.0, 0))
        if count:
            return seconds / count
        mean = self.total / self.trials if self.trials else 1.0
        return mean * self.costs.get(task, 1.0)

    @property
    def dearest(self) -> Spending:
        """The most a single trial has cost."""
        return Spending(trials=1, tokens=self.tokens, dollars=self.dollars)
