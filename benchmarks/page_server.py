"""`coevolve ui` and a browser for benchmarks: processes, memory, and what a page measures."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
VIEWPORT = {"width": 1400, "height": 900}
_HERTZ = os.sysconf("SC_CLK_TCK")


class Server:
    """A process of `coevolve ui` on any free port.

    Args:
        folder: The run, or the folder of runs.
    """

    def __init__(self, folder: Path) -> None:
        began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "coevolve", "ui", str(folder), "--port", "0", "--no-open"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("Open http"):
            raise SystemExit(f"coevolve ui did not start: {line!r}")
        self.url = line.split()[1].rstrip("/")
        self.started = time.monotonic() - began
        self.run = f"{self.url}/runs/{folder.name}"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *given: object) -> None:
        self._process.terminate()
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def memory_mb(self) -> float:
        """Memory of the process now."""
        return self._memory("VmRSS")

    @property
    def most_memory_mb(self) -> float:
        """The most memory that the process had."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> float:
        rows = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith(name)) / 1024

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the process so far."""
        text = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(text[11]) + int(text[12])) / _HERTZ


def browser_seconds() -> float:
    """CPU time of all processes of the browsers that this process started."""
    found, total = [os.getpid()], 0
    for one in found:
        with contextlib.suppress(OSError):  # it may end meanwhile
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
            name, _, text = Path(f"/proc/{one}/stat").read_text().rpartition(")")
            if "(chromium" in name:
                total += int(text.split()[11]) + int(text.split()[12])
    return total / _HERTZ


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's chromium without a window; pages draw on the processor."""
    with sync_playwright() as play:
        # Memory is told in full, and a collection can be asked for.
        arguments = ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
        with play.chromium.launch(executable_path=CHROMIUM, args=arguments) as found:
            yield found


@contextmanager
def page(found: Browser, *scripts: str) -> Iterator[Page]:
    """A page with an empty cache; `scripts` run before those of the page."""
    context: BrowserContext = found.new_context(viewport=VIEWPORT)  # type: ignore[arg-type]
    try:
        for script in scripts:
            context.add_init_script(script)
        yield context.new_page()
    finally:
        context.close()


def heap_mb(shown: Page) -> float:
    """Memory of the scripts of a page after a collection."""
    shown.evaluate("() => window.gc()")
    return float(shown.evaluate("() => performance.memory.usedJSHeapSize")) / 1e6


def transferred_kb(shown: Page) -> float:
    """What a page and everything it asked for took on the wire."""
    total: Any = shown.evaluate(
        """() => [...performance.getEntriesByType("navigation"),
                  ...performance.getEntriesByType("resource")]
            .reduce((sum, one) => sum + one.transferSize, 0)"""
    )
    return float(total) / 1e3
