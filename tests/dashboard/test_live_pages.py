"""Pages of a run that works, dies, goes on, breaks or disappears while they are open."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coevolve.store import JOURNAL
from tests.dashboard.browsing import Watch
from tests.dashboard.conftest import NewPage, Serve
from tests.dashboard.live_run import LiveRun

if TYPE_CHECKING:
    from playwright.sync_api import Page

STARTS = 40
"""Trials of Phase 0: two starting harnesses on 20 tasks."""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveRun]:
    run = LiveRun(tmp_path / "live", tmp_path / "trials").start(6)
    yield run
    run.kill()


def marked(page: "Page") -> None:
    """Put a mark on a page that a reload would remove."""
    page.evaluate("() => { window.stayed = true; }")


def stayed(page: "Page") -> bool:
    found: bool = page.evaluate("() => window.stayed === true")
    return found


def until_text(page: "Page", place: str, text: str) -> None:
    """Wait until an element has a text in it, or no text at all."""
    page.wait_for_function(
        """([place, text]) => {
          const found = document.querySelector(place)?.textContent;
          return text ? found?.includes(text) : found === "";
        }""",
        arg=[place, text],
    )


def until_trials(page: "Page", number: int) -> None:
    """Wait until the overview counts so many trials."""
    page.wait_for_function(
        """(number) => [...document.querySelectorAll(".tiles li")].some((tile) =>
          tile.querySelector(".label").textContent === "trials" &&
          tile.querySelector(".value").textContent === String(number))""",
        arg=number,
    )


def test_pages_follow_a_run_that_is_killed_and_goes_on(
    pages: NewPage, served: Serve, live: LiveRun
) -> None:
    site = served(live.folder)
    overview, matrix = pages(), pages()
    for page, url in ((overview, site.url), (matrix, f"{site.url}/runs/live/matrix")):
        page.goto(url)
        until_text(page, ".badge", "running")
        until_text(page, "#linked", "live")
        marked(page)
    until_text(matrix, "#matrix .count", "6 of 40 cells ran")
    until_trials(overview, 6)
    live.allow(11)
    until_text(matrix, "#matrix .count", "11 of 40 cells ran")
    until_trials(overview, 11)
    # Phase 0 ends and a round begins: candidates appear.
    live.allow(STARTS + 3)
    until_text(matrix, "#matrix .count", "4 candidates")
    until_text(overview, "#part-candidates", "r1-1")
    until_text(overview, ".state", "round 1 of 1")
    live.kill()
    for page in (overview, matrix):
        until_text(page, ".badge", "not finished")
        until_text(page, "#linked", "")
    until_text(overview, "#part-summary", "No process works on this run")
    assert overview.locator("#part-candidates tbody tr").count() == 4
    assert "4 candidates" in matrix.inner_text("#matrix .count")
    live.start(2)
    for page in (overview, matrix):
        until_text(page, ".badge", "running")
    live.allow(1_000)
    live.wait()
    for page in (overview, matrix):
        until_text(page, ".badge", "ended")
    until_text(overview, "h1", "won")
    until_text(matrix, "#matrix .legend", "after the choice")
    assert stayed(overview)
    assert stayed(matrix)


def test_a_page_keeps_what_a_reader_does_while_the_run_goes_on(
    page: "Page", served: Serve, live: LiveRun
) -> None:
    page.goto(f"{served(live.folder).url}/runs/live")
    until_text(page, "#linked", "live")
    page.locator("#words summary").click()
    field = page.get_by_label("Filter candidates")
    field.fill("plain")
    page.wait_for_url("**find=plain")
    live.allow(20)
    until_trials(page, 20)
    assert field.input_value() == "plain"
    assert page.evaluate("() => document.activeElement.name") == "find"
    assert page.get_attribute("#words", "open") is not None
    names = page.locator("#part-candidates tbody td:nth-child(2)").all_inner_texts()
    assert names == ["plain"]


def test_a_page_waits_for_its_server(
    page: "Page", watch: Watch, served: Serve, live: LiveRun
) -> None:
    watch.allowed.append("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY")
    site = served(live.folder)
    page.goto(f"{site.url}/runs/live/matrix")
    until_text(page, "#matrix .count", "6 of 40")
    marked(page)
    site.stop()
    until_text(page, "#linked", "connection lost")
    live.allow(13)
    assert "6 of 40" in page.inner_text("#matrix .count")
    site.start()
    until_text(page, "#matrix .count", "13 of 40")
    until_text(page, "#linked", "live")
    assert stayed(page)


@pytest.mark.parametrize("how", ["removed", "damaged"])
def test_a_journal_that_is_lost_leaves_the_page(
    page: "Page", served: Serve, finished: Path, tmp_path: Path, how: str
) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "sample"))
    page.goto(f"{served(folder).url}/runs/sample")
    until_text(page, ".badge", "ended")
    rows = page.locator("#part-candidates tbody tr").count()
    kept = tmp_path / "kept.db"
    shutil.copy(folder / JOURNAL, kept)
    if how == "removed":
        (folder / JOURNAL).unlink()
    else:
        new = tmp_path / "new.db"
        new.write_bytes(b"x" * 5_000)
        new.replace(folder / JOURNAL)
    until_text(page, "#linked", "journal unreadable")
    until_text(page, ".notice.error", "cannot be read")
    assert page.locator("#part-candidates tbody tr").count() == rows
    kept.replace(folder / JOURNAL)
    until_text(page, "#linked", "")
    page.wait_for_selector(".notice.error", state="detached")
    assert page.locator("#part-candidates tbody tr").count() == rows


def test_the_list_of_runs_shows_new_ones(
    page: "Page", served: Serve, finished: Path, tmp_path: Path
) -> None:
    site = served(tmp_path)
    page.goto(site.url)
    assert "no run in this folder" in page.inner_text("main")
    shutil.copytree(finished, tmp_path / "runs" / "first")
    page.wait_for_url("**/runs/first")  # the only run is shown at once
    shutil.copytree(finished, tmp_path / "runs" / "second")
    page.goto(site.url)
    assert page.locator("#part-runs tbody tr").count() == 2
    marked(page)
    shutil.copytree(finished, tmp_path / "runs" / "third")
    until_text(page, "#part-runs", "third")
    page.get_by_label("Compare third").check()
    shutil.rmtree(tmp_path / "runs" / "first")
    until_text(page, "#part-runs tbody tr:first-child", "second")
    assert page.locator("#part-runs tbody tr").count() == 2
    assert stayed(page)
