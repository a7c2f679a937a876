"""`coevolve rescore`: candidates of a run on every task, recorded in the run."""

from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.changed_config import AcceptChange
from coevolve.cli.command_arguments import AsJson, Quiet, find_run, is_run
from coevolve.cli.console_output import SteadyScreen, redirected_prints
from coevolve.cli.evaluate_command import Split, Tasks, Workers, print_table, watch
from coevolve.errors import InputError


def rescore(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="CANDIDATE... [RUN]",
            help="Candidates, and the run folder or TOML file. Default: the only run in runs/.",
        ),
    ],
    split: Tasks = Split.VALIDATION,
    workers: Workers = None,
    accept_change: AcceptChange = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate candidates of a run on every task; the scores join its journal."""
    from coevolve.runs.rescoring import check_rescore, sealed_uses
    from coevolve.runs.rescoring import rescore as scores_of
    from coevolve.views.report import sealed_warning

    folder, names = _run(words)
    console = SteadyScreen(stderr=as_json)
    with redirected_prints(as_json):
        state = check_rescore(folder, names, split.value, workers)
        warning = sealed_warning(sealed_uses(state, names)) if split is Split.TEST else ""
        found = watch(
            console,
            lambda listen: scores_of(
                folder,
                names,
                split=split.value,
                workers=workers,
                accept_change=accept_change,
                listen=listen,
            ),
            (warning,) if warning else (),
            quiet=quiet,
        )
    print_table(console, found, as_json=as_json)


def _run(words: list[str]) -> tuple[Path, list[str]]:
    """The run, which may be the first or the last word, and the candidates."""
    runs = [at for at in dict.fromkeys((len(words) - 1, 0)) if is_run(Path(words[at]))]
    at = runs[0] if runs else None
    names = [word for place, word in enumerate(words) if place != at]
    if not names:
        raise InputError(f"{words[0]} is a run; name candidates of it: coevolve rescore CANDIDATE")
    return find_run(None if at is None else Path(words[at])), names
