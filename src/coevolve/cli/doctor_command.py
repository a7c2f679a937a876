"""`coevolve doctor`: checks of the machine, a project and a run, and how to fix problems."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from coevolve.cli.command_arguments import (
    JOURNAL,
    AsJson,
    config_of_run,
    find_run,
    started_by_optimize,
)
from coevolve.cli.console_output import Screen, echo, echo_json, redirected_prints
from coevolve.errors import CoevolveError
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
    as_json: AsJson = False,
) -> None:
    """Check machine, isolation, project and journal; exit with 1 if something must be fixed."""
    if repair:
        _repair(find_run(target), as_json)
        return
    console = Screen()
    findings: list[Finding] = []
    with redirected_prints(as_json):
        for finding in _findings(target):
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


def _findings(target: Path | None) -> "Iterator[Finding]":
    from coevolve.findings import failed, passed
    from coevolve.runs.config import read_config
    from coevolve.runs.health_checks import (
        check_access,
        check_embedded,
        check_groups,
        check_isolation,
        check_machine,
        check_model,
        check_project,
        check_run,
    )
    from coevolve.runs.session import run_folder

    config, base, folder = None, Path(), None
    if target is not None and target.suffix == ".toml":
        try:
            config, base = read_config(target), target.parent
        except CoevolveError as error:
            yield failed("configuration", str(error), "Correct the file and check again.")
        else:
            yield passed("configuration", str(target))
            known = run_folder(target, config)
            folder = known if (known / JOURNAL).exists() else None
    elif target is not None:
        folder = find_run(target)
        try:
            config, base = config_of_run(folder) or (None, base)
        except CoevolveError as error:
            if started_by_optimize(folder):
                yield passed("configuration", "none; coevolve.optimize started the run")
            else:
                yield failed("configuration", str(error))
    yield from check_machine(folder or base, config)
    yield from check_isolation(config)
    yield from check_groups()
    yield from check_access(config)
    if target is None:
        yield from check_embedded()
    if folder is not None:
        yield from check_run(folder)
    if config is not None:
        yield from check_model(config, base)
        yield from check_project(config, base)


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
