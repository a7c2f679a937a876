"""A journal that takes long to read does not keep a page blank."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dashboard.conftest import Serve

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Journals are not read to their end before this is set."""
    web_server = pytest.importorskip("coevolve.dashboard.web_server")
    from coevolve.views.timeline import Timeline

    opened, of = threading.Event(), Timeline.of

    def waits(*given: object) -> Timeline:
        opened.wait(60)
        return of(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Timeline, "of", waits)
    monkeypatch.setattr(web_server, "PATIENCE", 0.1)
    yield opened
    opened.set()


def test_a_page_says_that_the_journal_is_being_read_and_then_shows_the_run(
    page: "Page", served: Serve, finished: Path, gate: threading.Event
) -> None:
    site = served(finished)
    page.goto(f"{site.url}/runs/sample/matrix?size=8", wait_until="commit")
    page.get_by_text("The journal is being read").wait_for()
    gate.set()
    page.wait_for_selector("#matrix[data-ready]")
    assert page.url.endswith("/runs/sample/matrix?size=8")
    assert page.get_by_text("The journal is being read").count() == 0


def test_a_program_waits_for_the_page_itself(
    served: Serve, finished: Path, gate: threading.Event
) -> None:
    httpx = pytest.importorskip("httpx")
    site = served(finished)
    threading.Timer(0.5, gate.set).start()
    answer = httpx.get(f"{site.url}/runs/sample", timeout=60)
    assert "refresh" not in answer.headers
    assert "r1-0 won" in answer.text
