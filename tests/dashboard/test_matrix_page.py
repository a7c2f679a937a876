"""The matrix in a browser: its pixels, orders, filters, tips, keys and addresses."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from coevolve.core.arrays import Indices
from coevolve.store import RunStore
from coevolve.views.grid_order import grid_orders
from coevolve.views.outcome_grid import FAILED, KINDS, SOLVED, OutcomeGrid
from coevolve.views.timeline import Timeline
from tests.dashboard.conftest import NewPage, Serve
from tests.effort import first

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

SIZE = 8
"""Pixels of a cell, as the addresses ask."""
LOOK = """
(size) => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const view = document.querySelector(".matrix-view");
  const canvas = view.querySelector("canvas");
  const often = { willReadFrequently: true };
  const paper = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", often);
  paper.drawImage(canvas, 0, 0);
  const style = getComputedStyle(view);
  const probe = new OffscreenCanvas(1, 1).getContext("2d", often);
  const letters = new Map();
  for (const [name, letter] of [["absent", "."], ["shade-0", "F"], ["shade-4", "S"]]) {
    probe.fillStyle = style.getPropertyValue(`--cv-${name}`).trim();
    probe.fillRect(0, 0, 1, 1);
    letters.set(String(probe.getImageData(0, 0, 1, 1).data.slice(0, 3)), letter);
  }
  const { width, height } = canvas;
  const { data } = paper.getImageData(0, 0, width, height);
  const at = (x, y) => {
    const from = 4 * (y * width + x);
    return letters.get(`${data[from]},${data[from + 1]},${data[from + 2]}`) ?? "";
  };
  const down = new Array(height).fill(0);
  const across = new Array(width).fill(0);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) if (at(x, y)) { down[y] += 1; across[x] += 1; }
  }
  const top = down.findIndex((count) => count > Math.max(...down) / 2);
  const left = across.findIndex((count) => count > Math.max(...across) / 2);
  const rows = [];
  for (let y = top; y + size <= height && at(left + 1, y + 1); y += size) {
    let row = "";
    for (let x = left; x + size <= width && at(x + 1, y + 1); x += size) row += at(x + 1, y + 1);
    rows.push(row);
  }
  done({ left, top, rows });
})))
"""


def read_grid(folder: Path) -> OutcomeGrid:
    """The matrix of a run as its journal has it."""
    with RunStore.read(folder) as store:
        return Timeline.of(store).grid()


def letters(grid: OutcomeGrid, tasks: Indices, candidates: Indices | None = None) -> list[str]:
    """The rows that a picture must have: S for solved, F for failed, . for not sampled."""
    columns = np.arange(len(grid.candidates)) if candidates is None else candidates
    kinds = grid.codes & KINDS
    names = np.full(KINDS + 1, "?")
    names[[0, FAILED, SOLVED]] = ".", "F", "S"
    return ["".join(names[kinds[columns, task]]) for task in tasks]


def opened(page: "Page", url: str) -> None:
    page.goto(url)
    page.wait_for_selector("#matrix[data-ready]")


def field(page: "Page", label: str) -> "Locator":
    """A choice or a filter above the matrix."""
    named = page.locator(".matrix-tools label", has_text=re.compile(f"^{label}"))
    return named.locator("select, input")


def shown(page: "Page") -> list[str]:
    found: list[str] = page.evaluate(LOOK, SIZE)["rows"]
    return found


def cell(page: "Page", row: int, column: int) -> tuple[float, float]:
    """Where a cell is in the window, if nothing is scrolled."""
    found = page.evaluate(LOOK, SIZE)
    box = page.locator(".matrix-view canvas").bounding_box()
    assert box is not None
    return (
        box["x"] + found["left"] + (column + 0.5) * SIZE,
        box["y"] + found["top"] + (row + 0.5) * SIZE,
    )


def test_every_cell_of_89_tasks_and_60_candidates_is_drawn(
    page: "Page", served: Serve, paper_size: Path
) -> None:
    grid = read_grid(paper_size)
    url = f"{served(paper_size).url}/runs/paper/matrix?size={SIZE}"
    opened(page, url)
    expected = letters(grid, grid_orders(grid).tasks["solvability"])
    top = shown(page)
    assert len(top) > 40
    assert top == expected[: len(top)]
    assert len(top[0]) == 60
    page.evaluate("() => { document.querySelector('.matrix-view').scrollTop = 1e6; }")
    page.wait_for_function("() => document.querySelector('.matrix-view').scrollTop > 0")
    # The last row is whole at the bottom; the first in sight may be cut.
    moved = page.evaluate("() => document.querySelector('.matrix-view').scrollTop")
    page.evaluate(
        f"() => {{ document.querySelector('.matrix-view').scrollTop = {moved // SIZE * SIZE}; }}"
    )
    below = shown(page)
    start = int(moved // SIZE)
    assert below == expected[start : start + len(below)]
    assert start + len(below) >= 88
    ran = int(((grid.codes & KINDS) != 0).sum())
    assert f"{ran:,} of 5,340 cells ran" in page.inner_text("#matrix .count")
    solved = int(((grid.codes & KINDS) == SOLVED).sum())
    assert f"solved {solved:,}" in page.inner_text("#matrix .legend")


def test_2000_tasks_and_200_candidates_scroll(pages: NewPage, served: Serve, huge: Path) -> None:
    page = pages(theme="dark")
    grid = read_grid(huge)
    orders = grid_orders(grid)
    opened(page, f"{served(huge).url}/runs/huge/matrix?size={SIZE}&candidates=score&tasks=given")
    expected = letters(grid, orders.tasks["given"], orders.candidates["score"])
    top = shown(page)
    assert [row[: len(top[0])] for row in expected[: len(top)]] == top
    for across, down in ((40, 700), (100, 1_900), (0, 30)):
        page.evaluate(
            """([x, y]) => {
              const view = document.querySelector(".matrix-view");
              [view.scrollLeft, view.scrollTop] = [x, y];
            }""",
            [SIZE * across, SIZE * down],
        )
        found = shown(page)
        column = page.evaluate("() => document.querySelector('.matrix-view').scrollLeft") / SIZE
        assert column == int(column)
        part = slice(int(column), int(column) + len(found[0]))
        assert [row[part] for row in expected[down : down + len(found)]] == found
        assert len(found) > 30
    assert "400,000 cells" in page.inner_text("#matrix .count")
    # All of it in one window, a few pixels a task.
    page.get_by_role("button", name="Fit the window").click()
    page.wait_for_url(lambda url: "size" not in url)


def test_a_tip_has_the_inclusion_probability_and_a_click_opens_the_trial(
    page: "Page", served: Serve, paper_size: Path
) -> None:
    grid = read_grid(paper_size)
    opened(page, f"{served(paper_size).url}/runs/paper/matrix?size={SIZE}")
    order = grid_orders(grid).tasks["solvability"]
    kinds = grid.codes & KINDS
    row, column = next(
        (row, column)
        for row, task in enumerate(order[10:40], 10)
        for column in range(20, 60)
        if kinds[column, task] == SOLVED
    )
    draw = grid.draw(column, order[row])
    assert draw is not None
    x, y = cell(page, row, column)
    page.mouse.move(x, y)
    page.wait_for_function("() => document.getElementById('tip').textContent.includes('π')")
    tip = page.inner_text("#tip")
    assert grid.candidates[column].name in tip
    assert grid.tasks[order[row]] in tip
    assert "solved" in tip
    assert f"inclusion probability π = {draw[0].probabilities[draw[1]]:.3f}" in tip
    page.mouse.move(10, 10)
    assert page.locator("#tip").is_hidden()
    # A starting harness ran every task: there is no draw.
    page.mouse.move(*cell(page, row, 0))
    page.wait_for_function(
        "() => document.getElementById('tip').textContent.includes('every task')"
    )
    page.mouse.click(x, y)
    page.wait_for_url(f"**/trial?candidate={grid.candidates[column].name}**")
    assert grid.tasks[order[row]] in page.inner_text("h1")
    page.go_back()
    page.wait_for_selector("#matrix[data-ready]")


def test_a_click_opens_the_trace(page: "Page", served: Serve, finished: Path) -> None:
    grid = read_grid(finished)
    opened(page, f"{served(finished).url}/runs/sample/matrix?size={SIZE}&tasks=given")
    law = next(i for i, name in enumerate(grid.tasks) if grid.codes[0, i] & KINDS == SOLVED)
    page.mouse.click(*cell(page, law, 0))
    page.wait_for_url("**/trial?candidate=plain**")
    assert "Habeas corpus" in page.inner_text(".turn.assistant")


def test_keys_move_through_the_matrix(page: "Page", served: Serve, paper_size: Path) -> None:
    grid = read_grid(paper_size)
    opened(page, f"{served(paper_size).url}/runs/paper/matrix?size={SIZE}")
    order = grid_orders(grid).tasks["solvability"]
    page.locator(".matrix-view").focus()
    spoken = page.locator("#spoken")
    page.keyboard.press("ArrowDown")
    assert grid.tasks[order[0]] in spoken.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert grid.tasks[order[1]] in spoken.inner_text()
    assert grid.candidates[1].name in spoken.inner_text()
    page.keyboard.press("End")
    assert grid.candidates[59].name in spoken.inner_text()
    for _ in range(4):
        page.keyboard.press("PageDown")
    assert grid.tasks[order[88]] in spoken.inner_text()
    assert page.evaluate("() => document.querySelector('.matrix-view').scrollTop") > 0
    # Letters are no keys of the page here, and Enter opens what the cursor is on.
    page.keyboard.press("c")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trial?candidate=start-0**")


def count(page: "Page") -> tuple[int, int]:
    """The numbers of tasks and candidates below the matrix."""
    text = page.inner_text("#matrix .count")
    found = re.match(r"([\d,]+) tasks?, ([\d,]+) candidates?", text)
    if found is None:
        assert "No task or candidate" in text
        return 0, 0
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def until(page: "Page", tasks: int, candidates: int) -> None:
    start = f"{tasks:,} task"
    page.wait_for_function(
        """([start, middle]) => {
          const text = document.querySelector("#matrix .count").textContent;
          return text.startsWith(start) && text.includes(middle);
        }""",
        arg=[start, f", {candidates:,} candidate"],
    )


def test_orders_and_filters_are_in_the_address(
    page: "Page", served: Serve, paper_size: Path
) -> None:
    grid = read_grid(paper_size)
    orders = grid_orders(grid)
    url = f"{served(paper_size).url}/runs/paper/matrix"
    opened(page, f"{url}?size={SIZE}")
    assert count(page) == (89, 60)
    field(page, "Tasks").select_option("cluster")
    field(page, "Candidates").select_option("cluster")
    expected = letters(grid, orders.tasks["cluster"], orders.candidates["cluster"])
    assert shown(page) == expected[: len(shown(page))]
    assert "tasks=cluster&candidates=cluster" in page.url.replace(f"size={SIZE}&", "")
    half = len(grid.tasks) // 2
    field(page, "Pool").select_option("0")
    until(page, half, 60)
    p = grid.solvability
    assert np.isclose(p, 1 / 3).any() or np.isclose(p, 2 / 3).any()  # on the edge of a group
    middling = int(((p > 1 / 3 - 1e-9) & (p < 2 / 3 + 1e-9)).sum())
    field(page, "Pool").select_option("all")
    field(page, "Solvability").select_option("mixed")
    until(page, middling, 60)
    field(page, "Find a task").fill("task-004")
    named = sum("task-004" in name for name in grid.tasks)
    field(page, "Solvability").select_option("all")
    until(page, named, 60)
    field(page, "Find a candidate").fill("START")
    until(page, named, 2)
    page.wait_for_url("**candidate=START**")
    deep = page.url
    # The way back leads through the choices, without leaving the page.
    page.go_back()
    page.wait_for_url(lambda url: url != deep)
    assert "/matrix" in page.url
    page.goto("about:blank")
    opened(page, deep)
    assert count(page) == (named, 2)
    assert field(page, "Find a candidate").input_value() == "START"
    assert field(page, "Tasks").input_value() == "cluster"
    field(page, "Find a candidate").fill("nobody")
    page.wait_for_function(
        "() => document.querySelector('#matrix .count').textContent.startsWith('No task')"
    )


def test_back_restores_the_order(page: "Page", served: Serve, paper_size: Path) -> None:
    grid = read_grid(paper_size)
    orders = grid_orders(grid)
    opened(page, f"{served(paper_size).url}/runs/paper/matrix?size={SIZE}")
    field(page, "Tasks").select_option("given")
    page.wait_for_url("**tasks=given**")
    assert shown(page)[:20] == letters(grid, orders.tasks["given"])[:20]
    page.go_back()
    page.wait_for_url(lambda url: "tasks=given" not in url)
    assert field(page, "Tasks").input_value() == "solvability"
    assert shown(page)[:20] == letters(grid, orders.tasks["solvability"])[:20]


@pytest.mark.parametrize("theme", first(1, ["dark", "light"]))
def test_the_sealed_test_and_missing_outcomes_have_a_picture(
    pages: NewPage, served: Serve, finished: Path, theme: str
) -> None:
    page = pages(theme=theme, width=390)
    url = f"{served(finished).url}/runs/sample/matrix"
    opened(page, url)
    legend = page.inner_text("#matrix .legend")
    for text in ("solved", "failed", "between", "missing 1", "not sampled", "after the choice"):
        assert text in legend
    page.get_by_role("link", name="of the sealed test").click()
    page.wait_for_url("**split=test")
    page.wait_for_selector("#matrix[data-ready]")
    assert count(page)[0] == 6
