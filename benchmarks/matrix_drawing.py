"""Frame times of the matrix: the canvas of the page, and chart libraries on the same outcomes.

The libraries come from npm at the time of the measurement. All of them get the scores of the
cells, a colour for each, their own way to move and zoom, and a tip for the cell under the pointer.
The canvas also draws names, estimates, bars and marks. The pointer and the wheel are real input.
The CPU time of a frame, over all processes of the browser, says what a drawing costs also where
the machine has other work, which makes frames late.
"""

import json
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from page_server import VIEWPORT, Server, browser_seconds, page
from playwright.sync_api import Browser, Page

SLOW = 33.4
"""Milliseconds of a frame at 30 frames per second."""
SECONDS = 2.0
"""How long each kind of input goes on, in each repetition."""
PATIENCE = 90.0
"""Seconds after which a drawing that has not appeared ends the measurement."""
OURS = "this page (canvas)"
FRAMES = """
window.frames_of = [];
window.counting = false;
(function tick() {
  if (window.counting) window.frames_of.push(performance.now());
  requestAnimationFrame(tick);
})();
"""
ENDED = """() => {
  window.counting = false;
  return window.frames_of.splice(0);
}"""
DRAWN = """
window.drawn = null;
(function look() {
  if (document.getElementById("matrix")?.dataset.ready) {
    requestAnimationFrame(() => setTimeout(() => (window.drawn = performance.now())));
  } else requestAnimationFrame(look);
})();
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A chart library: its package, the file that a page loads, and a script that draws."""

    package: str
    file: str
    draw: str


# `z` has a row for each task: a score for each candidate, or null. `part` asks for a part of the
# matrix, as large as what the canvas shows at eight pixels per cell.
_READ = """
const query = new URLSearchParams(location.search);
const part = query.get("view") === "part";
const found = await (await fetch("../data.json")).json();
const raw = atob(found.codes);
const [tall, wide] = [found.tasks.length, found.candidates.length];
const z = found.tasks.map((_, task) => found.candidates.map((_, one) => {
  const kind = raw.charCodeAt(one * tall + task) & 7;
  return kind === 2 ? 1 : kind === 1 ? 0 : null;
}));
const x = found.candidates.map((one) => one.shown);
const y = found.tasks;
const [down, across] = [Math.min(tall, 80), Math.min(wide, 130)];
const host = document.getElementById("host");
const drawn = () =>
  requestAnimationFrame(() => setTimeout(() => (window.drawn = performance.now())));
"""
_PLOTLY = """
await Plotly.newPlot(host, [{
  type: "heatmap", z, x, y, showscale: false, hoverongaps: false,
  colorscale: [[0, "#eda52b"], [1, "#0072b2"]], zmin: 0, zmax: 1,
}], {
  dragmode: "pan", margin: { t: 20, r: 20 },
  xaxis: { range: [-0.5, (part ? across : wide) - 0.5] },
  yaxis: { range: [(part ? down : tall) - 0.5, -0.5] },
}, { scrollZoom: true, displayModeBar: false });
drawn();
"""
_ECHARTS = """
const chart = echarts.init(host, null, { renderer: "canvas" });
const cells = [];
z.forEach((row, j) => row.forEach((v, i) => { if (v !== null) cells.push([i, j, v]); }));
chart.on("finished", () => { if (!window.drawn) drawn(); });
chart.setOption({
  animation: false, tooltip: {},
  xAxis: { type: "category", data: x }, yAxis: { type: "category", data: y, inverse: true },
  visualMap: { min: 0, max: 1, show: false, inRange: { color: ["#eda52b", "#0072b2"] } },
  dataZoom: [
    { type: "inside", xAxisIndex: 0, startValue: 0, endValue: (part ? across : wide) - 1 },
    { type: "inside", yAxisIndex: 0, startValue: 0, endValue: (part ? down : tall) - 1 },
  ],
  series: [{ type: "heatmap", data: cells }],
});
"""
_D3 = """
const [width, height] = [host.clientWidth, host.clientHeight];
const svg = d3.select(host).append("svg").attr("width", width).attr("height", height);
const group = svg.append("g");
const tip = d3.select(document.body).append("div").style("position", "fixed");
const [w, h] = [width / wide, height / tall];
const cells = [];
z.forEach((row, j) => row.forEach((v, i) => { if (v !== null) cells.push([i, j, v]); }));
group.selectAll("rect").data(cells).join("rect")
  .attr("x", (d) => d[0] * w).attr("y", (d) => d[1] * h).attr("width", w).attr("height", h)
  .attr("fill", (d) => (d[2] ? "#0072b2" : "#eda52b"))
  .on("pointermove", (event, d) => tip.text(`${x[d[0]]}, ${y[d[1]]}: ${d[2]}`)
    .style("left", `${event.clientX + 9}px`).style("top", `${event.clientY + 9}px`));
const zoom = d3.zoom().on("zoom", (event) => group.attr("transform", event.transform));
svg.call(zoom);
if (part) svg.call(zoom.scaleBy, tall / down, [0, 0]);
drawn();
"""
LIBRARIES = {
    "plotly.js": Library(
        package="plotly.js-cartesian-dist-min", file="plotly-cartesian.min.js", draw=_PLOTLY
    ),
    "echarts": Library(package="echarts", file="dist/echarts.min.js", draw=_ECHARTS),
    "d3, SVG": Library(package="d3", file="dist/d3.min.js", draw=_D3),
}
"""What a reader may suggest. uPlot draws lines only, and no heatmap."""


