"""Figures: valid SVG that a strict page accepts, with their numbers, at any size, for any text."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.analysis import replay, synthetic_matrix
from coevolve.errors import InputError
from coevolve.figures import (
    Figure,
    comparison_figure,
    costs_figure,
    matrix_figure,
    progress_figure,
    replay_figure,
    run_figures,
    spend_figure,
    style_sheet,
    weights_figure,
)
from coevolve.figures.palette import COLOURS, STYLES
from coevolve.search.journal import MemoryJournal
from coevolve.views.grid_order import grid_orders
from coevolve.views.run_comparison import compare_runs, replay_comparison
from coevolve.views.timeline import Timeline
from tests.effort import effort
from tests.search.stubs import StubExecutor, beginning, go_on, opened
from tests.views.small_run import written

ELEMENTS = {
    "svg", "g", "path", "rect", "circle", "line", "text", "title", "desc", "defs", "pattern"
}  # fmt: skip
"""What a page lets through."""
WIDTHS = (760, 360)


def _tags(svg: str) -> Iterator[ElementTree.Element]:
    for element in ElementTree.fromstring(svg).iter():
        element.tag = element.tag.rpartition("}")[2]
        yield element


def check(figure: Figure) -> None:
    """A figure is well formed and has nothing that a strict page refuses."""
    numbers = re.compile(r"nan|inf", re.IGNORECASE)
    for element in _tags(figure.svg):
        assert element.tag in ELEMENTS, element.tag
        for name, value in element.attrib.items():
            assert name != "style"
            assert not name.startswith("on")
            assert "href" not in name
            if name in ("x", "y", "width", "height", "d", "cx", "cy", "r", "x1", "transform"):
                assert not numbers.search(value), (element.tag, name, value[:60])
                assert name in ("d", "x", "y", "x1", "cx", "cy", "transform") or float(value) >= 0
        for style in element.get("class", "").split():
            assert style == "cv" or style.removeprefix("cv-") in STYLES, style
    root = ElementTree.fromstring(figure.svg)
    assert (root.get("role"), root.get("viewBox", "").startswith("0 0 ")) == ("img", True)
    named = root.get("aria-labelledby", "").split()
    assert [child.get("id") for child in list(root)[:2]] == named
    assert all(len(row) == len(figure.columns) for row in figure.rows)
    json.dumps(figure.to_json(), allow_nan=False)


@pytest.fixture(scope="module")
def runs() -> dict[str, Timeline]:
    journals = {}
    for name, options in {
        "adaptive": {"protocol": "adaptive", "rescore": True, "rounds": 4},
        "trials": {"trials": 3, "rounds": 2},
    }.items():
        journals[name] = MemoryJournal()
        opened(journals[name], **options)  # type: ignore[arg-type]
        go_on(journals[name], StubExecutor(faults=0.1))
    journals["small"] = written()
    journals["opened"] = beginning(journals["small"], 1)
    started = next(e["seq"] for e in journals["adaptive"].events() if e["type"] == "asked")
    journals["phase 0"] = beginning(journals["adaptive"], started - 3)
    journals["under way"] = beginning(journals["adaptive"], started + 5)
    return {name: Timeline.of(journal) for name, journal in journals.items()}


@pytest.mark.parametrize("name", ["adaptive", "trials", "small", "opened", "phase 0", "under way"])
def test_every_figure_of_a_run_is_drawn(name: str, runs: dict[str, Timeline]) -> None:
    timeline = runs[name]
    found, grid = timeline.snapshot(), timeline.grid()
    figures = run_figures(found, grid)
    order = "progress certainty matrix frontier weights lineage spend costs failures"
    assert " ".join(figures) == order
    for figure in figures.values():
        check(figure)
    for width in WIDTHS:
        check(progress_figure(found.progress, width=width))
        check(weights_figure(found.frontier, tasks=found.frontier.tasks[:3], width=width))
        for measure in ("dollars", "tokens", "trials"):
            check(spend_figure(found.spend, measure=measure, width=width))
            check(costs_figure(found.spend, measure=measure, width=width))
        orders = grid_orders(grid)
        for tasks in orders.tasks:
            for candidates in orders.candidates:
                check(
                    matrix_figure(
                        grid, orders=orders, tasks=tasks, candidates=candidates, width=width
                    )
                )


def test_a_run_that_only_began_says_what_is_missing(runs: dict[str, Timeline]) -> None:
    timeline = runs["opened"]
    for figure in run_figures(timeline.snapshot(), timeline.grid()).values():
        texts = [e.text for e in _tags(figure.svg) if e.tag == "text"]
        assert figure.name == "lineage" or texts == [figure.caption], figure.name


def test_the_table_of_a_figure_has_the_numbers_it_shows(runs: dict[str, Timeline]) -> None:
    timeline = runs["small"]
    figures = run_figures(timeline.snapshot(), timeline.grid())
    progress = {row[0]: row for row in figures["progress"].rows}
    assert progress["plain"][:4] == ("plain", 0, "evaluated", 0.5)
    assert figures["matrix"].rows[3] == ("r1-1", 1, 4, 0, 3, 0, 1)
    assert figures["frontier"].rows == ((0, 2, 0, 1, 1, 0), (1, 0, 2, 1, 1, 0))
    costs = {row[0]: row for row in figures["costs"].rows}
    assert costs["r1-0"][2:6] == (5, 0, 5 * 120 + 5, 1.25)  # preparing it took 5 tokens
    shown = [e.get("data-candidate") for e in _tags(figures["progress"].svg)]
    assert {"plain", "terse", "r1-0", "r1-1"} <= set(shown)


def test_the_cells_of_the_matrix_are_those_of_the_run(runs: dict[str, Timeline]) -> None:
    figure = matrix_figure(runs["small"].grid())
    solved = sum(
        (element.get("d") or "").count("M")
        for element in _tags(figure.svg)
        if element.get("class") == "cv-shade-4"
    )
    legend = 1
    assert solved == sum(int(str(row[3])) for row in figure.rows) == 7
    boxes = [e for e in _tags(figure.svg) if e.tag == "rect" and e.get("class") == "cv-shade-4"]
    assert len(boxes) == legend


def test_runs_and_protocols_side_by_side(runs: dict[str, Timeline]) -> None:
    snapshots = {name: runs[name].snapshot() for name in ("adaptive", "trials", "small", "opened")}
    compared = compare_runs(snapshots)
    for axis in ("evaluations", "trials", "tokens", "dollars", "hours"):
        for width in WIDTHS:
            check(comparison_figure(compared, axis=axis, width=width))
    assert len(comparison_figure(compared).rows) == 4
    done = replay(
        [synthetic_matrix(tasks=20, candidates=5, worlds=1)],
        protocols=["full", "naive"],
        fractions=[0.2, 0.5],
        seeds=range(1),
    )
    figure = replay_figure(replay_comparison(done.to_json()))
    check(figure)
    assert len(figure.rows) == 4
    check(comparison_figure(replace(compared, runs=())))


def test_ids_begin_with_the_prefix(runs: dict[str, Timeline]) -> None:
    timeline = runs["adaptive"]
    pages = [
        run_figures(timeline.snapshot(), timeline.grid(), prefix=prefix) for prefix in ("a-", "b-")
    ]
    found = [
        {e.get("id") for figure in page.values() for e in _tags(figure.svg)} - {None}
        for page in pages
    ]
    assert found[0]
    assert not found[0] & found[1]


NAMES = ("plain", "terse", "r1-0", "r1-1", "a", "b", "c", "d", "z", "small", "all", "sandbox")
BENT = ("reason", "reasons", "text", "hypothesis", "why")


def bent(value: Any, text: str, key: str = "") -> Any:
    """A record with hostile names and reasons, equal ones still equal."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {one.name: bent(getattr(value, one.name), text, one.name) for one in fields(value)}
        return replace(value, **found)
    if isinstance(value, tuple):
        return tuple(bent(inner, text, key) for inner in value)
    if isinstance(value, str) and (value in NAMES or key in BENT):
        return f"{value} {text}"
    return value


