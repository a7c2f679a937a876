"""Takes the screenshots of `docs/ui.md` in Chromium, and draws the picture of the README.

Run it as `make screenshots`. The first time, two searches with the embedded model run for some
twenty minutes in `.screenshots`: the demo, and the same with 20 rounds of 3 candidates. Another
time, the runs that are there are shown as they are. The page of a replay shows a matrix of
`../shared/data/matrices`, and is left out where that folder is missing.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import coevolve
from coevolve.figures import run_figures
from coevolve.store import RunStore
from coevolve.views.timeline import Timeline

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "img"
MATRIX = ROOT.parent / "shared" / "data" / "matrices" / "gepa_arc_agi.npz"
SEARCHES = {"twenty-rounds": (20, 3), "six-rounds": (6, 2)}
"""Rounds, and candidates of a round, of each search."""
DESK, PHONE = (1280, 860), (390, 844)
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def searched(folder: Path, name: str) -> Path:
    """A search of the demo's kind; its folder."""
    file = folder / f"{name}.toml"
    rounds, candidates = SEARCHES[name]
    if not file.exists():
        text = files("coevolve.benchmarks.textclass").joinpath("service_desk.toml").read_text()
        for old, new in (
            ('name = "service-desk"', f'name = "{name}"'),
            ("rounds = 6", f"rounds = {rounds}"),
            ("candidates = 2", f"candidates = {candidates}"),
        ):
            assert old in text, old
            text = text.replace(old, new)
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    run = coevolve.open(file)
    if not run.started or run.state.ended is None:
        print(f"{name}: a search of some minutes")
        run.run()
    return folder / "runs" / name


@contextmanager
def served(places: list[Path]) -> Iterator[str]:
    """The pages of some runs, by `coevolve ui`; yields their address."""
    command = [sys.executable, "-m", "coevolve", "ui", *map(str, places), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().removeprefix("Open ").strip().rstrip("/")
        finally:
            server.terminate()


def taken(page: Page, url: str, name: str) -> None:
    """A screenshot of a page, with few colours, as a small file."""
    page.goto(url)
    page.get_by_text("The journal is being read").wait_for(state="detached")
    page.wait_for_timeout(900)
    if name == "matrix":
        page.mouse.move(1005, 690)  # a cell that was drawn
        page.wait_for_timeout(500)
    file = IMAGES / f"ui-{name}.png"
    page.screenshot(path=file)
    with Image.open(file) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file.relative_to(ROOT)}, {file.stat().st_size // 1000} kB")


def browsed(browser: Browser, size: tuple[int, int], scheme: str) -> Page:
    """A new page of a size, in a light or dark scheme."""
    dark = "dark" if scheme == "dark" else "light"
    shape = {"width": size[0], "height": size[1]}
    return browser.new_page(viewport=shape, color_scheme=dark)  # type: ignore[arg-type]


def main(folder: Path) -> None:
    """Run the searches where they are missing, and take all screenshots."""
    runs = [searched(folder, name) for name in SEARCHES]
    places = [folder]
    if MATRIX.exists():
        replay = folder / "replay.json"
        if not replay.exists():
            command = [sys.executable, "-m", "coevolve", "replay", str(MATRIX), "--json"]
            done = subprocess.run(command, check=True, capture_output=True)
            replay.write_bytes(done.stdout)
        places.append(replay)
    timeline = Timeline.of(RunStore.read(runs[0]))
    found = timeline.snapshot()
    IMAGES.mkdir(exist_ok=True)
    grid = timeline.grid()
    figure = run_figures(found, grid)["matrix"]
    (IMAGES / "matrix.svg").write_text(figure.standalone())
    best = found.report.best or ""
    parents = found.report.candidate(best).parents
    column = [row.name for row in grid.candidates].index(best)
    failed = grid.tasks[int((grid.scores[column] == 0).argmax())]
    pages = {
        "overview": "",
        "matrix": "/matrix",
        "frontier": "/frontier",
        "lineage": "/lineage",
        "costs": "/costs",
        "failures": "/failures",
        "candidate": "/candidate?" + urlencode({"name": best, "against": parents[0]}),
        "trial": "/trial?" + urlencode({"candidate": best, "task": failed}),
        "task": "/task?" + urlencode({"name": failed}),
    }
    long = runs[0].name
    with served(places) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        desk = browsed(browser, DESK, "light")
        for name, path in pages.items():
            taken(desk, f"{url}/runs/{long}{path}", name)
        taken(desk, f"{url}/", "runs")
        taken(
            desk, f"{url}/compare?" + urlencode([("run", name) for name in SEARCHES]), "comparison"
        )
        if len(places) > 1:
            taken(desk, f"{url}/replays/replay", "replay")
        taken(browsed(browser, DESK, "dark"), f"{url}/runs/{long}/matrix", "dark")
        taken(browsed(browser, PHONE, "light"), f"{url}/runs/{long}", "phone")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".screenshots")
