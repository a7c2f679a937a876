"""`coevolve doctor`: checks of the machine, a project and a run, and how to fix problems."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from coevolve.cli.command_arguments import SET_NEEDS_FILE, AsJson, Set, find_run
from coevolve.cli.console_output import Screen, echo, echo_json, redirected_prints
from coevolve.errors import InputError
from coevolve.formatting import plural

if TYPE_CHECKING:
    from coevolve.findings import Finding

MARKS = {"passed": ("ok", "green"), "noted": ("note", "yellow"), "failed": ("fix", "bold red")}


def doctor(
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE.toml|RUN]",
            help="A project or a run to check. Default: the machine only.",
            show_default=False,
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Repair a damaged journal: keep the intact events before the damage."
        ),
    ] = False,
    changed: Set = None,
    as_json: AsJson = False,
) -> None:
    """Check machine, isolation, project and journal; exit with 1 if something must be fixed."""
    file = target is not None and target.suffix == ".toml"
    if changed and (repair or not file):
        raise InputError(SET_NEEDS_FILE)
    if repair:
        _repair(find_run(target), as_json)
        return
    from coevolve.runs.config_overrides import parse_overrides
    from coevolve.runs.health_checks import check_all

    overrides = parse_overrides(changed or ())
    console = Screen()
    findings: list[Finding] = []
    with redirected_prints(as_json):
        for finding in check_all(
            target if target is None or file else find_run(target), overrides=overrides
        ):
            findings.append(finding)
            if not as_json:
                console.print(_line(finding))
    wrong = sum(finding.kind == "failed" for finding in findings)
    if as_json:
        echo_json([asdict(finding) for finding in findings])
    else:
        console.print(f"{plural(wrong, 'problem')} to fix." if wrong else "No problems found.")
    if wrong:
        raise typer.Exit(1)


def _repair(folder: Path, as_json: bool) -> None:
    from coevolve.store import repair

    done = repair(folder)
    if as_json:
        backup = None if done.backup is None else str(done.backup)
        echo_json({"kept": done.kept, "lost": done.lost, "backup": backup})
        return
    if done.backup is None:
        echo(f"All {done.kept:,} events of {folder} are intact; nothing was changed.")
        return
    lost = "an unknown number" if done.lost is None else f"{done.lost:,}"
    echo(
        f"Kept {done.kept:,} events of {folder}, lost {lost}. The damaged journal is kept as "
        f"{done.backup}.\nResume with: coevolve resume {folder}"
    )


def _line(finding: "Finding") -> Table:
    mark, style = MARKS[finding.kind]
    line = Table.grid(padding=(0, 2))
    line.add_column(width=4)
    line.add_column(overflow="fold")
    text = Text.assemble((f"{finding.about}: ", "bold"), finding.detail)
    if finding.advice:
        stop = "" if finding.detail.endswith((".", "!", "?")) else "."
        text.append(f"{stop} {finding.advice}", "" if finding.kind == "passed" else "yellow")
    line.add_row(Text(mark, style), text)
    return line