@settings(max_examples=effort(8, 80), deadline=None)
@given(st.text(max_size=60))
def test_no_text_becomes_markup(text: str) -> None:
    timeline = Timeline.of(JOURNAL)
    now, grid = timeline.snapshot(), timeline.grid()
    elements = {
        name: sum(1 for _ in _tags(figure.svg)) for name, figure in run_figures(now, grid).items()
    }
    for bad in (
        text,
        f"</text><script>{text}</script>",
        f'" onload="{text}',
        "\x1b[2J\u202e&amp;",
    ):
        for name, figure in run_figures(bent(now, bad), bent(grid, bad)).items():
            check(figure)
            assert sum(1 for _ in _tags(figure.svg)) == elements[name]
            assert not {"\x1b", "\u202e"} & set(figure.standalone("dark"))


JOURNAL = written()


def test_a_name_of_a_megabyte_does_not_blow_up_a_figure() -> None:
    timeline = Timeline.of(JOURNAL)
    now, grid = timeline.snapshot(), timeline.grid()
    long = "<b>" + "x" * 1_000_000
    for figure in run_figures(bent(now, long), bent(grid, long)).values():
        check(figure)
        assert len(figure.svg) < 200_000, figure.name


def test_colours_differ_between_light_and_dark() -> None:
    sheet = style_sheet()
    assert all(f"--cv-{name}:" in sheet for name in COLOURS)
    assert "var(" not in style_sheet("light") + style_sheet("dark") + style_sheet("notebook")
    assert style_sheet("light") != style_sheet("dark")


