"""`coevolve propose`: one proposal for inspection, without evaluating it."""

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from coevolve.cli.command_arguments import JOURNAL, SET_NEEDS_FILE, AsJson, Set, find_run
from coevolve.cli.console_output import Screen, echo, echo_json, redirected_prints
from coevolve.errors import InputError
from coevolve.formatting import dollars, json_text, visible

if TYPE_CHECKING:
    from coevolve.runs.config import RunConfig
    from coevolve.runs.proposal_trial import ProposalTrial, TriedCandidate, TriedProposal


def propose(
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE.toml|RUN]",
            help="A project, or a run to continue from. Default: the only run in runs/.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help="A new or empty folder for the proposal. Default: proposal, proposal-2, ...",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of candidates. Default: as in a round.", show_default=False
        ),
    ] = None,
    only_view: Annotated[
        bool,
        typer.Option("--view", help="Only write what the proposer would see; do not call it."),
    ] = False,
    changed: Set = None,
    as_json: AsJson = False,
) -> None:
    """Propose and check the next candidates; nothing is evaluated or recorded."""
    from coevolve.proposers.workspace import lay_out
    from coevolve.runs.proposal_trial import proposal_trial

    config, base, run = _project(target, changed or [])
    wanted, to = count or config.search.candidates, _empty(to)
    console = Screen()
    with redirected_prints(as_json), proposal_trial(config, base, run) as attempt:
        to.mkdir(parents=True, exist_ok=True)
        try:
            space = lay_out(attempt.view, to, count=wanted) if only_view else None
            made = None if only_view else _ask(attempt, wanted, to)
        finally:
            with contextlib.suppress(OSError):  # it is not empty
                to.rmdir()
    if space is not None:
        shown = {"workspace": str(space.folder), "prompt": space.prompt}
        if as_json:
            echo_json(shown)
        else:
            console.print(f"{to}\n\n{space.prompt}", soft_wrap=not console.is_terminal)
    elif made is not None:
        _write(made, to)
        if as_json:
            echo_json(made.to_json() | {"folder": str(to)})
        else:
            _print(console, made, to)


def _empty(to: Path | None) -> Path:
    """A folder that is empty or does not exist yet."""
    if to is None:
        others = (Path(f"proposal-{number}") for number in itertools.count(2))
        return next(p for p in itertools.chain([Path("proposal")], others) if not p.exists())
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError(f"{to} already exists; name another folder with --to.")
    return to


def _ask(attempt: "ProposalTrial", count: int, to: Path) -> "TriedProposal":
    """Propose candidates; print a message first if that may take long."""
    if waiting := attempt.config.proposer.waiting(to):
        echo(waiting, err=True)
    return asyncio.run(attempt.propose(count, workspace=to))


def _project(target: Path | None, changed: list[str]) -> "tuple[RunConfig, Path, Path | None]":
    """The configuration, the folder its paths are relative to, and the run if there is one."""
    from coevolve.runs.config import read_config
    from coevolve.runs.config_overrides import parse_overrides
    from coevolve.runs.session import config_of_run, run_folder

    if target is not None and target.suffix == ".toml":
        config = read_config(target, overrides=parse_overrides(changed))
        folder = run_folder(target, config)
        return config, target.parent, folder if (folder / JOURNAL).exists() else None
    if changed:
        raise InputError(SET_NEEDS_FILE)
    folder = find_run(target)
    found = config_of_run(folder)
    if found is None:
        raise InputError(
            f"the run in {folder} cannot be read; `coevolve doctor {folder}` shows why."
        )
    return *found, folder


def _write(proposal: "TriedProposal", folder: Path) -> None:
    """Write each candidate into a folder, in the form that agents submit."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in proposal.tried:
        place = _place(folder, one)
        for path, content in one.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(content)
        data = {
            "name": one.candidate.name,
            "parents": list(one.candidate.parents),
            "hypothesis": one.candidate.hypothesis,
            "kind": one.candidate.kind,
            "components": list(one.candidate.components),
        }
        (place / "proposal.json").write_text(json_text(data, indent=2) + "\n")
    if proposal.transcript is not None:
        (folder / "transcript.txt").write_text(visible(proposal.transcript), encoding="utf-8")


def _place(folder: Path, one: "TriedCandidate") -> Path:
    """The folder of a candidate, apart from all other files of the proposal."""
    return folder / "candidates" / one.candidate.name


def _print(console: Screen, made: "TriedProposal", to: Path) -> None:
    for one in made.tried:
        _print_candidate(console, one, to)
    if not made.tried:
        console.print("Nothing was proposed.")
    for note in made.notes:
        console.print(Text.assemble(("note:", "yellow"), f" {note}"))
    spent = made.usage
    if spent.tokens_in or spent.tokens_out or spent.dollars:
        tokens = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
        money = f", {dollars(spent.dollars)}" if spent.dollars else ""  # 0 may mean unknown
        console.print(f"Cost: {tokens}{money}.")
    console.print(f"Nothing was evaluated or recorded. The proposal is in {to}.")


def _print_candidate(console: Screen, one: "TriedCandidate", to: Path) -> None:
    candidate = one.candidate
    facts = [candidate.kind, *(f"from {parent}" for parent in candidate.parents)]
    if one.repaired:
        facts.append("repaired once")
    verdict = ("failed its check", "red") if one.fault else ("passed its check", "green")
    before = "".join(f"{fact}, " for fact in facts if fact)
    console.print(Text.assemble((candidate.name, "bold cyan"), f"  {before}", verdict))
    if candidate.hypothesis:
        console.print(_indented(Text(candidate.hypothesis)))
    if one.fault:
        console.print(_indented(Text(one.fault, "red")))
    for leak in one.leaks if not one.fault else ():
        console.print(_indented(Text(f"may know answers: {leak}", "yellow")))
    for path in one.files:
        console.print(f"  {_place(to, one) / path}", soft_wrap=True)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2))
