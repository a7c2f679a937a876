"""`coevolve show`: one candidate, task, round or trial of a run."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from coevolve.cli.command_arguments import AsJson, take_run
from coevolve.cli.console_output import Screen, echo, echo_json, facts, fitted
from coevolve.errors import InputError, nearest, titled
from coevolve.formatting import (
    CLIPPED,
    count,
    dollars,
    duration,
    estimate,
    interval,
    is_clipped,
    plural,
    score,
    tasks_seen,
)
from coevolve.views.answer_text import flat

if TYPE_CHECKING:
    from coevolve.search.run_state import RunState
    from coevolve.views.details import (
        CandidateDetails,
        RoundDetails,
        TaskDetails,
        TrialDetails,
    )
    from coevolve.views.outcome_rows import OutcomeRow

USAGE = "coevolve show [RUN] CANDIDATE|TASK|ROUND"
MOST = 40
"""Outcomes that are listed; --json lists all."""
SPLITS = {"validation": "", "rescore": " (rescored)", "test": " (sealed)"}
"""Marks of trials that are not part of the search."""


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
            help="The run, and the name of a candidate, the id of a task or a round number.",
        ),
    ],
    kind: Annotated[
        Kind | None,
        typer.Option("--as", help="What to show, if several have that name."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="TASK",
            help="Show the candidate's trials on this task: question, model calls, answer, trace.",
        ),
    ] = None,
    transcript: Annotated[
        bool,
        typer.Option("--transcript", help="Print the transcript of the candidate's proposal."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the details of a candidate, a task or a round."""
    from coevolve.runs.session import read_state
    from coevolve.search.benchmark_version import mixture
    from coevolve.store import RunStore
    from coevolve.views.details import candidate_details, round_details, task_details

    if on is not None and transcript:
        raise InputError("--on and --transcript show different things; use one of them.")
    if kind not in (None, Kind.CANDIDATE) and (on is not None or transcript):
        option = "--transcript" if transcript else "--on"
        raise InputError(f"{option} shows a candidate; leave out --as {kind}.")
    if transcript and as_json:
        raise InputError("--transcript prints plain text; leave out --json.")
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
    found, console = which(what, known, kind, folder), Screen()
    with RunStore.read(folder) as store:
        if found == Kind.CANDIDATE:
            candidate = candidate_details(what, state, store)
            place = folder / "candidates" / candidate.row.address
            checkout = str(place) if place.is_dir() else None
            mixed = "" if candidate.row.estimate is None else mixture(state)
            data = {**candidate.to_json(), "folder": checkout, "mixed": mixed}
            lines = _candidate(candidate, checkout, mixed, console.width)
        elif found == Kind.TASK:
            task = task_details(what, state, store)
            data, lines = task.to_json(), _task(task, console.width)
        else:
            round = round_details(int(what), state, store)
            ended = state.ended is not None
            data, lines = round.to_json(), _round(round, ended, console.width)
    if as_json:
        echo_json(data)
    else:
        for line in lines:
            console.print(line)


def which(what: str, known: dict[Kind, list[str]], kind: Kind | None, folder: Path) -> Kind:
    """The kind of thing that has a name, if only one has."""
    kinds = [kind] if kind is not None else list(Kind)
    found = [kind for kind in kinds if what in known[kind]]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"{what!r} is a {' and a '.join(found)}; choose one, such as --as {found[0]}."
        )
    words = [word for kind in kinds for word in known[kind]]
    most = len(known[Kind.ROUND]) - 1
    raise InputError(
        f"{folder} has no {', '.join(kinds[:-1])}{' or ' if len(kinds) > 1 else ''}{kinds[-1]} "
        f"{what!r}.{nearest(what, words)} Its rounds are 0 to {most}; `coevolve status {folder}` "
        "lists the candidates."
    )


