"""How fast the pages of `coevolve ui` are: drawing, opening a large run, following a live one.

Run as `make bench-dashboard`; it takes a quarter of an hour and needs Debian's chromium. The chart
libraries that the canvas is compared with come from npm; without npm only the canvas is measured.
`--quick` measures everything once and briefly, and records nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import matrix_drawing
import record
from page_server import Server, browser, heap_mb, page, transferred_kb
from playwright.sync_api import Browser, Page
from projections import made

RUNS = {
    "89 x 60": (1_250, 89, 0.2, 3),
    "2,000 x 200": (80_000, 2_000, 0.2, 10),
    "100,000": (100_000, 1_000, 0.2, 10),
    "400,000": (400_000, 2_000, 0.2, 10),
}
"""Outcomes, tasks, fraction and candidates per round of each run."""
ORDER = ("drawing", "opening", "live", "machine")
"""The tables of the record."""
PACE = 100
"""Outcomes per second of a live run."""
DRAWN = """
// A page may say first that the run is being read, and come again: times are of the first asking.
if (location.protocol === "http:") {
  const times = sessionStorage;
  times.began ??= performance.timeOrigin;
  new PerformanceObserver((found) => {
    for (const one of found.getEntriesByName("first-contentful-paint")) {
      times.painted ??= performance.timeOrigin + one.startTime;
    }
  }).observe({ type: "paint", buffered: true });
  (function look() {
    const matrix = document.getElementById("matrix");
    const figure = document.querySelector("#figure-progress svg");
    if (matrix ? matrix.dataset.ready : figure && document.readyState === "complete") {
      // One frame later it is on the screen.
      const end = () => (times.drawn = performance.timeOrigin + performance.now());
      requestAnimationFrame(() => setTimeout(end));
    } else requestAnimationFrame(look);
  })();
}
"""
TIMES = "() => ({ ...sessionStorage })"
SHOWN = """
window.shown = [];
(function look() {
  const matrix = document.getElementById("matrix");
  let number = null;
  if (matrix) number = matrix.dataset.ready ? Number(matrix.dataset.ready) : null;
  else for (const tile of document.querySelectorAll(".tiles li")) {
    const [label, value] = [tile.querySelector(".label"), tile.querySelector(".value")];
    if (label.textContent === "trials") number = Number(value.textContent.replaceAll(",", ""));
  }
  if (number !== null && number !== window.shown.at(-1)?.[0]) {
    window.shown.push([number, Date.now() / 1000]);
  }
  requestAnimationFrame(look);
})();
"""


def opening(found: Browser, folder: Path, outcomes: str, repeats: int) -> Iterator[dict[str, str]]:
    """Rows of opening a page: with a server that has just started, and again."""
    for name, place in {"overview": "", "matrix": "/matrix"}.items():
        cold: list[dict[str, float]] = []
        warm: list[dict[str, float]] = []
        for _ in range(repeats):
            with Server(folder) as server:
                cold.append(_opened(found, server, place))
                warm += [_opened(found, server, place) for _ in range(2)]
        for state, rows in {"first": cold, "again": warm}.items():
            yield {
                "outcomes": outcomes,
                "page": name,
                "opened": state,
                "first paint, s": f"{_median(rows, 'paint'):.2f}",
                "worst, s": f"{max(row['paint'] for row in rows):.2f}",
                "drawn, s": f"{_median(rows, 'drawn'):.2f}",
                "transferred, kB": f"{_median(rows, 'kb'):,.0f}",
                "server, MB": f"{_median(rows, 'server'):,.0f}",
                "page, MB": f"{_median(rows, 'heap'):,.0f}",
            }


def _opened(found: Browser, server: Server, place: str) -> dict[str, float]:
    with page(found, DRAWN) as shown:
        shown.goto(server.run + place)
        shown.wait_for_selector("#matrix[data-ready], #figure-progress svg", timeout=60_000)
        both = "() => sessionStorage.painted && sessionStorage.drawn"
        shown.wait_for_function(both, timeout=60_000)
        times = {name: float(text) / 1e3 for name, text in shown.evaluate(TIMES).items()}
        return {
            "paint": times["painted"] - times["began"],
            "drawn": times["drawn"] - times["began"],
            "kb": transferred_kb(shown),
            "server": server.memory_mb,
            "heap": heap_mb(shown),
        }


def _median(rows: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(row[name] for row in rows)


LIVE = {
    "overview": ("",),
    "matrix": ("/matrix",),
    "overview, matrix, frontier": ("", "/matrix", "/frontier"),
}


def following(
    found: Browser, folder: Path, name: str, pages: str, seconds: float
) -> dict[str, str]:
    """The row of a live run: how long after an outcome a page shows it."""
    times = folder.with_suffix(f".{len(pages)}.json")
    command = [sys.executable, str(Path(__file__).with_name("paced_run.py")), folder, times]
    writer = subprocess.Popen(
        [*map(str, command), "--pace", str(PACE), "--seconds", str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdin is not None
    with writer, ExitStack() as stack:
        if writer.stdout.readline() != "ready\n":
            raise SystemExit("the run did not open")
        server = stack.enter_context(Server(folder))
        opened = []
        for place in LIVE[pages]:
            opened.append(stack.enter_context(page(found, SHOWN)))
            opened[-1].goto(server.run + place)
            opened[-1].wait_for_timeout(1_500)
        used, began = server.cpu_seconds, time.monotonic()
        writer.stdin.write("go\n")
        writer.stdin.flush()
        while writer.poll() is None:
            opened[0].wait_for_timeout(200)
        share = (server.cpu_seconds - used) / (time.monotonic() - began)
        opened[0].wait_for_timeout(5_000)
        written: list[tuple[int, int, float]] = json.loads(times.read_text())
        delays: list[float] = []
        late: list[float] = []
        for place, one in zip(LIVE[pages], opened, strict=True):
            if place != "/frontier":  # it changes with rounds only
                waits = _delays(one, written, matrix=place == "/matrix")
                delays += waits
                late += waits[-len(waits) // 6 :]
        memory = server.memory_mb
    delays.sort()
    return {
        "run": name,
        "pages open": pages,
        "outcomes": f"{len(written):,}",
        "per second": f"{(len(written) - 1) / (written[-1][2] - written[0][2]):.0f}",
        "median delay, s": f"{statistics.median(delays):.1f}",
        "95th, s": f"{delays[int(0.95 * len(delays))]:.1f}",
        "worst, s": f"{delays[-1]:.1f}",
        "median of the last 5 s": f"{statistics.median(late):.1f}",
        "server, % of a core": f"{100 * share:.0f}",
        "server, MB": f"{memory:,.0f}",
    }


def _delays(shown: Page, written: list[tuple[int, int, float]], *, matrix: bool) -> list[float]:
    """Seconds from the commit of each outcome until the page showed it."""
    frames: list[tuple[int, float]] = shown.evaluate("() => window.shown")
    found, at = [], 0
    for events, trials, when in written:
        while at < len(frames) and frames[at][0] < (events if matrix else trials):
            at += 1
        if at == len(frames):
            raise SystemExit(f"an outcome was never shown; the page is at {frames[-1:]}")
        found.append(frames[at][1] - when)
    return found


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="once and briefly; record nothing")
    parser.add_argument(
        "--only",
        choices=("drawing", "opening", "live"),
        help="one table only; the record keeps the others",
    )
    given = parser.parse_args()
    repeats, seconds = (1, 6.0) if given.quick else (3, 30.0)
    parts = [given.only] if given.only else ["drawing", "opening", "live"]
    known = record.RESULTS / "dashboard.json"
    tables: dict[str, list[dict[str, Any]]] = {}
    if given.only and known.exists():
        tables = {
            name: rows for name, rows in json.loads(known.read_text()).items() if name in ORDER
        }
    with tempfile.TemporaryDirectory() as place, browser() as found:
        runs = {name: Path(place, name.replace(" ", "").replace(",", "")) for name in RUNS}
        for name, shape in RUNS.items():
            made(runs[name], *shape).close()
        for part in parts:
            before = os.getloadavg()
            tables[part] = _measured(part, found, runs, Path(place), repeats, seconds)
            record.show(part, tables[part])
            machine = [row for row in tables.get("machine", []) if row["table"] != part]
            load = {"load before": f"{before[0]:.1f}", "load after": f"{os.getloadavg()[0]:.1f}"}
            machine.append({"table": part, "chromium": found.version, **load})
            tables["machine"] = sorted(machine, key=lambda row: ORDER.index(row["table"]))
    record.show("machine", tables["machine"])
    if not given.quick:
        record.save("dashboard", {name: tables[name] for name in ORDER if name in tables})


def _measured(
    part: str,
    found: Browser,
    runs: dict[str, Path],
    place: Path,
    repeats: int,
    seconds: float,
) -> list[dict[str, Any]]:
    if part == "drawing":
        shapes = {name: runs[name] for name in matrix_drawing.SIZES}
        return [*matrix_drawing.measured(found, shapes, place, repeats)]
    if part == "opening":
        large = ("100,000", "400,000")
        return [row for name in large for row in opening(found, runs[name], name, repeats)]
    live = {"new": place / "new", "100,000": runs["100,000"]}
    return [
        following(found, folder, name, pages, seconds)
        for name, folder in live.items()
        for pages in LIVE
    ]


if __name__ == "__main__":
    main()
