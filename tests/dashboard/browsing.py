"""A browser and the server of the pages, as tests use them.

Playwright's calls occupy the event loop of their thread for good, and other tests of the same
process need theirs. Therefore the browser lives in a thread of its own, where the bodies of tests
with a browser run too; see `conftest.py`.
"""

import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A request that leaves the machine fails at once, and its test with it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
PATIENCE = 30_000
"""Milliseconds that a page may take on a busy machine before a test fails."""


class BrowserThread:
    """One browser, and the only thread that may use it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="browser")
        self._driver: Any = None
        self._browser: Browser | None = None

    def call[T](self, function: Callable[[], T]) -> T:
        """What a function returns in the thread of the browser."""
        return self._pool.submit(function).result()

    @property
    def browser(self) -> "Browser":
        """The browser, started at its first use; ask for it in its thread."""
        from playwright.sync_api import sync_playwright

        if self._browser is None:
            self._driver = sync_playwright().start()
            self._browser = self._driver.chromium.launch(
                executable_path=CHROMIUM, args=list(OPTIONS)
            )
        return self._browser

    def close(self) -> None:
        """End the browser."""

        def end() -> None:
            if self._browser is not None:
                self._browser.close()
            if self._driver is not None:
                self._driver.stop()

        self.call(end)
        self._pool.shutdown()


class Watch:
    """What must not happen on a page: messages of errors, requests to elsewhere, refusals.

    `allowed` are patterns of messages that a test expects.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.allowed: list[str] = []

    def look_at(self, context: "BrowserContext") -> None:
        """Watch all pages of a context."""
        context.on("request", lambda request: self._requested(request.url))
        context.on("console", lambda message: self._said(message.type, message.text))
        context.on("weberror", lambda error: self.problems.append(f"error: {error.error}"))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(f"{kind}: {text}")

    def _requested(self, url: str) -> None:
        self.requests.append(url)
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname not in ("127.0.0.1", "localhost"):
            self.problems.append(f"a request left this machine: {url}")
        elif parts.scheme not in ("http", "about"):
            self.problems.append(f"a request that is not HTTP: {url[:200]}")

    def unexpected(self) -> list[str]:
        """The problems that no test allowed."""
        return [
            text
            for text in self.problems
            if not any(re.search(pattern, text) for pattern in self.allowed)
        ]


class Site:
    """The real server of the pages, in a thread; `stop` and `start` keep its port."""

    def __init__(self, places: Sequence[Path], token: str = "", tick: float = 0.1) -> None:
        self._places, self._token, self._tick = places, token, tick
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        """The address without a slash at its end."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Listen on a free port; on the same one after a stop."""
        from coevolve.dashboard import Access, PageServer
        from coevolve.dashboard.page_access import LOOPBACK

        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self._port))
        listening.listen(128)
        self._port = listening.getsockname()[1]
        access = Access(LOOPBACK, self._token)
        self._server = PageServer(self._places, access, tick=self._tick)
        self._listening = listening
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the server and all its connections."""
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()


@contextmanager
def new_page(
    thread: BrowserThread, watch: Watch, *, theme: str = "light", width: int = 1280,
    scripts: bool = True, bypass_csp: bool = False,
) -> "Iterator[Page]":  # fmt: skip
    """A page in a context of its own; call it in the thread of the browser."""
    context = thread.browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        java_script_enabled=scripts,
        bypass_csp=bypass_csp,
        is_mobile=width < 640,
        has_touch=width < 640,
    )
    context.set_default_timeout(PATIENCE)
    watch.look_at(context)
    try:
        yield context.new_page()
    finally:
        context.close()


def missing_tool() -> str:
    """Why there is no browser; empty if there is one."""
    if not os.access(CHROMIUM, os.X_OK):
        return "chromium is missing (Debian: apt install chromium)"
    return ""
