"""An estimated full-set score and how far it can be trusted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A full-set score Ŝ estimated from some of the tasks.

    `value` may leave [0, 1] (the difference estimator does at times): it ranks candidates as it
    is, and only its printed form is clipped. `se`, `low` and `high` are None where the sample
    cannot tell, and `note` says why. `tasks` counts the tasks with a score, `drawn` those asked
    for, `pool_size` all of them. `check` is the design-based estimate beside that of a model.

    >>> print(Estimate(value=1.02, se=0.04, low=0.94, high=1.1, tasks=18, drawn=18,
    ...     pool_size=89, method="difference"))
    1.000 ± 0.040 (clipped from 1.020; 18 of 89 tasks, difference)
    """

    value: float
    se: float | None
    low: float | None
    high: float | None
    tasks: int
    drawn: int
    pool_size: int
    method: str
    note: str = ""
    check: "Estimate | None" = None

    @property
    def coverage(self) -> float:
        """Share of the tasks asked for that have a score."""
        return self.tasks / self.drawn

    @property
    def exact(self) -> bool:
        """Whether every trial of every task has a score, so that nothing is estimated."""
        return self.tasks == self.pool_size and not self.note

    def __str__(self) -> str:
        shown = min(max(self.value, 0.0), 1.0)
        spread = "" if self.exact else " ± ?" if self.se is None else f" ± {self.se:.3f}"
        off = abs(shown - self.value) >= 5e-4
        clipped = f"clipped from {self.value:.3f}; " if off else ""
        tasks = f"{self.tasks} of {self.pool_size} tasks"
        if self.tasks < self.drawn:
            tasks = f"{self.tasks} of {self.drawn} drawn, {self.pool_size} tasks"
        return f"{shown:.3f}{spread} ({clipped}{tasks}, {self.method})"
