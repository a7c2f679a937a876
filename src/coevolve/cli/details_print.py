"""Details of a run on a terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from coevolve.cli.words import count, duration, plural, score, seen
from coevolve.errors import titled

MOST = 40
"""Outcomes that are listed; --json lists all."""


def print_details(console: Console, kind: str, details: dict[str, Any]) -> None:
    """Print what `details` gathered."""
    printers: dict[str, Callable[[Console, dict[str, Any]], None]] = {
        "candidate": _candidate,
        "task": _task,
        "round": _round,
    }
    printers[kind](console, details)


def _candidate(console: Console, found: dict[str, Any]) -> None:
    where = "starting harness" if found["start"] else f"round {found['round']}"
    console.print(Text.assemble((found["name"], "bold cyan"), f"  {where}, {found['status']}"))
    estimate = found["estimate"]
    facts = {
        "reason": found["reason"],
        "hypothesis": found["hypothesis"],
        "kind": found["kind"],
        "components": ", ".join(found["components"]),
        "may know answers": "\n".join(found["leaks"]),
        "given back": found["given_back"] and "once, after it had failed its check",
        "parents": ", ".join(found["parents"]),
        "children": ", ".join(found["children"]),
        "estimate": estimate and f"{score(estimate)}, {seen(estimate)} tasks, {_level(estimate)}",
        "sealed test": "" if found["test"] is None else f"{found['test']:.3f}",
        "faults": _faults(found),
        "files": ", ".join(f"{path} ({size:,} bytes)" for path, size in found["files"].items()),
        "folder": found["folder"],
        "transcript": found["transcripts"] and "printed by --transcript",
    }
    _print_facts(console, facts)
    _print_outcomes(console, found["outcomes"], "task")


def _task(console: Console, found: dict[str, Any]) -> None:
    where = f"pool {found['pool']}" if found["split"] == "validation" else "sealed test"
    console.print(Text.assemble((found["task"], "bold cyan"), f"  {where}"))
    mean = "" if found["mean"] is None else f"{found['mean']:.3f}"
    drawn = [f"{d['round']} ({d['probability']:.2f})" for d in found["draws"]]
    facts = {
        "mean score": mean and f"{mean} over {plural(found['candidates'], 'candidate')}",
        "missing": str(found["missing"] or ""),
        "drawn in": drawn and f"rounds {', '.join(drawn)}, with probability",
    }
    _print_facts(console, facts)
    _print_outcomes(console, found["outcomes"], "candidate")


def _round(console: Console, found: dict[str, Any]) -> None:
    over = "" if found.get("settled", True) else ", under way"
    missing = f", {found['missing']} missing" if found.get("missing") else ""
    trials = plural(found["trials"], "trial")
    console.print(Text.assemble((f"round {found['round']}", "bold cyan"), f"  {trials}"), end="")
    console.print(Text(f"{missing}{over}"))
    draws = [f"{draw['task']} ({draw['probability']:.2f})" for draw in found.get("draws", [])]
    thin = "under half of its outcomes have a score" if found.get("thin") else ""
    _print_facts(console, {"note": found.get("note"), "thin": thin, "drew": ", ".join(draws)})
    rows = found["candidates"]
    told = any(row["hypothesis"] for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("candidate", "estimate", "tasks", "status", *(["hypothesis"] if told else [])):
        wraps = heading in ("status", "hypothesis")
        table.add_column(heading, no_wrap=not wraps, min_width=9 if wraps else None)
    for row in rows:
        estimate = row["estimate"]
        reason = f": {row['reason']}" if row["reason"] else ""
        cells = [
            row["name"],
            "-" if estimate is None else score(estimate),
            "-" if estimate is None else seen(estimate),
            f"{row['status']}{reason}",
            *([row["hypothesis"]] if told else []),
        ]
        table.add_row(*map(escape, cells))
    console.print(table)


def _print_facts(console: Console, facts: dict[str, Any]) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in facts.items():
        if text:
            grid.add_row(label, escape(text))
    console.print(grid)


SPLITS = {"validation": "", "rescore": " (rescored)", "test": " (sealed)"}
"""What is said of a trial that was not one of the search."""


def _print_outcomes(console: Console, outcomes: Sequence[dict[str, Any]], first: str) -> None:
    if not outcomes:
        console.print("No outcomes.")
        return
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        first: lambda row: row[first] + SPLITS[row["split"]],
        "round": lambda row: str(row["round"] or "start"),
        "trial": lambda row: str(row["trial"]),
        "score": scored,
        "tokens": lambda row: count(row["tokens_in"] + row["tokens_out"]),
        "time": lambda row: time_of(row["seconds"]),
        "what happened": lambda row: titled(row["fault"], row["reason"]) if row["fault"] else "",
    }
    if first == "task":
        del columns["round"]
    if not any(row["trial"] for row in outcomes):
        del columns["trial"]
    if not any(row["tokens_in"] + row["tokens_out"] for row in outcomes):
        del columns["tokens"]
    if not any(row["fault"] for row in outcomes):
        del columns["what happened"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in columns:
        right = heading in ("round", "trial", "score", "tokens", "time")
        wrap = heading == "what happened"
        table.add_column(heading, justify="right" if right else "left", no_wrap=not wrap)
    for row in sorted(outcomes, key=lambda row: row["score"] is not None)[:MOST]:
        table.add_row(*(escape(text(row)) for text in columns.values()))
    if len(outcomes) > MOST:
        table.caption = f"and {len(outcomes) - MOST} more; --json lists all"
        table.caption_justify = "left"
    console.print(table)


def scored(row: Mapping[str, Any]) -> str:
    """The score of an outcome."""
    return "missing" if row["score"] is None else f"{row['score']:.3g}"


def time_of(seconds: float) -> str:
    """How long a trial took."""
    return duration(seconds) if seconds >= 10 else f"{seconds:.2g}s"


def _level(estimate: dict[str, Any]) -> str:
    if estimate["low"] is None or estimate["low"] == estimate["high"]:
        return str(estimate["method"])
    return f"between {estimate['low']:.3f} and {estimate['high']:.3f}, {estimate['method']}"


def _faults(found: dict[str, Any]) -> str:
    counts = {"scored 0": found["zeros"], "missing": found["missing"]}
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)
