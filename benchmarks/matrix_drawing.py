"""Frame times of the matrix: the canvas of the page, and chart libraries on the same outcomes.

The libraries come from npm at the time of the measurement. All of them get the scores of the
cells, a colour for each, their own way to move and zoom, and a tip for the cell under the pointer.
The canvas also draws names, estimates, bars and marks. The pointer and the wheel are real input.
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
from urllib.request import urlopen

from page_server import VIEWPORT, Server, page
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TookTooLong

SLOW = 33.4
"""Milliseconds of a frame at 30 frames per second."""
SECONDS = 2.0
"""How long each kind of input goes on, in each repetition."""
PATIENCE = 90.0
"""Seconds after which a drawing that has not appeared is given up."""
OURS = "this page (canvas)"
FRAMES = """
window.frames_of = [];
window.counting = false;
(function tick() {
  if (window.counting) window.frames_of.push(performance.now());
  requestAnimationFrame(tick);
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
const found = await (await fetch("data.json")).json();
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


Input = tuple[str, Callable[[Page], None]]
THEIRS: dict[str, list[Input]] = {
    "scroll": [("?view=full", _drag), ("?view=part", _drag)],
    "zoom": [("?view=full", lambda shown: _wheel(shown, 30))],
    "hover": [("?view=full", _hover), ("?view=part", _hover)],
}
OWN: dict[str, list[Input]] = {
    "scroll": [("?size=4", lambda s: _wheel(s, 60)), ("?size=18", lambda s: _wheel(s, 60))],
    "zoom": [("", _keys)],
    "hover": [("", _hover), ("?size=8", _hover)],
}
"""Where each kind of input happens, and how it is made."""


def _frames(found: Browser, url: str, act: Callable[[Page], None]) -> tuple[float, list[float]]:
    """Seconds until the matrix was drawn, and the milliseconds of every frame of some input."""
    drawn = """window.drawn = null; (function look() {
      if (document.getElementById("matrix")?.dataset.ready)
        requestAnimationFrame(() => setTimeout(() => (window.drawn = performance.now())));
      else requestAnimationFrame(look);
    })();"""
    with page(found, FRAMES, drawn) as shown:
        shown.set_default_timeout(PATIENCE * 1e3)
        shown.goto(url, wait_until="commit")
        shown.wait_for_function("() => window.drawn")
        first = shown.evaluate("() => window.drawn") / 1e3
        shown.wait_for_timeout(300)
        shown.evaluate("() => { window.counting = true; }")
        act(shown)
        times = shown.evaluate("() => { window.counting = false; return window.frames_of; }")
    return first, [after - before for before, after in pairwise(times)]


def _row(
    found: Browser, url: str, inputs: Mapping[str, list[Input]], repeats: int
) -> dict[str, str]:
    """Time to the first picture, and the frames of every kind of input, over all repetitions."""
    firsts: list[float] = []
    row: dict[str, str] = {}
    for name, places in inputs.items():
        frames: list[float] = []
        try:
            for _ in range(repeats):
                for place, act in places:
                    first, times = _frames(found, url + place, act)
                    firsts.append(first)
                    frames += times
        except TookTooLong:
            row |= {f"{name}, in time": "given up", f"{name}, 95th / worst ms": "-"}
            continue
        frames.sort()
        share = sum(one < SLOW for one in frames) / len(frames)
        row[f"{name}, in time"] = f"{100 * share:.1f}%"
        late = frames[int(0.95 * len(frames))]
        row[f"{name}, 95th / worst ms"] = f"{late:.0f} / {frames[-1]:.0f}"
    picture = f"{statistics.median(firsts):.2f}" if firsts else f"over {PATIENCE:.0f}"
    return {"first picture, s": picture, **row}


def measured(
    found: Browser, runs: Mapping[str, Path], folder: Path, repeats: int
) -> list[dict[str, str]]:
    """The rows of all drawings of all runs."""
    libraries = fetched(folder / "npm")
    rows = []
    for name, run in runs.items():
        site = folder / f"site-{run.name}"
        site.mkdir()
        with Server(run) as server:
            for data in ("matrix.json", "live.js", "matrix.js"):
                path = f"{server.run}/{data}" if data.endswith("json") else f"/assets/{data}"
                path = path if path.startswith("http") else server.url + path
                with urlopen(path) as answer:
                    (site / data.replace("matrix.json", "data.json")).write_bytes(answer.read())
            size = sum((site / one).stat().st_size for one in ("live.js", "matrix.js"))
            made = _row(found, f"{server.run}/matrix", OWN, repeats)
            rows.append({"matrix": name, "drawn by": OURS, "script, kB": _kb(size), **made})
        for key, (label, file) in libraries.items():
            shutil.copy(file, site / "library.js")
            (site / f"{key[:2]}.js").write_text(_READ + LIBRARIES[key].draw)
            (site / "index.html").write_text(
                "<!doctype html><meta charset='utf-8'><body style='margin:0'>"
                "<div id='host' style='width:1300px;height:860px'></div>"
                "<script src='library.js'></script>"
                f"<script type='module' src='{key[:2]}.js'></script>"
            )
            with served(site) as url:
                made = _row(found, f"{url}/index.html", THEIRS, repeats)
            size = file.stat().st_size
            rows.append({"matrix": name, "drawn by": label, "script, kB": _kb(size), **made})
    return rows


def _kb(size: int) -> str:
    return f"{size / 1e3:,.0f}"
