"""The tables tc, tb and stronger: what the chosen harnesses score, beside hand-designed ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coevolve.errors import InputError
from coevolve.search.run_state import full_selector
from coevolve_reproductions.run_tables.recorded_run import RecordedRun, pool_scores
from coevolve_reproductions.run_tables.run_group import (
    BENCHMARK,
    FRACTION,
    METHOD,
    RUNS,
    RunGroup,
    RunGroups,
    short_model,
)
from coevolve_reproductions.tables.cost import reduction
from coevolve_reproductions.tables.engine_run import evaluations_like, told_in_full
from coevolve_reproductions.tables.table import Column, Row, Table, mean_and_sd

HAND, EVOLVED = "Hand-designed harnesses", "Evolved harnesses (harness search)"


_SECTION = Column(name="section", heading="section")


@dataclass(slots=True)
class _Hand:
    """A hand-designed harness: its scores by pool, and in total, of each run."""

    pools: list[dict[str, float]] = field(default_factory=list)
    total: list[float] = field(default_factory=list)


def tc(groups: RunGroups) -> Table:
    """Scores on the sealed test by pool: hand-designed harnesses, full search, protocols."""
    first = groups.one_benchmark("tc")
    if first.test is None:
        raise InputError(
            f"{first.folder}: the benchmark has no sealed test, which the table tc shows; use "
            "`coevolve table tb` for scores on the validation tasks."
        )
    pools = first.test.pool.names
    rows: list[Row] = []
    for section in groups.sections():
        rows += _hand_designed(section, pools)
        rows += [_evolved(groups, group, section, pools) for group in section]
    columns = (
        _SECTION,
        groups.models,
        METHOD,
        FRACTION,
        RUNS,
        Column(name="per_round", heading="Val/iter"),
        Column(name="evaluations", heading="Evals", kind="count"),
        *(
            Column(name=_pool(name), heading=name, kind="score", spread=f"{_pool(name)}_sd")
            for name in pools
        ),
        Column(name="test", heading="Avg", kind="score", spread="test_sd"),
        Column(name="gain", heading="Avg vs. full", kind="difference"),
        Column(name="saved", heading="evals vs. full (%)", kind="difference", digits=0),
    )
    measured = any(group.first.full for group in groups.groups)
    note = groups.note(
        f"Score on the sealed test in percent: mean ± SD over n runs. Val/iter: validation tasks "
        f"drawn per round ({'/'.join(first.pool.names)}). Evals: trials of candidates during the "
        "search.",
        "vs. full compares with full search: points of Avg, and evaluations."
        if measured
        else "No run is a full search (protocol full), so Avg vs. full is unknown; evals vs. full "
        "compares with all candidates on all tasks.",
    )
    table = Table(
        name="tc",
        title="Sealed test of the chosen harnesses",
        columns=columns,
        rows=tuple(rows),
        note=note,
        section=_SECTION.name,
        hidden=frozenset({_SECTION.name}),
        minor=("saved", "gain", "per_round", "evaluations", "n", *map(_pool, reversed(pools))),
    )
    return table.headed("model")


def _pool(name: str) -> str:
    return f"test:{name}"


def _hand_designed(section: Sequence[RunGroup], pools: Sequence[str]) -> Iterator[Row]:
    """Starting harnesses, and others that `coevolve evaluate --split test` has scored."""
    model = section[0].model
    for name, found in _hand_scores(section).items():
        if not found.total:
            continue
        yield {
            "section": HAND,
            "model": model,
            "method": name,
            "n": len(found.total),
            **mean_and_sd("test", found.total),
            **_by_pool(found.pools, pools),
        }


def _hand_scores(section: Sequence[RunGroup]) -> dict[str, _Hand]:
    """The scores by name; different files with the same name are told apart."""
    runs = [run for group in section for run in group.runs]
    found: dict[tuple[str, str], _Hand] = {}
    known: set[str] = set()
    for run in runs:
        address = {name: one.candidate.address for name, one in run.state.candidates.items()}
        known |= set(address.values())
        for name in run.state.starts:
            if (value := run.tested(name)) is not None:
                one = found.setdefault((name, address[name]), _Hand())
                one.total.append(value)
                one.pools.append(run.tested_pools(name))
    for key, pools, value in _evaluated(runs, known):
        one = found.setdefault(key, _Hand())
        one.total.append(value)
        one.pools.append(pools)
    names = [name for name, _ in found]
    return {
        name if names.count(name) == 1 else f"{name} ({address[:6]})": one
        for (name, address), one in found.items()
    }


def _evaluated(
    runs: Sequence[RecordedRun], known: set[str]
) -> Iterator[tuple[tuple[str, str], dict[str, float], float]]:
    """Harnesses of the projects that ran the sealed test and are part of no run."""
    seen = set(known)
    for run in runs:
        for state in evaluations_like(run.folder, run.state):
            if state.test is None:
                continue
            selector = full_selector(state.test.pool, run.state.trials)
            for name, told in told_in_full(state, "test", run.state.trials):
                address = state.candidates[name].candidate.address
                if address in seen:
                    continue
                seen.add(address)
                selector.tell_full(name, told)
                pools = pool_scores(selector, name)
                if len(pools) == len(selector.pool.names):
                    yield (name, address), pools, selector.estimate(name).value


def _by_pool(found: Sequence[Mapping[str, float]], pools: Sequence[str]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for pool in pools:
        cells |= mean_and_sd(_pool(pool), [one.get(pool) for one in found])
    return cells


def _evolved(
    groups: RunGroups, group: RunGroup, section: Sequence[RunGroup], pools: Sequence[str]
) -> Row:
    tested = [groups.final(run) for run in group.runs]
    parts = [run.tested_pools(run.winner or "") for run in group.runs]
    spent = mean_and_sd("evaluations", [run.state.selector.evaluations for run in group.runs])
    full = _full_of(group, section)
    score = mean_and_sd("test", tested)
    other = None
    if full is not None and full is not group:
        other = mean_and_sd("full", [run.final(run.winner or "") for run in full.runs])["full"]
    every = _full_evaluations(group) if full is None else _evaluations(full)
    return {
        **group.row,
        "section": EVOLVED,
        "n": sum(value is not None for value in tested),
        "per_round": per_round(group),
        "evaluations": spent["evaluations"],
        **_by_pool(parts, pools),
        **score,
        "gain": None if other is None or score["test"] is None else score["test"] - other,
        "saved": None if group.first.full else reduction(spent["evaluations"], every),
    }


def _full_of(group: RunGroup, section: Sequence[RunGroup]) -> RunGroup | None:
    """The full search to compare with: of the same rounds and candidates if there are several."""
    found = [other for other in section if other.first.full]
    same = [other for other in found if other.first.key["search"] == group.first.key["search"]]
    return next(iter(same or found), None)


def _evaluations(group: RunGroup) -> float | None:
    counts = [run.state.selector.evaluations for run in group.runs]
    return mean_and_sd("n", counts)["n"]


def _full_evaluations(group: RunGroup) -> float | None:
    """Trials that a full search of the same candidates needs."""
    counts = [
        len(run.state.selector.candidates) * len(run.pool) * run.state.trials for run in group.runs
    ]
    return mean_and_sd("n", counts)["n"]


def per_round(group: RunGroup) -> str | None:
    """Tasks of each pool that a round draws for a candidate, such as 2/3/3."""
    found = [run.per_round for run in group.runs if run.per_round]
    if not found:
        return None
    ends = [
        (min(low for low, _ in column), max(high for _, high in column))
        for column in zip(*found, strict=True)
    ]
    return "/".join(str(low) if low == high else f"{low}-{high}" for low, high in ends)


def tb(groups: RunGroups) -> Table:
    """Scores on every validation task, one column per model."""
    _same_tasks(groups, "tb")
    models = list(dict.fromkeys(group.model for group in groups.groups))
    rows: dict[tuple[str, str, float | None], dict[str, Any]] = {}
    for section in groups.sections():
        for name, values in _starts(section).items():
            key = (HAND, name, None)
            row = rows.setdefault(key, {"section": HAND, "method": name, "fraction": None})
            row |= _of_model(section[0].model, values)
    for group in sorted(groups.groups, key=lambda one: one.order):
        cells = {"section": EVOLVED, **group.row}
        if _column(group.model) in rows.get((EVOLVED, group.label, group.first.fraction), {}):
            cells["method"] = f"{group.label}, {group.benchmark}"  # other settings, same tasks
        row = rows.setdefault((EVOLVED, cells["method"], group.first.fraction), cells)
        row |= _of_model(group.model, [groups.scored(run) for run in group.runs])
    for row in rows.values():
        _complete(row, models)
    ordered = sorted(rows.values(), key=lambda row: row["section"] != HAND)
    columns = (
        _SECTION,
        METHOD,
        FRACTION,
        Column(name="runs", heading="n"),
        *(
            Column(
                name=_column(model),
                heading=short_model(model, models) or "score",
                kind="score",
                spread=f"{_column(model)}_sd",
            )
            for model in models
        ),
        Column(name="average", heading="Avg", kind="score"),
    )
    first = groups.groups[0].first
    return Table(
        name="tb",
        title="Scores of the chosen harnesses on every validation task",
        columns=columns,
        rows=tuple(ordered),
        note=groups.note(
            f"Score on all {len(first.pool)} validation tasks in percent: mean ± SD over n runs; "
            "Avg is the mean of the models. A score is that of an evaluation on every task, never "
            "an estimate."
        ),
        section=_SECTION.name,
        hidden=frozenset({_SECTION.name}),
    )


def _same_tasks(groups: RunGroups, table: str) -> None:
    first = groups.groups[0].first
    for run in groups.runs:
        if run.pool.to_json() != first.pool.to_json():
            raise InputError(
                f"the table {table} needs runs on the same validation tasks, but {first.folder} "
                f"({first.benchmark}) and {run.folder} ({run.benchmark}) differ; make a table "
                "for each."
            )


def _starts(section: Sequence[RunGroup]) -> dict[str, list[float | None]]:
    """The scores of the starting harnesses in Phase 0, of each run."""
    found: dict[str, list[float | None]] = {}
    for group in section:
        for run in group.runs:
            for name in run.state.starts:
                found.setdefault(name, []).append(run.scored(name))
    return found


def _column(model: str) -> str:
    return f"model:{model}"


def _of_model(model: str, values: Sequence[float | None]) -> dict[str, Any]:
    count = sum(value is not None for value in values)
    return {**mean_and_sd(_column(model), values), f"{_column(model)}_n": count}


def _complete(row: dict[str, Any], models: Sequence[str]) -> None:
    """Add the average over models, and the number of runs."""
    values = [row.get(_column(model)) for model in models]
    row["average"] = None if None in values else mean_and_sd("average", values)["average"]
    counts = [str(row.get(f"{_column(model)}_n", 0)) for model in models]
    row["runs"] = counts[0] if len(set(counts)) == 1 else "/".join(counts)


def stronger(groups: RunGroups) -> Table:
    """The best starting harness, what the search found, and the gain, for each model."""
    rows = []
    for group in groups.groups:
        best = [_best_start(run) for run in group.runs]
        found = [groups.scored(run) for run in group.runs]
        gains = [
            None if value is None or start is None else value - start[1]
            for value, start in zip(found, best, strict=True)
        ]
        names = dict.fromkeys(start[0] for start in best if start is not None)
        rows.append(
            {
                **group.row,
                "n": sum(value is not None for value in found),
                "start": ", ".join(names) or None,
                **mean_and_sd("before", [None if one is None else one[1] for one in best]),
                **mean_and_sd("after", found),
                **mean_and_sd("gain", gains),
            }
        )
    columns = (
        BENCHMARK,
        groups.models,
        METHOD,
        FRACTION,
        RUNS,
        Column(name="start", heading="best start"),
        Column(name="before", heading="start", kind="score", spread="before_sd"),
        Column(name="after", heading="search", kind="score", spread="after_sd"),
        Column(name="gain", heading="gain", kind="difference", spread="gain_sd"),
    )
    table = Table(
        name="stronger",
        title="The gain of a search, by model",
        columns=columns,
        rows=tuple(rows),
        note=groups.note(
            "Scores on every validation task in percent, of the starting harness with the highest "
            "one and of the chosen candidate: mean ± SD over n runs."
        ),
        minor=("n", "start", *groups.spare),
    )
    return table.headed("benchmark", "method", "fraction").sectioned("benchmark")


def _best_start(run: RecordedRun) -> tuple[str, float] | None:
    known = {name: value for name in run.state.starts if (value := run.scored(name)) is not None}
    return max(known.items(), key=lambda item: item[1]) if known else None
