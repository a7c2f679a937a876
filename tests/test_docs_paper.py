"""The page of the paper's tables has the published figures, and ours as they were recorded."""

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coevolve_reproductions import run_tables

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text()
PUBLISHED = tomllib.loads(
    Path(str(run_tables.__file__)).with_name("published.toml").read_text(encoding="utf-8")
)
Row = dict[str, Any]


def recorded(file: str, table: str) -> list[Row]:
    found: list[Row] = json.loads((ROOT / "benchmarks" / "results" / f"{file}.json").read_text())[
        table
    ]
    return found


def share(fraction: float | None) -> str:
    return "" if fraction is None else f"{fraction:.0%}"


def shown(figures: Row, key: str) -> str:
    """A figure of the paper as the page shows it, with its spread."""
    value = figures.get(key, "")
    spread = f" ± {figures[f'{key}_sd']}" if f"{key}_sd" in figures else ""
    return (f"{value:,}" if isinstance(value, int) else str(value)) + spread


def searched(name: str, protocol: str, fraction: float | None) -> Row | None:
    """Our recorded searches of a set."""
    wanted = "100%" if protocol == "full" else share(fraction)
    return next(
        (
            row
            for row in recorded("search", "table")
            if (row["set"], row["protocol"], row["fraction"]) == (name, protocol, wanted)
        ),
        None,
    )


def tc() -> Iterator[list[str]]:
    ours = {
        row["harness"]: f"{row['test'] * 100:.1f}"
        for row in recorded("textclass", "embedded model")
        if row["set"] == "s2d"
    }
    names = {"context-files": "mce", "playbook": "ace"}
    for one in PUBLISHED["tc"]:
        row, paper = one["row"], one["paper"]
        protocol, fraction = row.get("protocol"), row.get("fraction")
        found = searched("s2d", protocol, fraction) if protocol else None
        yield [
            names.get(row.get("method"), row.get("method") or protocol),
            "100%" if protocol == "full" else share(fraction),
            *(shown(paper, key) for key in ("per_round", "evaluations")),
            *(shown(paper, f"test:{name}") for name in ("uspto", "s2d", "law")),
            shown(paper, "test"),
            str(found["test"]) if found else ours.get(row.get("method"), ""),
        ]


def phase0() -> Iterator[list[str]]:
    ours = {
        (row["set"], row["harness"]): f"{row['validation'] * 100:.0f}"
        for row in recorded("textclass", "embedded model")
    }
    for one in PUBLISHED["phase0"]:
        pool, paper = one["row"]["pool"], one["paper"]
        keys = ("tasks", "start:zero-shot", "start:few-shot", "mean", "zeros", "ones")
        yield [
            pool,
            *(shown(paper, key) for key in keys),
            ours[pool, "zero-shot"],
            ours[pool, "few-shot"],
        ]


def cost() -> Iterator[list[str]]:
    for one in PUBLISHED["cost"]:
        row, paper = one["row"], one["paper"]
        keys = ("trials", "tokens_in", "tokens_out", "reduction", "dollars", "hours")
        yield [
            row["model"],
            row["protocol"],
            share(row.get("fraction")),
            *(shown(paper, key) for key in keys),
        ]


def saved() -> Iterator[list[str]]:
    """Our tokens of searches at 20%, compared with those of full search."""
    for name in ("service-desk", "s2d"):
        full = searched(name, "full", None)
        assert full is not None
        for protocol in ("naive", "random-resample", "task-coevolve", "adaptive"):
            found = searched(name, protocol, 0.2)
            assert found is not None
            tokens, all_of = found["thousand tokens"], full["thousand tokens"]
            yield [name, protocol, str(tokens), str(all_of), f"{tokens / all_of - 1:.0%}"]


