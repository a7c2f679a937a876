"""The table difficulty: how many tasks no, few, half or almost all candidates solve."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.core.outcome_table import GROUPS
from coevolve.errors import InputError
from coevolve_reproductions.tables.analysis_source import Settings, about, replayed
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import (
    BLUE,
    INK,
    ORANGE,
    PALE,
    RED,
    SKY,
    Column,
    Row,
    Table,
)

LABELS = {
    "never": "no candidate",
    "sometimes": "a few (p̄ < 1/3)",
    "mixed": "about half",
    "mostly": "almost all (p̄ > 2/3)",
    "unseen": "not evaluated yet",
}
_COLORS = dict(zip(GROUPS, (RED, ORANGE, SKY, BLUE, PALE), strict=True))
_SPREAD = (0, 0.2, 0.5, 1)
"""The rounds that are shown by default, as shares of the last one, as in the paper."""


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """The groups of a run, from what the search had seen after each round."""
    rounds = shown_rounds(len(search.state.rounds), settings.rounds)
    note = (
        f"Tasks by their success rate p̄ over the outcomes up to each round of "
        f"{search.state.protocol.name}; round 0 has the starting harnesses. Later scores on "
        "every task are left out."
    )
    rows = solvability([search], rounds, search.state.protocol.name, None)
    return _table(rows, rounds, [search.state.protocol.name], note)


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """The groups in replays, means over seeds."""
    per_round = 1 if settings.per_round is None else settings.per_round
    last = -(-len(series.generated) // per_round)
    rounds = shown_rounds(last, settings.rounds)
    groups = replayed(series, settings, ["task-coevolve"], report)
    rows = [
        row
        for group in groups
        for row in solvability(group.searches, rounds, group.protocol.name, group.fraction)
    ]
    note = (
        f"Tasks by their success rate p̄ over the outcomes a search has seen up to each round; "
        f"round 0 has the starting harnesses. Means over {about(series, groups)} The protocol "
        "full shows the complete outcomes."
    )
    return _table(rows, rounds, [group.label for group in groups], note)


def shown_rounds(last: int, wanted: Sequence[int] | None) -> tuple[int, ...]:
    """The rounds that a table shows: the wanted ones, or some from the first to the last."""
    if not wanted:
        return tuple(sorted({round(share * last) for share in _SPREAD}))
    for number in wanted:
        if not 0 <= number <= last:
            raise InputError(f"--rounds must be from 0 to {last}, got {number}.")
    return tuple(dict.fromkeys(wanted))


def solvability(
    searches: Sequence[Search], rounds: Sequence[int], protocol: str, fraction: float | None
) -> list[Row]:
    """A row for each group of tasks: how many belong to it after each round, on average."""
    counts = {
        number: [search.history(number).groups() for search in searches] for number in rounds
    }
    shown = [g for g in GROUPS if g != "unseen" or any(c[g] for cs in counts.values() for c in cs)]
    return [
        {"protocol": protocol, "fraction": fraction, "group": group}
        | {"label": LABELS[group]}
        | {f"round_{n}": _mean([c[group] for c in counts[n]]) for n in rounds}
        for group in shown
    ]


def _mean(counts: Sequence[int]) -> float:
    """The mean, a whole number where it is one."""
    return sum(counts) // len(counts) if sum(counts) % len(counts) == 0 else float(np.mean(counts))


def _table(rows: Sequence[Row], rounds: Sequence[int], panels: Sequence[str], note: str) -> Table:
    columns = [
        Column(name="protocol", heading="protocol"),
        Column(name="fraction", heading="ρ", kind="score", digits=0),
        Column(name="group", heading="group"),
        Column(name="label", heading="solved by"),
        *(
            Column(
                name=f"round_{n}", heading=f"round {n}" if n == rounds[0] else str(n), kind="count"
            )
            for n in rounds
        ),
    ]

    def draw(figure: Any) -> None:
        figure.set_size_inches(1.6 + 2.6 * len(panels) + 1.4, 3.4)
        parts = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel, part in zip(parts, panels, _split(rows), strict=True):
            _bars(axes, part, rounds)
            axes.set_title(panel)
            axes.set_xlabel("after round")
        parts[0].set_ylabel("tasks")
        handles, labels = parts[0].get_legend_handles_labels()
        figure.legend(
            handles[::-1],
            labels[::-1],
            title="solved by",
            loc="outside right center",
            fontsize=8,
            alignment="left",
        )

    return Table(
        name="difficulty",
        title="Task solvability over the rounds",
        columns=tuple(columns),
        hidden=frozenset({"group"}),
        rows=tuple(rows),
        note=note,
        draw=draw,
    )


def _split(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows by panel: each begins with the group "never"."""
    starts = [i for i, row in enumerate(rows) if row["group"] == GROUPS[0]]
    return [list(rows[a:b]) for a, b in zip(starts, [*starts[1:], len(rows)], strict=True)]


def _bars(axes: Any, rows: Sequence[Row], rounds: Sequence[int]) -> None:
    places, bottom = np.arange(len(rounds)), np.zeros(len(rounds))
    total = sum(float(row[f"round_{rounds[0]}"] or 0) for row in rows)
    for row in rows:
        counts = np.array([float(row[f"round_{n}"] or 0) for n in rounds])
        group = str(row["group"])
        label, color = str(row["label"]), _COLORS[group]
        axes.bar(places, counts, bottom=bottom, width=0.72, color=color, label=label)
        for place, count, base in zip(places, counts, bottom, strict=True):
            if count >= 0.05 * total:
                tint = INK if group in ("sometimes", "mixed", "unseen") else "white"
                axes.text(
                    place, base + count / 2, f"{count:.0f}", ha="center", va="center", color=tint
                )
        bottom += counts
    axes.set_xticks(places, [str(n) for n in rounds])
    axes.tick_params(axis="x", length=0)
