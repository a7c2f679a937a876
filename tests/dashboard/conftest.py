"""Fixtures of the pages: a browser for the whole process, servers, and runs to show.

A test that uses `page` or `pages` runs in the thread of the browser; its fixtures do not.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboard.browsing import BrowserThread, Site, Watch, missing_tool, new_page
from tests.dashboard.sample_runs import finished_run, large_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

type Serve = Callable[..., Site]
type NewPage = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """Run the body of a test with a browser in the thread of the browser."""
    found = pyfuncitem.funcargs.get("browser")
    if not isinstance(found, BrowserThread):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    found.call(lambda: pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="session")
def browser() -> Iterator[BrowserThread]:
    """The browser of this process, in its thread."""
    pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    if reason := missing_tool():
        pytest.skip(reason)
    thread = BrowserThread()
    yield thread
    thread.close()


@pytest.fixture
def watch() -> Watch:
    """What went wrong on the pages of a test; it must be nothing in the end."""
    return Watch()


@pytest.fixture
def pages(browser: BrowserThread, watch: Watch, served: Serve) -> Iterator[NewPage]:
    """New pages: `pages(theme="dark", width=390, scripts=False, bypass_csp=True)`.

    They are closed before the servers end, which would be an error on a page.
    """
    with ExitStack() as stack:

        def make(**options: Any) -> "Page":
            return stack.enter_context(new_page(browser, watch, **options))

        yield make
        browser.call(stack.pop_all().close)
    assert watch.unexpected() == []


@pytest.fixture
def page(browser: BrowserThread, pages: NewPage) -> "Page":
    """A fresh page, light and wide; errors on it fail the test."""
    return browser.call(pages)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Servers: `served(folder, ...).url` is the address of the pages of some folders."""
    pytest.importorskip("starlette", reason="starlette is missing")
    pytest.importorskip("uvicorn", reason="uvicorn is missing")
    # On a busy machine a short journal takes long to read too; the page of the run is wanted.
    monkeypatch.setattr("coevolve.dashboard.web_server.PATIENCE", 60.0)
    sites: list[Site] = []

    def serve(*places: Path, **options: Any) -> Site:
        sites.append(Site(places, **options))
        return sites[-1]

    yield serve
    for site in sites:
        site.stop()


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run: two pools, partial scores, faults, a refused candidate; only to read."""
    return finished_run(tmp_path_factory.mktemp("finished") / "sample")


@pytest.fixture(scope="session")
def paper_size(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 89 tasks and 60 candidates; only to read."""
    return large_run(tmp_path_factory.mktemp("paper") / "paper", tasks=89, candidates=60)


@pytest.fixture(scope="session")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 2,000 tasks and 200 candidates; only to read."""
    folder = tmp_path_factory.mktemp("huge") / "huge"
    return large_run(folder, tasks=2_000, candidates=200, fraction=0.02)