def _candidate(
    found: "CandidateDetails", folder: str | None, mixed: str, width: int
) -> Iterator[RenderableType]:
    row = found.row
    where = "starting harness" if row.start else f"round {row.round}"
    yield Text.assemble((row.name, "bold cyan"), f"  {where}, {row.status}")
    faults = {"scored 0": row.zeros, "missing": row.missing}
    yield facts(
        {
            "reason": row.reason,
            "hypothesis": row.hypothesis,
            "kind": row.kind,
            "components": ", ".join(row.components),
            "may know answers": "\n".join(row.leaks),
            "repair": "failed its check; sent back once" if found.sent_for_repair else "",
            "parents": ", ".join(row.parents),
            "children": ", ".join(found.children),
            "estimate": _estimate(row.estimate),
            "warning": mixed,
            "all tasks": "" if row.full is None else score(row.full),
            "sealed test": "" if row.test is None else score(row.test),
            "faults": ", ".join(f"{number} {what}" for what, number in faults.items() if number),
            "files": ", ".join(f"{path} ({size:,} bytes)" for path, size in found.files.items()),
            "folder": folder,
            "transcript": "add --transcript to print it" if found.transcripts else "",
        }.items()
    )
    yield _outcomes(found.outcomes, "task", width)


def _estimate(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    parts = [estimate(found), f"{tasks_seen(found)} tasks"]
    limits = interval(found)
    parts += [f"interval {limits}"] if limits not in ("", "exact") else []
    legend = f". {CLIPPED}" if is_clipped(found) else ""
    return f"{', '.join([*parts, found['method']])}{legend}"


def _task(found: "TaskDetails", width: int) -> Iterator[RenderableType]:
    where = f"pool {found.pool}" if found.split == "validation" else "sealed test"
    yield Text.assemble((found.task, "bold cyan"), f"  {where}")
    over = f"{score(found.mean)} over {plural(found.candidates, 'candidate')}"
    draws = ", ".join(f"{draw.round} ({draw.probability:.2f})" for draw in found.draws)
    yield facts(
        {
            "mean score": "" if found.mean is None else over,
            "missing": str(found.missing or ""),
            "drawn in round (probability)": draws,
        }.items()
    )
    yield _outcomes(found.outcomes, "candidate", width)


def _round(found: "RoundDetails", ended: bool, width: int) -> Iterator[RenderableType]:
    missing = f", {found.missing} missing" if found.missing else ""
    state = "" if found.settled else ", incomplete" if ended else ", under way"
    text = f"  {plural(found.trials, 'trial')}{missing}{state}"
    yield Text.assemble((f"round {found.round}", "bold cyan"), text)
    draws = ", ".join(f"{draw.task} ({draw.probability:.2f})" for draw in found.draws)
    yield facts(
        {
            "note": found.note,
            "warning": "under half of its outcomes have a score" if found.thin else "",
            "drew (probability)": draws,
        }.items()
    )
    explained = any(row.hypothesis for row in found.candidates)
    columns = ["candidate", "estimate", "tasks", "status", *(["hypothesis"] if explained else [])]
    rows = [
        [
            row.name,
            "-" if row.estimate is None else estimate(row.estimate),
            "-" if row.estimate is None else tasks_seen(row.estimate),
            f"{row.status}: {row.reason}" if row.reason else row.status,
            *([row.hypothesis] if explained else []),
        ]
        for row in found.candidates
    ]
    wrap = ("candidate", "status", "hypothesis")
    yield fitted(width, columns, rows, wrap=wrap, drop=("tasks", "hypothesis"))
    if any(is_clipped(row.estimate, "value") for row in found.candidates):
        yield CLIPPED


def _outcomes(rows: "Sequence[OutcomeRow]", first: str, width: int) -> RenderableType:
    if not rows:
        return "No outcomes."
    columns: dict[str, Callable[[OutcomeRow], str]] = {
        first: lambda row: getattr(row, first) + SPLITS[row.split],
        "round": lambda row: str(row.round or "start"),
        "trial": lambda row: str(row.trial),
        "score": _score,
        "tokens": lambda row: count(row.tokens_in + row.tokens_out),
        "time": lambda row: "imported" if row.imported else _time(row.seconds),
        "fault": lambda row: titled(row.fault, row.reason) if row.fault else "",
    }
    if first == "task":
        del columns["round"]
    if not any(row.trial for row in rows):
        del columns["trial"]
    if not any(row.tokens_in + row.tokens_out for row in rows):
        del columns["tokens"]
    if not any(row.fault for row in rows):
        del columns["fault"]
    listed = sorted(rows, key=lambda row: row.score is not None)[:MOST]
    made = fitted(
        width,
        tuple(columns),
        [[text(row) for text in columns.values()] for row in listed],
        right=("round", "trial", "score", "tokens", "time"),
        wrap=(first, "fault"),
        drop=("time", "tokens", "round"),
    )
    if len(rows) > MOST:
        more = f"and {len(rows) - MOST} more; --json lists all"
        made.caption = more if made.caption is None else f"{more}; {made.caption}"
        made.caption_justify = "left"
    return made


def _score(row: "OutcomeRow") -> str:
    return "missing" if row.score is None else f"{row.score:.3g}"


def _time(seconds: float) -> str:
    return duration(seconds) if seconds >= 10 else f"{seconds:.2g}s"


def _show_transcript(candidate: str, state: "RunState", folder: Path) -> None:
    from coevolve.store import RunStore
    from coevolve.views.details import transcripts

    addresses = transcripts(candidate, state)
    if not addresses:
        raise InputError(f"{candidate!r} has no transcript.")
    with RunStore.read(folder) as store:
        for kind, address in addresses.items():
            if kind == "repair":
                echo(f"\n===== repair of {candidate} =====\n")
            echo(store.get(address).decode(errors="replace"))


def _show_trials(candidate: str, task: str, folder: Path, as_json: bool) -> None:
    from coevolve.store import RunStore
    from coevolve.views.details import trial_details

    with RunStore.read(folder) as store:
        trials = trial_details(candidate, task, store)
    if as_json:
        found = [trial.to_json() for trial in trials]
        echo_json(found, ascii=False)
    elif trials:
        print_trials(Screen(), trials)
    else:
        echo(
            f"{candidate} has no outcome on {task}; `coevolve show {folder} {candidate}` lists "
            "its outcomes."
        )


def print_trials(console: Screen, trials: "Sequence[TrialDetails]") -> None:
    """Print trials one after another."""
    for number, trial in enumerate(trials):
        row = trial.outcome
        if number:
            console.print()
        where = f"{row.candidate} on {row.task}"
        console.print(Text.assemble((where, "bold cyan"), f"{SPLITS[row.split]}  {_head(row)}"))
        if row.fault:
            console.print(Text(titled(row.fault, row.reason), "yellow"))
        if trial.content is None:
            why = f": imported from {row.imported}" if row.imported else ""
            console.print(Text(f"No trace{why}."))
        else:
            console.print(_rendered(flat(trial.content)))


def _head(row: "OutcomeRow") -> str:
    tokens = row.tokens_in + row.tokens_out
    parts = [f"score {_score(row)}", "imported" if row.imported else _time(row.seconds)]
    parts += [f"trial {row.trial}"] if row.trial else []
    parts += [f"{count(tokens)} tokens"] if tokens else []
    parts += [dollars(row.dollars)] if row.dollars else []
    return ", ".join(parts)


def _rendered(value: Any) -> RenderableType:
    """JSON as a grid: names beside values, texts with their line breaks."""
    if isinstance(value, Mapping):
        given = {str(name): inner for name, inner in value.items() if inner not in (None, [], {})}
        return facts((name, _rendered(inner)) for name, inner in given.items())
    if isinstance(value, list) and any(isinstance(inner, Mapping | list) for inner in value):
        return Group(*map(_rendered, value))
    return Text(", ".join(map(_text, value)) if isinstance(value, list) else _text(value))


def _text(value: Any) -> str:
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)
