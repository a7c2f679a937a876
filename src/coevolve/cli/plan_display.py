"""`coevolve run --dry-run`: what would run, and what it costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coevolve.cli.command_arguments import find_run
from coevolve.cli.console_output import (
    Screen,
    echo_json,
    facts,
    fitted,
    redirected_prints,
)
from coevolve.cli.estimate_command import forecast_table
from coevolve.cli.matrix_runs import MatrixPart

if TYPE_CHECKING:
    from coevolve.runs.config_overrides import Override
    from coevolve.runs.run_plan import MatrixPlan

NOTHING = "Nothing was created."


def print_plan(
    file: Path,
    *,
    name: str | None,
    seed: int | None,
    overrides: "Sequence[Override]",
    like: Path | None,
    as_json: bool,
) -> None:
    """Print the plan and the price of one run."""
    from coevolve.runs.config import read_config
    from coevolve.runs.run_plan import plan_run

    with redirected_prints(as_json):
        config = read_config(file, name=name, seed=seed, overrides=overrides)
        plan = plan_run(file, config, like=None if like is None else find_run(like))
    if as_json:
        echo_json(plan.to_json())
        return
    console = Screen()
    there = " (it exists already)" if plan.exists else ""
    console.print(
        facts(
            [
                ("run", f"{plan.folder}{there}"),
                ("search", plan.what),
                ("starts", ", ".join(plan.starts)),
                ("tasks", plan.tasks),
                (
                    "evaluations",
                    f"{plan.evaluations:,}, counted as in the paper: new candidates only",
                ),
            ]
        )
    )
    console.print(forecast_table(plan.forecast, console.width))
    drawn = [] if plan.forecast.drawn is None else [str(plan.forecast.drawn)]
    for line in (*drawn, str(plan.forecast.savings), *plan.forecast.notes, NOTHING):
        console.print(line)


def print_matrix_plan(part: MatrixPart, *, like: Path | None, as_json: bool) -> None:
    """Print the plan and the price of each row of a matrix, and of the whole."""
    from coevolve.runs.run_plan import plan_matrix

    with redirected_prints(as_json):
        matrix, runs = part.read()
        plan = plan_matrix(matrix, runs, like=None if like is None else find_run(like))
    if as_json:
        echo_json(plan.to_json())
        return
    _print_matrix(Screen(), plan)


def _print_matrix(console: Screen, plan: "MatrixPlan") -> None:
    from coevolve.views.forecast import PRICED, shown

    measures = tuple("time" if name == "hours" else name for name in PRICED)
    headings = ("row", "runs", "ended", "draws", "evaluations\nof a run", "trials", *measures)
    lines: list[list[str]] = [
        [
            row.name,
            str(row.runs),
            str(row.ended),
            "/".join(str(pool.drawn) for pool in row.plan.pools),
            f"{row.plan.evaluations:,}",
            shown(row.cost.trials, "trials"),
            *(shown(row.cost.spent.get(name), name) for name in PRICED),
        ]
        for row in plan.rows
    ]
    total = plan.total
    lines.append(
        [
            "total",
            str(sum(row.runs for row in plan.rows)),
            str(sum(row.ended for row in plan.rows)),
            "",
            "",
            shown(total.trials, "trials"),
            *(shown(total.spent.get(name), name) for name in PRICED),
        ]
    )
    unknown = [
        heading
        for heading, name in zip(measures, PRICED, strict=True)
        if all(row.cost.spent.get(name) is None for row in plan.rows)
    ]
    drop = (*unknown, "draws", "ended", "evaluations\nof a run", "tokens", "time", "dollars")
    made = fitted(console.width, headings, lines, right=headings[1:], wrap=("row",), drop=drop)
    made.rows[-2].end_section = True
    made.rows[-1].style = "bold"
    if made.caption is not None:
        made.caption = f"{made.caption}; --json prints them"
    console.print(made)
    kept = {column.header for column in made.columns}
    if not {*measures} <= kept:
        whole = dict(zip(headings, lines[-1], strict=True))
        amounts = ", ".join(f"{name} {whole[name]}" for name in ("trials", *measures))
        console.print(f"total: {amounts}")
    pools = plan.rows[0].plan.pools
    if "draws" in kept and len(pools) > 1:
        console.print(f"draws: tasks of {'/'.join(pool.pool for pool in pools)} in each round.")
    for note in (*plan.notes, NOTHING):
        console.print(note)
    if plan.left < sum(row.runs for row in plan.rows):
        console.print(f"This is the price of all runs; {plan.left} of them have not ended yet.")
