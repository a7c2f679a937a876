"""The table cost: what searches have spent, part by part, beside a full search."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coevolve.search.budget import Ledger
from coevolve.views.spend_parts import (
    EVALUATING,
    FAILED,
    PHASE_0,
    PHASES,
    PREPARATION,
    PROPOSING,
    REQUEST,
    RESCORING,
    SEALED_TEST,
    SEARCH,
    SEARCHED,
    SpendParts,
)
from coevolve_reproductions.run_tables.recorded_run import RecordedRun
from coevolve_reproductions.run_tables.run_group import (
    BENCHMARK,
    FRACTION,
    METHOD,
    RUNS,
    SECTIONS,
    RunGroup,
    RunGroups,
)
from coevolve_reproductions.tables.cost import SECONDS, projected, reduction, trials_used
from coevolve_reproductions.tables.table import Column, Table, mean_and_sd

WHOLE = "whole run"
PARTS: dict[str, tuple[str, ...]] = {
    SEARCH: SEARCHED,
    f"of it {FAILED}": (FAILED,),
    f"of it {PREPARATION}": (PREPARATION,),
    PROPOSING: (PROPOSING,),
    PHASE_0: (PHASE_0,),
    RESCORING: (RESCORING,),
    SEALED_TEST: (SEALED_TEST,),
    WHOLE: (*EVALUATING, PROPOSING),
    REQUEST: (REQUEST,),
}
"""The rows of a method, and the parts of a run that each sums."""
_CLOCKS = {
    **{part: (part,) for part in (*PHASES, PROPOSING, REQUEST)},
    WHOLE: PHASES,
}
_MOMENT = 0.01
"""Hours below which a part that used nothing else is left out."""
_MEASURES = ("tokens_in", "tokens_out", "dollars", "work")


def cost(groups: RunGroups) -> Table:
    """Trials, tokens, dollars and hours of each part of the runs; full search for comparison."""
    rows: list[dict[str, Any]] = []
    for section in groups.sections():
        full = next((group for group in section if group.first.full), None)
        every = _projected(section) if full is None else _part(full, SEARCH)
        if full is None:
            rows.append(every)
        for group in section:
            rows += _rows(group, every)
    for run in groups.runs:
        if run.state.ended is None:
            groups.lack(run, None, "validation")
    unit, letter = (1e6, "M") if _most(rows, "tokens_in") >= 1e6 else (1e3, "k")
    cents = 2 if _most(rows, "dollars") >= 1 else 4
    clock, short = (1.0, "h") if _most(rows, "hours", "work") >= 1 else (1 / SECONDS, "s")
    columns = (
        BENCHMARK,
        groups.models,
        METHOD,
        FRACTION,
        Column(name="part", heading="part"),
        RUNS,
        Column(name="trials", heading="Trials", kind="count"),
        _measure("tokens_in", f"Input ({letter})", unit),
        _measure("tokens_out", f"Output ({letter})", unit),
        Column(name="reduction", heading="vs. full (%)", kind="difference", digits=0),
        _measure("dollars", "Cost (US$)", digits=cents),
        _measure("hours", f"Time ({short})", clock),
        _measure("work", f"Work ({short})", clock),
        Column(name="failed", heading="failed attempts", kind="count"),
    )
    table = Table(
        name="cost",
        title="Cost of searches",
        columns=columns,
        rows=tuple(rows),
        note=groups.note(
            "Means ± SD over n runs. search: trials, failed attempts and preparation of generated "
            "candidates before the choice; its time is the wall clock, with proposing. The other "
            "parts include their failed attempts, and phase 0 the preparation of the starting "
            "harnesses. whole run: the total of `coevolve status`, without evaluations on "
            "request. vs. full compares input tokens, or trials if tokens are unknown. Work: the "
            "time of all trials added up. A projected full search runs every candidate on every "
            "task, at the mean usage of the trials of each task. -: not measured. Parts that used "
            "nothing are left out."
        ),
        minor=("failed", "work", "tokens_out", "n", *groups.spare),
    )
    return table.headed("benchmark", "model").sectioned(*SECTIONS)


def _most(rows: Sequence[dict[str, Any]], *names: str) -> float:
    """The largest value of some columns; 0 if none is known."""
    return max((float(row.get(name) or 0) for row in rows for name in names), default=0.0)


def _measure(name: str, heading: str, unit: float = 1.0, digits: int = 1) -> Column:
    spread = f"{name}_sd"
    return Column(
        name=name, heading=heading, kind="number", spread=spread, unit=unit, digits=digits
    )


def _rows(group: RunGroup, full: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a method; those that spent nothing are left out."""
    rows: list[dict[str, Any]] = []
    for part in PARTS:
        row = _part(group, part)
        spent = any(row.get(name) for name in ("trials", "failed", "tokens_in", "dollars"))
        slow = _most([row], "hours", "work") >= _MOMENT
        if not spent and not slow and part not in (SEARCH, WHOLE):
            continue
        if part == SEARCH and not group.first.full:
            by = "tokens_in" if row["tokens_in"] and full["tokens_in"] else "trials"
            row["reduction"] = reduction(row[by], full[by])
        rows.append(row)
    return rows


