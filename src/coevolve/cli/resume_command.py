"""`coevolve resume`: continue a run that was stopped, or extend one that has ended."""

from typing import Annotated

import typer

from coevolve.cli.changed_config import (
    AcceptChange,
    Decision,
    Extend,
    IgnoreChanges,
    check_extends,
    wanted_limits,
)
from coevolve.cli.command_arguments import AsJson, Quiet, Run, find_run
from coevolve.cli.console_output import at_terminal, redirected_prints
from coevolve.cli.run_command import start
from coevolve.cli.run_progress import work


def resume(
    run: Run = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Extend: the new total of rounds.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Extend: the new cap on trials, in total.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Extend: the new cap on tokens, in total.")
    ] = None,
    dollars: Annotated[
        float | None,
        typer.Option(metavar="D", help="Extend: the new cap on US dollars, in total."),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(metavar="H", help="Extend: the new cap on hours, in total.")
    ] = None,
    extend: Extend = False,
    ignore_changes: IgnoreChanges = False,
    accept_change: AcceptChange = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Resume a stopped run; with new limits, extend a run that has ended.

    The result of a stopped run is the same as without the stop.
    """
    from coevolve.runs.config import read_config
    from coevolve.runs.config_changes import config_in_file, recorded_overrides
    from coevolve.runs.session import read_state

    given = {"rounds": rounds, "trials": trials, "tokens": tokens, "dollars": dollars}
    limits = {name: cap for name, cap in {**given, "hours": hours}.items() if cap is not None}
    with redirected_prints(as_json):
        folder = find_run(run)
        state = read_state(folder)
        decision = Decision(
            extend=extend,
            ignore=ignore_changes,
            ask=at_terminal() and not as_json,
            limits=limits,
            pinned=bool(limits) or accept_change,
        )
        found, overrides = None, recorded_overrides(state, extend=extend)
        if extend or not ignore_changes:
            named = run is not None and run.is_file()
            if run is not None and named:
                found = run, read_config(run, overrides=overrides)
            else:
                found = config_in_file(state, folder, extend=extend)
        course = None if found is None else decision.course(state, folder, *found)
        limits = wanted_limits(state, limits if course is None else course.limits)
        if extend:
            check_extends(state, folder if found is None else found[0], limits)
    if found is not None and course is not None and course.new_run is not None:
        start(found[0], name=course.new_run, overrides=overrides, quiet=quiet, as_json=as_json)
        return
    work(folder, quiet=quiet, as_json=as_json, limits=limits, accept_change=accept_change)