def test_a_figure_is_a_png_of_the_wanted_size(runs: dict[str, Timeline]) -> None:
    figure = progress_figure(runs["small"].snapshot().progress)
    data = figure.png(zoom=1.0, theme="dark")
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20]) == 760


def test_without_resvg_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, runs: dict[str, Timeline]
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match=r"task-coevolve\[figures\]"):
        progress_figure(runs["small"].snapshot().progress).png()


def test_many_candidates_stay_small() -> None:
    """3,000 candidates are drawn together."""
    timeline = Timeline.of(written())
    now, grid = timeline.snapshot(), timeline.grid()
    (row,) = [one for one in now.report.candidates if one.name == "r1-1"]
    (scored,) = [one for one in now.progress.candidates if one.name == "r1-1"]
    scored = replace(scored, value=0.4, low=0.2, high=0.6)
    (node,) = [one for one in now.lineage.nodes if one.name == "r1-1"]
    (spent,) = [one for one in now.spend.candidates if one.candidate == "r1-1"]
    many = range(3_000)
    names = [f"r{n // 30}-{n % 30}" for n in many]
    large = replace(
        now,
        progress=replace(now.progress, candidates=(
            *now.progress.candidates,
            *(replace(scored, name=names[n], order=n + 4, round=n // 30) for n in many),
        )),
        lineage=replace(now.lineage, lines=3_000, rounds=100, nodes=(
            *now.lineage.nodes,
            *(replace(node, name=names[n], round=n // 30, line=n, value=0.5) for n in many),
        )),
        spend=replace(now.spend, candidates=(
            *now.spend.candidates,
            *(replace(spent, candidate=names[n], round=n // 30) for n in many),
        )),
    )  # fmt: skip
    wide = replace(
        grid,
        candidates=(*grid.candidates, *(replace(row, name=name, round=1) for name in names)),
        codes=np.vstack([grid.codes, np.tile(grid.codes[3], (3_000, 1))]),
        scores=np.vstack([grid.scores, np.tile(grid.scores[3], (3_000, 1))]),
        trials=np.vstack([grid.trials, np.tile(grid.trials[3], (3_000, 1))]),
    )
    figures = run_figures(large, wide)
    for name in ("progress", "lineage", "costs", "matrix"):
        check(figures[name])
        assert len(figures[name].svg) < 500_000, name
