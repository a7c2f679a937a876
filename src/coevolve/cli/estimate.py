"""`coevolve estimate`: what a run will take, before it begins."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from coevolve.cli.aside import prints_aside
from coevolve.cli.places import find_run
from coevolve.cli.words import count, dollars, duration
from coevolve.errors import InputError

if TYPE_CHECKING:
    from coevolve.cli.forecast import Part, Range


def estimate(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run to estimate.")],
    like: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="An earlier run whose trials are like those to come."),
    ] = None,
    trial: Annotated[
        bool,
        typer.Option("--trial", help="Learn from one trial of each starting harness, run now."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate trials, tokens, dollars and hours of a run as ranges; nothing is recorded."""
    from coevolve.benchmarks.base import sealed_tasks
    from coevolve.cli.forecast import NOTHING, Known, capped, parts_of, search_trials
    from coevolve.cli.learning import from_run, from_trial
    from coevolve.runs.building import build_benchmark, workers
    from coevolve.runs.config import read_config
    from coevolve.runs.session import new_selector

    if like is not None and trial:
        raise InputError("--like and --trial both say what a trial takes; give one of them.")
    with prints_aside(as_json):
        config = read_config(file)
        benchmark = build_benchmark(config, file.parent)
    selector = new_selector(config, benchmark.pool)
    each: Known = {}
    proposal: Known = NOTHING if config.proposer.free else {}
    if like is not None:
        each, proposal = from_run(find_run(like))
    if trial:
        with prints_aside(as_json):
            each = from_trial(config, file.parent, benchmark)
    parts = parts_of(
        searched=search_trials(selector, config.settings(), len(benchmark.starts)),
        starts=len(benchmark.starts),
        tasks=len(benchmark.pool) * config.search.trials,
        test=len(sealed_tasks(benchmark)) * config.search.trials,
        rescored=len(benchmark.pool) * config.search.trials if config.search.rescore else 0,
        rounds=config.search.rounds,
        workers=workers(config),
        trial=each,
        proposal=proposal,
    )
    caps = config.budget.to_json()
    notes = _notes(bool(each), bool(proposal), trial, capped(parts[-1], caps) != parts[-1])
    if benchmark.pool.costs is not None:
        mean = float(benchmark.pool.costs.mean())
        bill = shown(parts[-1].trials * mean, "trials")
        notes.append(f"By the costs of the pool, {mean:.3g} a trial on average: {bill} in all.")
    parts[-1] = capped(parts[-1], caps)
    if as_json:
        found: dict[str, Any] = {"parts": [part.to_json() for part in parts], "caps": caps}
        typer.echo(json.dumps(found | {"notes": notes}, indent=2))
        return
    console = Console(highlight=False)
    console.print(_table(parts, caps))
    for note in notes:
        console.print(note, markup=False)


def _notes(learned: bool, proposals: bool, trial: bool, ended: bool) -> list[str]:
    notes = []
    if not learned:
        notes.append(
            "Nobody knows yet what a trial takes: --trial runs one of each starting harness, and "
            "--like RUN learns from an earlier run."
        )
    if trial:
        notes.append(
            "One trial of each starting harness, taken to be off by a factor of 2 either way. "
            "Tokens and dollars are those the benchmark reports."
        )
    if not proposals:
        notes.append("What proposing takes is learned from an earlier run alone, with --like RUN.")
    if ended:
        notes.append("A cap of the budget ends the run before all of it is done.")
    return notes


def _table(parts: "list[Part]", caps: dict[str, float | None]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "trials", "tokens", "dollars", "time"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for part in parts:
        last = part is parts[-1]
        if last:
            table.add_section()
        trials = "-" if part.name == "proposing" else shown(part.trials, "trials")
        measures = [shown(part.spent.get(name), name) for name in ("tokens", "dollars", "hours")]
        table.add_row(part.name, trials, *measures, style="bold" if last else "")
    limits = [
        "-" if (cap := caps[name]) is None else _amount(cap, name)
        for name in ("trials", "tokens", "dollars", "hours")
    ]
    table.add_row("cap", *limits, style="bright_black")
    return table


def shown(one: "Range | None", measure: str) -> str:
    """A range as people read it."""
    if one is None:
        return "unknown"
    low, high = _amount(one.low, measure), _amount(one.high, measure)
    return low if low == high else f"{low} to {high}"


def _amount(number: float, measure: str) -> str:
    if measure == "dollars":
        return dollars(number)
    return duration(3600 * number) if measure == "hours" else count(number)
