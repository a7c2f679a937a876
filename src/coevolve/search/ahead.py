"""Looking ahead: whether a budget can pay for one more trial."""

from coevolve.core.outcomes import Usage
from coevolve.search.budget import Spending
from coevolve.search.recorder import Recorder
from coevolve.search.state import RunState
from coevolve.search.wave import Wave


def cap_ahead(
    recorder: Recorder,
    capacity: int,
    under_way: int = 0,
    wave: Wave | None = None,
    *,
    proposal: bool = False,
    used: Usage | None = None,
) -> str | None:
    """The cap that one more trial, or one more proposal, might pass, if any.

    What is spent counts, with what was `used` and is not recorded yet; one more trial and those
    under way at the price of the dearest so far, a `proposal`, to be made or under way, likewise;
    and, once Phase 0 has shown what trials cost, what comes after the choice at the average price.
    """
    state = recorder.state
    spent = state.spending(recorder.journal.clock())
    if used is not None:
        tokens = used.tokens_in + used.tokens_out
        spent = spent.plus(1, Spending(tokens=tokens, dollars=used.dollars))
    ahead = spent.plus(1 + under_way, state.dearest)
    if proposal:
        dearest = Spending(tokens=state.proposals.tokens, dollars=state.proposals.dollars)
        ahead = ahead.plus(1, dearest)
    if wave is None or wave.kind == "round":
        ahead = ahead.plus(closing_trials(state), _average(state, capacity))
    budget = state.settings.budget
    return budget.reached(spent) or budget.exceeded(ahead)


def closing_trials(state: RunState) -> int:
    """Trials after the choice: the winner in full, and the sealed test with the starts."""
    rescored = len(state.selector.pool) if state.settings.rescore else 0
    tested = 0 if state.test is None else (len(state.starts) + 1) * len(state.test.pool)
    return (rescored + tested) * state.trials


def _average(state: RunState, capacity: int) -> Spending:
    """What a trial costs on average, and how long it keeps the run when several run at once."""
    spent, trials = state.evaluating, max(1, state.evaluating.trials)
    return Spending(
        trials=1,
        tokens=spent.tokens / trials,
        dollars=spent.dollars / trials,
        hours=spent.seconds / trials / capacity / 3600,
    )
