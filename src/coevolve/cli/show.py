"""`coevolve show`: one candidate, task or round of a run."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from coevolve.cli.places import take_run
from coevolve.errors import InputError, nearest

if TYPE_CHECKING:
    from coevolve.search.run_state import RunState

USAGE = "coevolve show [RUN] CANDIDATE|TASK|ROUND"


class Kind(StrEnum):
    """What can be shown."""

    CANDIDATE = "candidate"
    TASK = "task"
    ROUND = "round"


def show(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] CANDIDATE|TASK|ROUND",
            help="The run, and a candidate's name, a task's id or a round's number.",
        ),
    ],
    kind: Annotated[
        Kind | None,
        typer.Option("--as", help="What it is, where a word is several of them."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="TASK",
            help="The candidate's trials on this task: question, model calls, answer, trace.",
        ),
    ] = None,
    transcript: Annotated[
        bool,
        typer.Option("--transcript", help="What was said while the candidate was written."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show all that is known of a candidate, of a task or of a round."""
    from coevolve.cli.details import candidate_json, round_json, task_json
    from coevolve.cli.details_print import print_details
    from coevolve.runs.session import read_state
    from coevolve.store import RunStore

    folder, (what,) = take_run(words, 1, USAGE)
    state = read_state(folder)
    known = {
        Kind.CANDIDATE: list(state.candidates),
        Kind.TASK: [*state.selector.pool.tasks, *(state.test.pool.tasks if state.test else ())],
        Kind.ROUND: [str(number) for number in range(len(state.rounds) + 1)],
    }
    if on is not None:
        which(what, known, Kind.CANDIDATE, folder)
        which(on, known, Kind.TASK, folder)
        _show_trials(what, on, folder, as_json)
        return
    if transcript:
        which(what, known, Kind.CANDIDATE, folder)
        _show_transcript(what, state, folder)
        return
    found = which(what, known, kind, folder)
    make = {Kind.CANDIDATE: candidate_json, Kind.TASK: task_json, Kind.ROUND: round_json}[found]
    with RunStore.read(folder) as store:
        details: dict[str, Any] = make(what, state, store)
    if as_json:
        typer.echo(json.dumps(details, indent=2))
    else:
        print_details(Console(highlight=False), found.value, details)


def _show_transcript(candidate: str, state: "RunState", folder: Path) -> None:
    from coevolve.cli.details import transcripts
    from coevolve.search.candidate import plain
    from coevolve.store import RunStore

    addresses = transcripts(candidate, state)
    if not addresses:
        raise InputError(f"nothing was said while {candidate!r} was written.")
    with RunStore.read(folder) as store:
        for address in addresses:
            if address in (turn.repairs.get(candidate) for turn in state.rounds):
                typer.echo(f"\n===== {candidate}, mended =====\n")
            text = store.get(address).decode(errors="replace")
            typer.echo(plain(text, len(text)))  # an agent may have printed what commands terminals


def _show_trials(candidate: str, task: str, folder: Path, as_json: bool) -> None:
    from coevolve.cli.trials import print_trials, trials_json
    from coevolve.store import RunStore

    with RunStore.read(folder) as store:
        trials = trials_json(candidate, task, store)
    if as_json:
        typer.echo(json.dumps(trials, indent=2, ensure_ascii=False))
    elif trials:
        print_trials(Console(highlight=False), trials)
    else:
        typer.echo(
            f"{candidate} has no outcome on {task}; `coevolve show {folder} {candidate}` lists "
            "those it has."
        )


def which(what: str, known: dict[Kind, list[str]], kind: Kind | None, folder: Path) -> Kind:
    """What a word means, if that is plain."""
    kinds = [kind] if kind is not None else list(Kind)
    found = [kind for kind in kinds if what in known[kind]]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{what!r} is a {' and a '.join(found)}; say which with --as {found[0]}.")
    words = [word for kind in kinds for word in known[kind]]
    most = len(known[Kind.ROUND]) - 1
    raise InputError(
        f"{folder} has no {', '.join(kinds[:-1])}{' or ' if len(kinds) > 1 else ''}{kinds[-1]} "
        f"{what!r}.{nearest(what, words)} Its rounds are 0 to {most}; `coevolve status {folder}` "
        "lists the candidates."
    )