def _part(group: RunGroup, part: str) -> dict[str, Any]:
    ledgers = [(run, _ledger(run, part)) for run in group.runs]
    clocks = _CLOCKS.get(part, ())
    row: dict[str, Any] = {**group.row, "part": part, "n": len(group.runs)}
    if part != PROPOSING:
        row |= mean_and_sd("trials", [ledger.trials for _, ledger in ledgers])
        row |= mean_and_sd("failed", [ledger.failed_attempts for _, ledger in ledgers])
    for name in _MEASURES:
        row |= mean_and_sd(name, [_measured(run, ledger, name) for run, ledger in ledgers])
    return row | group.means("hours", lambda run: _hours(_spent(run), clocks))


def _ledger(run: RecordedRun, part: str) -> Ledger:
    return _spent(run).total(*PARTS[part])


def _measured(run: RecordedRun, part: Ledger, measure: str) -> float | None:
    """What a part of a run has used; None if the run has not measured it at all."""
    if measure == "dollars" and not run.priced:
        return None
    every = _ledger(run, WHOLE), _ledger(run, REQUEST)
    known = any(_amount(ledger, measure) for ledger in every)
    return _amount(part, measure) if known else None


def _spent(run: RecordedRun) -> SpendParts:
    spent = run.search.spent
    assert spent is not None, "a run folder has a ledger"
    return spent


def _hours(spent: SpendParts, clocks: Sequence[str]) -> float | None:
    return sum(spent.seconds[clock] for clock in clocks) / SECONDS if clocks else None


def _projected(section: Sequence[RunGroup]) -> dict[str, Any]:
    """A full search of as many candidates, from the trials of all runs of a section."""
    runs = [run for group in section for run in group.runs]
    first = section[0].first
    used = [trials_used(run.search, ("told", "told_full")) for run in runs]
    tasks = [task for one in used for task in one.tasks]
    candidates = float(np.mean([len(run.state.selector.candidates) for run in runs]))
    times = candidates * first.state.trials
    row: dict[str, Any] = {
        "benchmark": section[0].benchmark,
        "model": section[0].model,
        "method": "full, projected",
        "fraction": 1.0,
        "part": SEARCH,
        "n": len(runs),
        "trials": times * len(first.pool),
        "failed": None,
    }
    prepared = [_spent(run).ledgers[PREPARATION] for run in runs]
    for measure in ("tokens_in", "tokens_out", "dollars", "hours"):
        values = np.concatenate([one.used[measure] for one in used])
        each = projected(tasks, values, len(first.pool))
        name = "work" if measure == "hours" else measure
        more = float(np.mean([_amount(one, name) for one in prepared]))
        row[name] = None if each is None else each * times + more
    if not all(run.priced for run in runs):
        row["dollars"] = None
    return row


def _amount(ledger: Ledger, measure: str) -> float:
    return ledger.seconds / SECONDS if measure == "work" else float(getattr(ledger, measure))
