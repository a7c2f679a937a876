"""Scores that a table lacks: shows their price, asks, and evaluates the candidates."""

import re
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.console_output import SteadyScreen, at_terminal, echo, redirected_prints
from coevolve.cli.evaluate_command import watch
from coevolve.errors import InputError

if TYPE_CHECKING:
    from coevolve.core.events import Event
    from coevolve.runs.rescore_plan import RescorePlan
    from coevolve.views.score_table import ScoreTable

Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Pay without asking. Required without a terminal.")
]


def lacking(folder: Path, which: str) -> "list[RescorePlan]":
    """The candidates of a run without a full-set score, among those that --rescore names."""
    from coevolve.runs.rescore_plan import leading, plan_rescore

    plan = plan_rescore(folder, leading(folder, most_of(which)))
    return [plan] if plan.names else []


def most_of(text: str) -> int | None:
    """The number of candidates that --rescore names; None for all.

    >>> most_of("all"), most_of("top 10"), most_of("top:3"), most_of("5")
    (None, 10, 3, 5)
    """
    if text.strip().lower() == "all":
        return None
    found = re.fullmatch(r"(?:top[\s:=-]*)?(\d{1,9})", text.strip().lower())
    if found is None or int(found[1]) < 1:
        raise InputError(f"--rescore must be all or topN, such as top10, got {text!r}.")
    return int(found[1])


def pay(plans: "Sequence[RescorePlan]", *, yes: bool, quiet: bool) -> None:
    """Show the price, ask, and evaluate what is missing; a repeated command continues.

    Raises:
        InputError: `yes` is not given, and there is no terminal to ask.
    """
    from coevolve.runs.rescore_plan import total_price

    console = SteadyScreen(stderr=True)
    if not plans:
        echo("Nothing to rescore: every score is recorded.", err=True)
        return
    for plan in plans:
        echo(str(plan), err=True)
    if len(plans) > 1:
        echo(f"total: {total_price(plans)}", err=True)
    if not yes:
        if not at_terminal():
            raise InputError("cannot ask without a terminal; add --yes to pay this price.")
        if not typer.confirm("Evaluate them now?", err=True):
            raise typer.Exit(1)
    for plan in plans:
        with redirected_prints(wanted=True):
            watch(console, partial(_evaluate, plan), _warnings(plan), quiet=quiet)


def _warnings(plan: "RescorePlan") -> tuple[str, ...]:
    """A warning if these candidates use the sealed test again."""
    from coevolve.runs.rescoring import sealed_uses
    from coevolve.runs.session import read_state
    from coevolve.views.report import sealed_warning

    if plan.split != "test":
        return ()
    warning = sealed_warning(sealed_uses(read_state(plan.folder), plan.names))
    return (warning,) if warning else ()


def _evaluate(
    plan: "RescorePlan", listen: "Callable[[Event], None]"
) -> "Coroutine[Any, Any, ScoreTable]":
    from coevolve.runs.rescoring import rescore

    return rescore(plan.folder, plan.names, split=plan.split, listen=listen)