def accuracy() -> Iterator[list[str]]:
    means = {(row["fraction"], row["protocol"]): row for row in recorded("matrices", "means")}
    for one in PUBLISHED["accuracy"]:
        fraction, paper = one["row"]["fraction"], one["paper"]
        yield [
            share(fraction),
            *(shown(paper, key) for key in ("spearman", "place", "scores")),
            *(
                means[fraction, protocol][key]
                for protocol in ("task-coevolve", "adaptive")
                for key in ("spearman", "rank")
            ),
        ]


def ablation() -> Iterator[list[str]]:
    ours = {
        row["row"].partition(" (")[0]: row
        for row in recorded("findings", "ablation")
        if row["regime"] == "text classification" and row["fraction"] == 0.2
    }
    for one in PUBLISHED["ablation"]:
        protocol = one["row"]["protocol"]
        yield [protocol, shown(one["paper"], "score"), ours[protocol]["score"]]


def swap() -> Iterator[list[str]]:
    ours = {
        (row["fraction"], "difference" if "difference" in row["row"] else "Hájek"): row["score"]
        for row in recorded("findings", "ablation")
        if row["regime"] == "text classification"
        and row["row"].startswith(("task-coevolve", "... with"))
    }
    for one in PUBLISHED["swap"]:
        row = one["row"]
        yield [
            share(row["fraction"]),
            row["estimator"],
            shown(one["paper"], "score"),
            ours[row["fraction"], row["estimator"]],
        ]


def ties() -> Iterator[list[str]]:
    ours = {
        (row["fraction"], row["row"]): row["at the top"]
        for row in recorded("findings", "ties")
        if row["world"] == "usual"
    }
    for one in PUBLISHED["ties"]:
        row = one["row"]
        yield [
            share(row["fraction"]),
            row["protocol"],
            *(shown(one["paper"], key) for key in ("ties", "earliest", "latest")),
            ours[row["fraction"], row["protocol"]],
        ]


def of_paper(table: str, labels: tuple[str, ...], keys: tuple[str, ...]) -> Iterator[list[str]]:
    """A table of which there is nothing comparable of ours."""
    for one in PUBLISHED[table]:
        row = one["row"]
        name = [
            share(row[key]) if key == "fraction" and key in row else str(row.get(key, ""))
            for key in labels
        ]
        yield [*name, *(shown(one["paper"], key) for key in keys)]


def tb() -> Iterator[list[str]]:
    keys = ("model:gpt-5.6-luna", "model:qwen3.6-35b-a3b", "average")
    for one in PUBLISHED["tb"]:
        row = one["row"]
        name = row.get("method") or row["protocol"]
        yield [name, share(row.get("fraction")), *(shown(one["paper"], key) for key in keys)]


def stronger() -> Iterator[list[str]]:
    return of_paper("stronger", ("model",), ("before", "after", "gain"))


def difficulty() -> Iterator[list[str]]:
    """Text classification at rounds 0, 4, 10, 20, then Terminal-Bench at 0, 4, 7, 10."""
    groups = PUBLISHED["difficulty"]
    for one in groups:
        row, terminal = one["row"], "model" in one["row"]
        keys = [f"round_{n}" for n in ((0, 4, 7, 10) if terminal else (0, 4, 10, 20))]
        yield [
            "Terminal-Bench, 20%" if terminal else "text classification, 7%",
            row["group"],
            *(shown(one["paper"], key) for key in keys),
        ]


@pytest.mark.record
@pytest.mark.parametrize(
    "table",
    [tc, tb, cost, saved, difficulty, accuracy, ablation, swap, ties, stronger, phase0],
    ids=lambda table: table.__name__,
)
def test_the_figures_on_the_page(table: Callable[[], Iterator[list[str]]]) -> None:
    lines = "".join(f"| {' | '.join(row)} |\n" for row in table())
    assert lines in PAGE, lines


def test_every_table_has_a_section_with_its_command() -> None:
    for name in run_tables.TABLES:
        assert f"coevolve table {name} " in PAGE
