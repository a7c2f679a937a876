"""The tables ablation, swap and ties: what single parts of a protocol do to the final score."""

from collections.abc import Sequence

from coevolve.core.estimators import Estimator
from coevolve.core.posterior import JointModel
from coevolve.errors import InputError, NoOutcomeError
from coevolve_reproductions.run_tables.recorded_run import RecordedRun
from coevolve_reproductions.run_tables.run_group import (
    BENCHMARK,
    COMMON,
    FRACTION,
    METHOD,
    RUNS,
    SECTIONS,
    RunGroup,
    RunGroups,
)
from coevolve_reproductions.tables.ablation import ticks
from coevolve_reproductions.tables.swap import ESTIMATORS
from coevolve_reproductions.tables.table import Column, Row, Table, mean_and_sd
from coevolve_reproductions.tables.ties import winners

_ABLATED = ("naive", "random-resample", "random-estimate", "task-coevolve")
_SWAPPED = ("Hájek", "difference")


def score_of(groups: RunGroups) -> str:
    """What the final score of these runs is, in words."""
    sealed = {run.test is not None for run in groups.runs}
    if sealed == {True}:
        return "on the sealed test"
    return "on every validation task" if sealed == {False} else "on the sealed test or every task"


def ablation(groups: RunGroups) -> Table:
    """The final score of each row of the paper's ablation, with the components it has."""
    rows: list[Row] = []
    for group in groups.groups:
        if group.first.protocol.name not in _ABLATED:
            continue
        found = [groups.final(run) for run in group.runs]
        rows.append(
            {
                **group.row,
                **ticks(group.first.protocol),
                "n": sum(value is not None for value in found),
                **mean_and_sd("score", found),
            }
        )
    if not rows:
        raise InputError(
            f"the table ablation needs runs of {', '.join(_ABLATED)}; none was found."
        )
    columns = (
        BENCHMARK,
        groups.models,
        FRACTION,
        METHOD,
        Column(name="rotates", heading="Rot.", kind="tick"),
        Column(name="estimates", heading="Est.", kind="tick"),
        Column(name="weighted", heading="VWS", kind="tick"),
        RUNS,
        Column(name="score", heading="mean", kind="score", spread="score_sd"),
    )
    note = groups.note(
        f"Score of the chosen candidate {score_of(groups)} in percent: mean ± SD over n runs. "
        "Rot.: new tasks every round; Est.: an estimate of the full set instead of the raw mean; "
        "VWS: tasks drawn by variance weights."
    )
    table = Table(
        name="ablation",
        title="Component ablation of searches",
        columns=columns,
        rows=tuple(rows),
        note=note,
    )
    return table.headed(*COMMON).sectioned(*SECTIONS)


def swap(groups: RunGroups) -> Table:
    """Searches guided by each estimator, and the same draws under the other one."""
    rows: list[Row] = []
    for group in groups.groups:
        own = group.first.estimator
        for run in group.runs:
            if run.state.ended is None:
                groups.lack(run, None, "test")
        if group.first.full or own not in _SWAPPED:
            continue
        found = [groups.final(run) for run in group.runs]
        rows.append(_swapped(group, own, "search", found))
        for other in _SWAPPED:
            if other != own:
                names = [_winner(run, ESTIMATORS[other]) for run in group.runs]
                again = [
                    _final(groups, run, name) for run, name in zip(group.runs, names, strict=True)
                ]
                # known first are the winners that the search chose too: their mean would mislead
                complete = None not in again
                rows.append(_swapped(group, other, "replay", again if complete else []))
    if not rows:
        raise InputError(
            "the table swap needs runs that a Hájek or difference estimator has guided, such as "
            "those of task-coevolve; none was found."
        )
    columns = (
        BENCHMARK,
        groups.models,
        FRACTION,
        METHOD,
        Column(name="estimator", heading="Estimator"),
        Column(name="kind", heading="kind"),
        RUNS,
        Column(name="score", heading="score", kind="score", spread="score_sd"),
    )
    note = groups.note(
        f"Score of the winner {score_of(groups)} in percent: mean ± SD over n runs. search: the "
        "estimator guided the search; replay: the estimator chooses a winner from the outcomes of "
        "the search in the row above."
    )
    table = Table(
        name="swap",
        title="Estimator swap of searches",
        columns=columns,
        rows=tuple(rows),
        note=note,
    )
    return table.headed(*COMMON, "method").sectioned(*SECTIONS)


def _swapped(group: RunGroup, estimator: str, kind: str, found: Sequence[float | None]) -> Row:
    return {
        **group.row,
        "method": group.label_without("estimator"),
        "estimator": estimator,
        "kind": kind,
        "n": sum(value is not None for value in found),
        **mean_and_sd("score", found),
    }


def _winner(run: RecordedRun, estimator: Estimator | JointModel) -> str | None:
    """The candidate that another estimator prefers; None before any outcome."""
    try:
        return str(run.search.re_estimated(estimator).choice().candidate)
    except NoOutcomeError:
        return None


def ties(groups: RunGroups) -> Table:
    """How many candidates share the top score, and the winners of both tie-break rules."""
    rows: list[Row] = []
    for group in groups.groups:
        both = [_both(run) for run in group.runs]
        known = [names[0] for names in both if names[0] is not None]
        pairs = list(zip(group.runs, both, strict=True))
        early = [_final(groups, run, first) for run, (_, first, _) in pairs]
        late = [_final(groups, run, last) for run, (_, _, last) in pairs]
        rows.append(
            {
                **group.row,
                "n": len(group.runs),
                "ties": _range(known),
                "least": min(known, default=None),
                "most": max(known, default=None),
                **_of_all("earliest", early),
                **_of_all("latest", late),
            }
        )
    columns = (
        BENCHMARK,
        groups.models,
        FRACTION,
        METHOD,
        RUNS,
        Column(name="ties", heading="Ties"),
        Column(name="least", heading="least", kind="count"),
        Column(name="most", heading="most", kind="count"),
        Column(name="earliest", heading="Earliest", kind="score", spread="earliest_sd"),
        Column(name="latest", heading="Latest", kind="score", spread="latest_sd"),
    )
    note = groups.note(
        "Ties: candidates that share the top score, from the run with the fewest to that with "
        f"the most; 1 means no tie. Earliest and Latest: score of the winner {score_of(groups)} "
        "in percent, mean ± SD over n runs, if exact ties go to the earliest or the latest "
        "proposal."
    )
    table = Table(
        name="ties",
        title="Sensitivity of searches to the tie-break rule",
        columns=columns,
        rows=tuple(rows),
        note=note,
        hidden=frozenset({"least", "most"}),
    )
    return table.headed(*COMMON).sectioned(*SECTIONS)


def _both(run: RecordedRun) -> tuple[int | None, str | None, str | None]:
    """The number of candidates at the top, and the earliest and the latest of them."""
    try:
        early, late = winners(run.search)
    except NoOutcomeError:
        return None, None, None
    return 1 + len(early.tied_with), str(early.candidate), str(late.candidate)


def _final(groups: RunGroups, run: RecordedRun, name: str | None) -> float | None:
    """The final score of a candidate that need not be the winner; None without a candidate."""
    if name is None:
        groups.lack(run, None, "validation")
        return None
    return groups.final(run, name)


def _of_all(name: str, values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean and SD, if all values are known: means over different runs do not compare."""
    return mean_and_sd(name, [] if None in values else values)


def _range(counts: Sequence[int]) -> str | None:
    if not counts:
        return None
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"