def fetched(folder: Path) -> dict[str, tuple[str, Path]]:
    """The files of the libraries with their versions; none where npm does not work."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not installed: only the canvas is measured.")
        return {}
    folder.mkdir()
    (folder / "package.json").write_text("{}")
    packages = [one.package for one in LIBRARIES.values()]
    made = subprocess.run(
        [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        print(f"npm could not fetch the libraries, only the canvas is measured: {made.stderr}")
        return {}
    found = {}
    for name, one in LIBRARIES.items():
        place = folder / "node_modules" / one.package
        version = json.loads((place / "package.json").read_text())["version"]
        found[name] = f"{name} {version}", place / one.file
    return found


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _paced(step: Callable[[int], None]) -> None:
    """Call something 60 times per second, or as often as the page allows."""
    began = time.monotonic()
    number = 0
    while (now := time.monotonic()) < began + SECONDS:
        step(number)
        number += 1
        time.sleep(max(0.0, now + 1 / 60 - time.monotonic()))


_MIDDLE = VIEWPORT["width"] / 2, VIEWPORT["height"] / 2 + 60


def _wheel(shown: Page, step: float) -> None:
    """Turn the wheel, for a while one way, then back."""
    shown.mouse.move(*_MIDDLE)
    _paced(lambda number: shown.mouse.wheel(0, step if number // 40 % 2 == 0 else -step))


def _drag(shown: Page) -> None:
    """Drag up for half a second, and back."""
    x, y = _MIDDLE
    shown.mouse.move(x, y)

    def step(number: int) -> None:
        at = number % 30
        if at == 0:
            shown.mouse.down()
        shown.mouse.move(x, y + (-5 * at if number // 30 % 2 == 0 else 5 * at))
        if at == 29:
            shown.mouse.up()

    _paced(step)
    shown.mouse.up()


def _hover(shown: Page) -> None:
    x, y = _MIDDLE
    _paced(lambda n: shown.mouse.move(x + 7 * (n % 40 - 20), y + 3 * (n % 97 - 48)))


def _keys(shown: Page) -> None:
    shown.focus(".matrix-view")
    _paced(lambda number: shown.keyboard.press("+" if number // 6 % 2 == 0 else "-"))


type Act = Callable[[Page], None]
THEIRS: dict[str, dict[str, Act]] = {
    "?view=part": {"scroll": _drag, "hover": _hover},
    "?view=full": {"scroll": _drag, "hover": _hover, "zoom": lambda page: _wheel(page, 30)},
}
"""What happens on each page of a library."""
SIZES = {"89 x 60": (18, 14), "2,000 x 200": (14, 4)}
"""Pixels of a cell of the canvas, so that there is something to scroll."""


def _own(shape: str) -> dict[str, dict[str, Act]]:
    large, small = SIZES[shape]
    scroll: Act = lambda page: _wheel(page, 60)  # noqa: E731
    return {
        f"?size={large}": {"scroll": scroll, "hover": _hover},
        f"?size={small}": {"scroll": scroll, "hover": _hover, "zoom": _keys},
    }


class Drawing:
    """A way to draw a matrix, and what was measured of it.

    Args:
        url: Its page.
        inputs: What happens on the page, by query and kind of input.
    """

    def __init__(self, url: str, inputs: Mapping[str, Mapping[str, Act]]) -> None:
        self._url, self._inputs = url, inputs
        self._firsts: list[float] = []
        self._frames: dict[str, list[float]] = {"scroll": [], "zoom": [], "hover": []}
        self._used = dict.fromkeys(self._frames, 0.0)

    def measure(self, found: Browser) -> None:
        """Open the page and do everything once."""
        for place, acts in self._inputs.items():
            with page(found, FRAMES, DRAWN) as shown:
                shown.goto(self._url + place, wait_until="commit")
                shown.wait_for_function("() => window.drawn", timeout=PATIENCE * 1e3)
                self._firsts.append(shown.evaluate("() => window.drawn") / 1e3)
                for name, act in acts.items():
                    shown.wait_for_timeout(300)
                    used = browser_seconds()
                    shown.evaluate("() => { window.counting = true; }")
                    act(shown)
                    times = shown.evaluate(ENDED)
                    self._used[name] += browser_seconds() - used
                    self._frames[name] += [after - before for before, after in pairwise(times)]

    def row(self) -> dict[str, str]:
        """Time to the first picture, and the frames of every kind of input."""
        row = {"first picture, s": f"{statistics.median(self._firsts):.2f}"}
        for name, frames in self._frames.items():
            frames.sort()
            share = sum(one < SLOW for one in frames) / len(frames)
            late = frames[int(0.95 * len(frames))]
            row[f"{name}, in time"] = f"{100 * share:.1f}%"
            row[f"{name}, 95th / worst ms"] = f"{late:.0f} / {frames[-1]:.0f}"
            row[f"{name}, CPU ms"] = f"{1e3 * self._used[name] / len(frames):.0f}"
        return row


def measured(
    found: Browser, runs: Mapping[str, Path], folder: Path, repeats: int
) -> list[dict[str, str]]:
    """The rows of all drawings of all runs; they take turns, as load varies."""
    libraries = fetched(folder / "npm")
    rows = []
    for name, run in runs.items():
        site = folder / f"site-{run.name}"
        site.mkdir()
        with Server(run) as server, served(site) as url:
            (site / "data.json").write_bytes(_got(f"{server.run}/matrix.json"))
            scripts = [_got(f"{server.url}/assets/{one}") for one in ("live.js", "matrix.js")]
            sizes = {OURS: sum(map(len, scripts))}
            drawings = {OURS: Drawing(f"{server.run}/matrix", _own(name))}
            for key, (label, file) in libraries.items():
                _write_page(site / key, LIBRARIES[key], file)
                drawings[label] = Drawing(f"{url}/{quote(key)}/index.html", THEIRS)
                sizes[label] = file.stat().st_size
            for _ in range(repeats):
                for one in drawings.values():
                    one.measure(found)
        for label, one in drawings.items():
            size = f"{sizes[label] / 1e3:,.0f}"
            rows.append({"matrix": name, "drawn by": label, "script, kB": size, **one.row()})
    return rows


def _write_page(folder: Path, library: Library, file: Path) -> None:
    folder.mkdir()
    shutil.copy(file, folder / "library.js")
    (folder / "draw.js").write_text(_READ + library.draw)
    (folder / "index.html").write_text(
        "<!doctype html><meta charset='utf-8'><body style='margin:0'>"
        "<div id='host' style='width:1300px;height:860px'></div>"
        "<script src='library.js'></script><script type='module' src='draw.js'></script>"
    )


def _got(url: str) -> bytes:
    with urlopen(url) as answer:
        data: bytes = answer.read()
    return data
