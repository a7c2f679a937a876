"""The tables difficulty, accuracy and phase0: what outcomes and estimates say about tasks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coevolve_reproductions.run_tables.recorded_run import RecordedRun, pool_scores
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
from coevolve_reproductions.tables.difficulty import shown_rounds, solvability
from coevolve_reproductions.tables.table import Column, Row, Table, mean_and_sd


def difficulty(groups: RunGroups, rounds: Sequence[int] | None = None) -> Table:
    """Tasks that no, few, half or almost all candidates solve, after some rounds."""
    rows: list[Row] = []
    shown: set[int] = set()
    for group in groups.groups:
        searches = [run.search for run in group.runs]
        last = min(len(search.state.rounds) for search in searches)
        wanted = shown_rounds(last, rounds)
        shown |= set(wanted)
        found = solvability(searches, wanted, group.first.protocol.name, group.first.fraction)
        rows += [{**row, **group.row, "n": len(searches)} for row in found]
        for run in group.runs:
            if run.state.ended is None:
                groups.lack(run, None, "validation")
    columns = (
        BENCHMARK,
        groups.models,
        METHOD,
        FRACTION,
        RUNS,
        Column(name="group", heading="group"),
        Column(name="label", heading="solved by"),
        *(Column(name=f"round_{n}", heading=f"round {n}", kind="count") for n in sorted(shown)),
    )
    table = Table(
        name="difficulty",
        title="Task solvability over the rounds",
        columns=columns,
        rows=tuple(rows),
        note=groups.note(
            "Validation tasks by their success rate over the outcomes that the search had seen "
            "after a round; round 0 has the starting harnesses. Means over n runs."
        ),
        hidden=frozenset({"group"}),
    )
    return table.headed(*COMMON, "method").sectioned(*SECTIONS)


def accuracy(groups: RunGroups) -> Table:
    """How estimates agree with scores on every task, and the rank of the winner."""
    rows = [_agreement(groups, group) for group in groups.groups if not group.first.full]
    rows = rows or [_agreement(groups, group) for group in groups.groups]
    columns = (
        BENCHMARK,
        groups.models,
        METHOD,
        FRACTION,
        RUNS,
        Column(name="spearman", heading="Spearman", kind="number", spread="spearman_sd"),
        Column(name="place", heading="winner's rank"),
        Column(name="rank", heading="rank", kind="count", spread="rank_sd"),
        Column(name="ranked", heading="of", kind="count"),
        Column(name="scores", heading="true score: winner / best"),
        Column(name="truth", heading="winner", kind="score", spread="truth_sd"),
        Column(name="best", heading="best", kind="score", spread="best_sd"),
    )
    table = Table(
        name="accuracy",
        title="Accuracy of the estimates against scores on every task",
        columns=columns,
        rows=tuple(rows),
        note=groups.note(
            "Spearman: rank correlation of estimates and true scores. Winner's rank: by true "
            "score, among the candidates that have one. Scores in percent; means over n runs."
        ),
        hidden=frozenset({"rank", "ranked", "truth", "best"}),
        minor=("n", "scores"),
    )
    return table.headed(*COMMON, "method").sectioned(*SECTIONS)


def _agreement(groups: RunGroups, group: RunGroup) -> Row:
    found = [run.search.verdict() for run in group.runs if run.search.estimates()]
    for run in group.runs:
        lacking = [name for name in run.search.estimates() if name not in run.search.truth]
        for name in lacking:
            groups.lack(run, str(name), "validation")
        if run.state.ended is None:
            groups.lack(run, None, "validation")
    row: dict[str, Any] = {
        **group.row,
        "n": sum(verdict.spearman is not None for verdict in found),
        **mean_and_sd("spearman", [verdict.spearman for verdict in found]),
        **mean_and_sd("rank", [verdict.rank for verdict in found]),
        **mean_and_sd("ranked", [verdict.ranked for verdict in found]),
        **mean_and_sd("truth", [verdict.truth for verdict in found]),
        **mean_and_sd("best", [verdict.best for verdict in found]),
    }
    if row["rank"] is not None:
        row["place"] = f"{row['rank']:.3g} / {row['ranked']:.3g}"
    if row["truth"] is not None and row["best"] is not None:
        row["scores"] = f"{100 * row['truth']:.1f} / {100 * row['best']:.1f}"
    return row


def phase0(groups: RunGroups) -> Table:
    """The starting harnesses on each pool, the mean p̄, and the tasks at p̄ = 0 and p̄ = 1."""
    rows: list[Row] = []
    starts: dict[str, None] = {}
    for section in groups.sections():
        runs = [run for group in section for run in group.runs]
        measured = [run for run in runs if run.state.selector.starts]
        for run in runs:
            if run not in measured:
                groups.lack(run, None, "validation")
            starts |= dict.fromkeys(run.state.starts)
        pool = section[0].first.pool
        rows += [_pool_row(section[0], measured, name) for name in pool.names]
    columns = (
        BENCHMARK,
        groups.models,
        Column(name="pool", heading="Pool"),
        Column(name="tasks", heading="tasks", kind="count"),
        RUNS,
        *(
            Column(name=f"start:{name}", heading=name, kind="score", spread=f"start:{name}_sd")
            for name in starts
        ),
        Column(name="mean", heading="mean p̄", kind="number"),
        Column(name="zeros", heading="p̄ = 0", kind="count"),
        Column(name="ones", heading="p̄ = 1", kind="count"),
    )
    table = Table(
        name="phase0",
        title="Phase 0 on the validation tasks",
        columns=columns,
        rows=tuple(rows),
        note=groups.note(
            "Scores of the starting harnesses in percent; p̄ is the success rate of a task over "
            "them, from 0 to 1. Means over n runs."
        ),
    )
    return table.headed("benchmark", "model").sectioned(*SECTIONS)


def _pool_row(group: RunGroup, runs: Sequence[RecordedRun], pool: str) -> Row:
    """A pool; p̄ counts the starting harnesses alone."""
    members = group.first.pool.members(pool)
    histories = [run.state.selector.history(0, 0).select(members) for run in runs]
    row: dict[str, Any] = {
        "benchmark": group.benchmark,
        "model": group.model,
        "pool": pool,
        "tasks": len(members),
        "n": len(runs),
        "mean": mean_and_sd("p", [float(one.anchors.mean()) for one in histories])["p"],
        "zeros": mean_and_sd("p", [int(one.never_solved.sum()) for one in histories])["p"],
        "ones": mean_and_sd("p", [int(np.sum(one.mean == 1)) for one in histories])["p"],
    }
    for name in dict.fromkeys(name for run in runs for name in run.state.starts):
        scores = [pool_scores(run.state.selector, name).get(pool) for run in runs]
        row |= mean_and_sd(f"start:{name}", scores)
    return row
