"""`coevolve propose`: one proposal to look at, which costs no evaluation."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from coevolve.cli.aside import prints_aside
from coevolve.cli.places import JOURNAL, find_run
from coevolve.errors import InputError

if TYPE_CHECKING:
    from coevolve.runs.config import RunConfig
    from coevolve.runs.trying import OneProposal, Tried


def propose(
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE.toml|RUN]",
            help="A project, or a run to go on from; without one, the only run here.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[Path, typer.Option(help="An empty or new folder for what is proposed.")] = (
        Path("proposal")
    ),
    count: Annotated[
        int | None, typer.Option(min=1, help="Candidates; as many as a round has unless told.")
    ] = None,
    only_view: Annotated[
        bool,
        typer.Option("--view", help="Only lay out what the proposer would see; ask nobody."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Have the next candidates proposed and checked; nothing is evaluated or recorded."""
    from coevolve.proposers.view import lay_out
    from coevolve.runs.trying import trying

    config, base, run = _project(target)
    wanted = count or config.search.candidates
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError(f"{to} is there already; name another folder with --to.")
    with prints_aside(as_json), trying(config, base, run) as attempt:
        to.mkdir(parents=True, exist_ok=True)
        space = lay_out(attempt.view, to, count=wanted) if only_view else None
        made = None if only_view else asyncio.run(attempt.propose(wanted, workspace=to))
    if space is not None:
        shown = {"workspace": str(space.folder), "prompt": space.prompt}
        typer.echo(json.dumps(shown, indent=2) if as_json else f"{to}\n\n{space.prompt}")
    elif made is not None:
        _write(made, to)
        if as_json:
            typer.echo(json.dumps(made.to_json() | {"folder": str(to)}, indent=2))
        else:
            _print(Console(highlight=False), made, to)


def _project(target: Path | None) -> "tuple[RunConfig, Path, Path | None]":
    """The configuration, the folder its paths start from, and the run if there is one."""
    from coevolve.cli.checkup import config_of_run
    from coevolve.runs.config import read_config
    from coevolve.runs.session import run_folder

    if target is not None and target.suffix == ".toml":
        config = read_config(target)
        folder = run_folder(target, config)
        return config, target.parent, folder if (folder / JOURNAL).exists() else None
    folder = find_run(target)
    found = config_of_run(folder)
    if found is None:
        raise InputError(
            f"the run in {folder} cannot be read; `coevolve doctor {folder}` says why."
        )
    return *found, folder


def _write(proposal: "OneProposal", folder: Path) -> None:
    """Write candidates into a folder each, as an agent hands them over."""
    for one in proposal.tried:
        place = _place(folder, one)
        for path, content in one.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(content)
        data = {
            "name": one.candidate.name,
            "parent": next(iter(one.candidate.parents), None),
            "hypothesis": one.candidate.hypothesis,
            "kind": one.candidate.kind,
            "components": list(one.candidate.components),
        }
        (place / "proposal.json").write_text(json.dumps(data, indent=2) + "\n")
    if proposal.transcript is not None:
        said = proposal.transcript.encode(errors="replace")
        (folder / "transcript.txt").write_bytes(said)


def _place(folder: Path, one: "Tried") -> Path:
    """The folder of a candidate; its name might be that of anything else that is written."""
    return folder / "candidates" / one.candidate.name


def _print(console: Console, made: "OneProposal", to: Path) -> None:
    for one in made.tried:
        _print_candidate(console, one, to)
    if not made.tried:
        console.print("Nothing was proposed.")
    for note in made.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    spent = made.usage
    if spent.tokens_in or spent.tokens_out or spent.dollars:
        tokens = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
        console.print(f"It took {tokens}, ${spent.dollars:.4f}.")
    console.print(f"Nothing was evaluated or recorded. All of it is in {to}.", markup=False)


def _print_candidate(console: Console, one: "Tried", to: Path) -> None:
    candidate = one.candidate
    facts = [candidate.kind, *(f"from {parent}" for parent in candidate.parents)]
    if one.mended:
        facts.append("mended once")
    verdict = "[red]cannot be evaluated[/]" if one.fault else "[green]passed its check[/]"
    console.print(
        f"[bold cyan]{escape(candidate.name)}[/]  "
        f"{escape(', '.join(filter(None, [*facts])))}{', ' if any(facts) else ''}{verdict}"
    )
    if candidate.hypothesis:
        console.print(f"  {escape(candidate.hypothesis)}")
    if one.fault:
        console.print(f"  [red]{escape(one.fault)}[/]")
    for leak in one.leaks:
        console.print(f"  [yellow]may know answers: {escape(leak)}[/]")
    for path in one.files:
        console.print(f"  {_place(to, one) / path}", markup=False, soft_wrap=True)
