"""Attempts at checks, preparations and trials: where they run, their retries and their caps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coevolve.core.outcomes import Usage
from coevolve.search.budget import Spending
from coevolve.search.journal import Recorder
from coevolve.search.retries import Retries
from coevolve.search.run_state import RunState
from coevolve.search.trials import Executor, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How attempts are recorded, run and repeated, and whether the budget caps them.

    `beside` is the highest cost of what else is under way.
    """

    recorder: Recorder
    executor: Executor
    retries: Retries
    rng: np.random.Generator
    capped: bool = True
    beside: Callable[[], Spending] = Spending

    def wait(self, fault: Fault | None, attempt: int) -> float | None:
        """Seconds until the next attempt after this one; None if there is none.

        Attempts from `retries.attempts` on repeat the rule.
        """
        again = fault is not None and fault.retried
        return self.retries.wait(attempt % self.retries.attempts, self.rng) if again else None

    @property
    def priced(self) -> bool:
        """Whether a cap on tokens or dollars applies."""
        return self.capped and self.recorder.state.settings.budget.priced

    def cap_ahead(
        self, under_way: int = 0, *, proposal: bool = False, used: Usage | None = None
    ) -> str | None:
        """The cap that one more trial might exceed, if any; see `cap_ahead` below."""
        if not self.capped:
            return None
        return cap_ahead(
            self.recorder,
            self.executor.capacity,
            under_way,
            proposal=proposal,
            used=used,
            beside=self.beside(),
        )


def cap_ahead(
    recorder: Recorder,
    capacity: int,
    under_way: int = 0,
    *,
    proposal: bool = False,
    used: Usage | None = None,
    beside: Spending | None = None,
) -> str | None:
    """The cap that one more trial might exceed, if any.

    It counts what is spent, what is `used` but not recorded yet, and what may be spent `beside`.
    This trial and the running ones count with the highest cost of a trial so far, a `proposal`
    with the highest cost of a proposal. After Phase 0, the trials after the choice count with the
    average cost of a trial.
    """
    state = recorder.state
    budget = state.settings.budget
    if budget.unlimited:
        return None
    trials, proposals = state.evaluating, state.proposing
    spent = state.spending(recorder.journal.clock())
    if used is not None:
        spent = spent.plus(1, Spending.of_usage(used))
    ahead = spent.plus(1 + under_way, Spending.highest(trials, trials=1))
    if beside is not None:
        ahead = ahead.plus(1, beside)
    if proposal:
        ahead = ahead.plus(1, Spending.highest(proposals, trials=0))
    if state.wave is None or state.wave.kind == "round":
        ahead = ahead.plus(closing_trials(state), Spending.average(trials, capacity))
    return budget.reached(spent) or budget.exceeded(ahead)


def closing_trials(state: RunState) -> int:
    """Trials after the choice: the winner on every task, and the sealed test.

    A run that was extended may have tested its starting harnesses; its winner may still change.
    """
    needed = len(state.selector.pool) * state.trials if state.settings.rescore else 0
    if state.test is not None:
        untested = [name for name in state.starts if name not in state.test.starts]
        needed += (len(untested) + 1) * len(state.test.pool) * state.trials
        needed -= len(state.closing_outcomes("test", untested))
    return needed
