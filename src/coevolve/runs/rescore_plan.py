"""Which candidates of a run lack a score on every task, and what scoring them costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import StateError
from coevolve.formatting import plural
from coevolve.runs.rescoring import check_rescore
from coevolve.runs.session import read_state
from coevolve.search.request import Requested, cells_of
from coevolve.search.requesting import pool_of
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from coevolve.views.forecast import PRICED, Part, evaluating_costs, shown, total_of
from coevolve.views.score_table import Split, kind_of, recorded_results
from coevolve.views.spend import Costs, Range, costs_of_run, has_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class RescorePlan:
    """Candidates of a run without a score on every task of a split, and the price of scoring them.

    `trials` is the number that is not recorded yet; `spent` has their tokens, dollars and hours,
    if the run shows what a trial costs.
    """

    folder: Path
    names: tuple[str, ...]
    split: Split
    trials: int
    spent: Costs

    def __str__(self) -> str:
        where = "tasks of the sealed test" if self.split == "test" else "validation tasks"
        return (
            f"{self.folder}: {plural(len(self.names), 'candidate')} on all {where}, "
            f"{plural(self.trials, 'trial')}: {_price(self.spent)}"
        )


def total_price(plans: Sequence[RescorePlan]) -> str:
    """The price of several plans together; a measure that is unknown for one is unknown."""
    parts = [
        Part(name=str(plan.folder), trials=Range(plan.trials, plan.trials), spent=plan.spent)
        for plan in plans
    ]
    trials = plural(sum(plan.trials for plan in plans), "trial")
    return f"{trials} in {plural(len(plans), 'run')}: {_price(total_of(parts).spent)}"


def _price(spent: Costs) -> str:
    return ", ".join(
        f"{text} {measure}" if text == "unknown" or measure == "tokens" else text
        for measure in PRICED
        for text in [shown(spent.get(measure), measure)]
    )


def plan_rescore(
    folder: Path, candidates: Sequence[str], split: Split = "validation"
) -> RescorePlan:
    """The plan for some candidates; those whose score is recorded are left out.

    Raises:
        InputError: A candidate is unknown, or the benchmark has no sealed test.
        StateError: A candidate cannot be evaluated.
    """
    state = check_rescore(folder, candidates, split)
    open_cells = {name: _open(state, name, split) for name in candidates}
    names = tuple(name for name, count in open_cells.items() if count)
    with RunStore.read(folder) as store:
        each, _ = costs_of_run(store)
        sessions = [e["capacity"] for e in store.events() if e["type"] == "session"]
    if not has_prices(state):
        each.pop("dollars", None)
    trials = sum(open_cells.values())
    workers = sessions[-1] if sessions else 1
    return RescorePlan(
        folder=folder,
        names=names,
        split=split,
        trials=trials,
        spent=evaluating_costs(Range(trials, trials), each, workers),
    )


def leading(folder: Path, most: int | None = None) -> list[str]:
    """The evaluated candidates of a run, the highest estimate first; at most `most`.

    Raises:
        StateError: The run has none yet.
    """
    state = read_state(folder)
    estimates = {name: state.estimate(name) for name in map(str, state.selector.candidates)}
    known = {name: found.value for name, found in estimates.items() if found is not None}
    if not known:
        raise StateError(f"{folder} has no evaluated candidates yet; resume the run first.")
    ranked = sorted(known, key=lambda name: -known[name])
    return ranked[:most]


def _open(state: RunState, name: str, split: Split) -> int:
    """How many trials of a candidate are to be run; none if every outcome is recorded.

    If some are not recorded, missing ones are run again too.
    """
    if recorded_results(state, name, split) is not None:
        return 0
    requested = state.requested.get(kind_of(split)) or Requested(split=kind_of(split))
    cells = cells_of(name, pool_of(state, split).tasks, state.trials)
    done = requested.wave.done
    if all(cell in done for cell in cells):
        return 0
    return sum(not isinstance(done.get(cell), float) for cell in cells)
