"""`coevolve replay`: protocols on outcome matrices, in seconds."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from coevolve.analysis import Matrix, check_alike, read_matrices, synthetic_matrix
from coevolve.analysis import replay as replayed
from coevolve.analysis.replay_search import PROTOCOLS, Plan
from coevolve.cli.lists import names, numbers
from coevolve.cli.progress import with_bar
from coevolve.cli.replay_tables import alarm_tables, headline, replay_tables
from coevolve.core.protocols import protocols as registered
from coevolve.errors import InputError


def replay(
    matrices: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MATRIX",
            help="An .npz file of outcomes, a .jsonl file of events, or a folder of .npz files.",
        ),
    ] = None,
    protocols: Annotated[
        str | None,
        typer.Option(
            help="Names, with commas; the others are compared with the first.",
            show_default=f"{','.join(PROTOCOLS)}; with --aa, all",
        ),
    ] = None,
    fractions: Annotated[
        str, typer.Option(help="Shares of the tasks a round draws, with commas.")
    ] = "0.07,0.2",
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of the seeds.")] = 0,
    per_round: Annotated[int, typer.Option(help="Candidates proposed per round.")] = 1,
    max_series: Annotated[int, typer.Option(help="Series of a matrix, at most.")] = 4,
    max_candidates: Annotated[int, typer.Option(help="Candidates of a series, at most.")] = 60,
    bernoulli: Annotated[
        bool, typer.Option("--bernoulli", help="Tell a mean of trials as one trial, 0 or 1.")
    ] = False,
    aa: Annotated[
        bool,
        typer.Option("--aa", help="Make all candidates alike and count the declared differences."),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Processes.", show_default="number of cores")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
) -> None:
    """Replay protocols on outcome matrices and compare what they would have found."""
    if seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {seeds}.")
    plan = Plan.of(
        protocols=_protocols(protocols, aa),
        fractions=numbers("--fractions", fractions),
        seeds=range(first_seed, first_seed + seeds),
        per_round=per_round,
        bernoulli=bernoulli,
    )
    found = [
        matrix.limited(series=max_series, candidates=max_candidates)
        for matrix in _matrices(matrices or [], aa)
    ]
    err = Console(stderr=True, highlight=False)
    if not as_json:
        err.print(headline(found, plan))
    cores = os.cpu_count() or 1 if workers is None else workers
    run = check_alike if aa else replayed
    done = with_bar(
        err,
        lambda report: run(
            found,
            protocols=plan.protocols,
            fractions=plan.fractions,
            seeds=plan.seeds,
            per_round=plan.per_round,
            bernoulli=plan.bernoulli,
            workers=cores,
            report=report,
        ),
    )
    if as_json:
        typer.echo(json.dumps(done.to_json(), indent=2, allow_nan=False))
        return
    out = Console(highlight=False)
    for part in alarm_tables(done, out.width) if aa else replay_tables(done, out.width):
        out.print(part)


def _protocols(given: str | None, aa: bool) -> tuple[str, ...]:
    if given is not None:
        return tuple(names("--protocols", given))
    return tuple(known.name for known in registered()) if aa else PROTOCOLS


def _matrices(paths: list[Path], aa: bool) -> list[Matrix]:
    if paths:
        return read_matrices(paths)
    if not aa:
        raise InputError("name at least one matrix; only --aa can do without.")
    return [synthetic_matrix()]
