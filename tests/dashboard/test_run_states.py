"""Pages of runs in every state: not begun, in Phase 0, stopped, imported; and of no run."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coevolve.store import JOURNAL
from tests.dashboard.browsing import Watch
from tests.dashboard.conftest import Serve
from tests.dashboard.sample_runs import (
    first_of,
    imported_run,
    opened_run,
    part_of,
    stopped_run,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = ("", "/matrix", "/frontier", "/lineage", "/costs", "/failures", "/candidate?name=plain",
         "/task?name=law-1", "/trial?candidate=plain&task=law-1")  # fmt: skip


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory, finished: Path) -> Path:
    """A folder of runs in different states."""
    folder = tmp_path_factory.mktemp("states")
    opened_run(folder / "opened")
    stopped_run(folder / "stopped")
    imported_run(folder / "imported", folder / "past.csv")
    part_of(finished, folder / "phase-0", first_of(finished, "told"))
    part_of(finished, folder / "round-1", first_of(finished, "asked") + 4)
    (folder / "broken").mkdir()
    (folder / "broken" / JOURNAL).write_bytes(b"not a journal" * 500)
    return folder


@pytest.mark.parametrize(
    ("run", "badge", "headline"),
    [
        ("opened", "not started", "No candidate has a score yet."),
        ("phase-0", "not finished", "No candidate has a score yet."),
        ("round-1", "not finished", "plain is the best so far"),
        ("stopped", "stopped", "No candidate has a score yet."),
        ("imported", "ended", "won"),
    ],
)
def test_every_page_shows_a_run_in_any_state(
    page: "Page", served: Serve, states: Path, run: str, badge: str, headline: str
) -> None:
    site = served(states)
    for path in PAGES:
        answer = page.goto(f"{site.url}/runs/{run}{path}")
        assert answer is not None
        assert answer.status == 200, path
        assert page.locator(".badge").first.inner_text() == badge
        if path == "":
            assert headline in page.inner_text("h1")
        if path == "/matrix":
            page.wait_for_selector("#matrix[data-ready]")
        assert "Traceback" not in page.content()


def test_a_run_that_stopped_says_why(page: "Page", served: Serve, states: Path) -> None:
    site = served(states)
    page.goto(f"{site.url}/runs/stopped")
    text = page.inner_text("#part-summary")
    assert "The run stopped: " in text
    assert "the model needs a key" in text
    page.goto(f"{site.url}/runs/stopped/failures")
    assert "the model needs a key" in page.inner_text("#part-incidents")


def test_imported_outcomes_are_marked(page: "Page", served: Serve, states: Path) -> None:
    site = served(states)
    page.goto(f"{site.url}/runs/imported/candidate?name=plain")
    assert "imported" in page.inner_text("#part-outcomes")
    page.goto(f"{site.url}/runs/imported/trial?candidate=plain&task=law-1")
    assert "imported from" in page.inner_text("main")


def test_the_list_has_every_state_and_a_run_that_cannot_be_read(
    page: "Page", watch: Watch, served: Serve, states: Path
) -> None:
    site = served(states)
    page.goto(site.url)
    badges = page.locator("#part-runs .badge").all_inner_texts()
    assert sorted(badges) == [
        "ended", "not finished", "not finished", "not started", "stopped", "unreadable",
    ]  # fmt: skip
    assert "broken" in page.inner_text(".notice.error")
    watch.allowed.append("status of 503")
    answer = page.goto(f"{site.url}/runs/broken")
    assert answer is not None
    assert answer.status == 503
    assert "cannot be read" in page.inner_text(".notice.error")
    page.goto(f"{site.url}/compare?run=broken&run=imported")
    assert "broken" in page.inner_text(".notice.error")
    assert page.locator("#part-curves svg").is_visible()


def test_a_folder_without_runs_says_how_to_begin(
    page: "Page", served: Serve, tmp_path: Path
) -> None:
    site = served(tmp_path)
    page.goto(site.url)
    assert "coevolve run" in page.inner_text(".empty")
    page.goto(f"{site.url}/compare")
    assert page.locator(".empty").is_visible()


def test_a_run_that_is_deleted_is_still_shown(
    page: "Page", served: Serve, finished: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "sample"))
    site = served(tmp_path)
    page.goto(f"{site.url}/runs/sample/matrix")
    page.wait_for_selector("#matrix[data-ready]")
    shutil.rmtree(folder)
    page.wait_for_function(
        "() => document.getElementById('linked').textContent === 'journal unreadable'"
    )
    page.goto(f"{site.url}/runs/sample/candidate?name=r1-0")
    assert "r1-0" in page.inner_text("h1")
