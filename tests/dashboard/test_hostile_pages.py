"""A hostile run in a real browser: nothing of it runs, leaves, or hides; and who else may read."""

import json
import re
import threading
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("starlette", reason="starlette is missing")
pytest.importorskip("uvicorn", reason="uvicorn is missing")

from coevolve.figures import run_figures
from coevolve.reports import html_report, run_document
from coevolve.reports.notebook_view import notebook_html
from coevolve.store import RunStore
from coevolve.views.timeline import Timeline
from tests.dashboard.browsing import Site, Watch
from tests.dashboard.conftest import NewPage, Serve
from tests.dashboard.hostile_runs import ALL, HEBREW, TASKS, hostile_run
from tests.dashboard.test_page_access import ask
from tests.effort import effort

if TYPE_CHECKING:
    from playwright.sync_api import Page

ELEMENTS = (
    "html head meta title link script body a header div span nav main section h1 h2 h3 h4 p ul li "
    "ol dl dt dd b strong table thead tbody tr th td figure figcaption details summary svg desc g "
    "defs pattern path rect circle line text pre code form input label select option button "
    "footer kbd noscript meter fieldset legend style"
)
LARGEST = 1_500_000
"""Bytes of a page; a hostile candidate may have 20 MB of files."""
ATTACKED = "() => window.attacked ?? null"


class Elements(HTMLParser):
    """Checks the elements and attributes of a page, and collects its addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS.split()
        for name, value in attrs:
            assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9-]*", name), name
            assert not name.startswith("on")
            assert name not in ("style", "srcdoc", "formaction", "http-equiv")
            if name in ("href", "src", "action"):
                assert re.match(r"#|/(?![/\\])", value or ""), value
                self.addresses.append((value or "").partition("#")[0])


def check_text(text: str) -> None:
    """No character that a reader does not see, and none that changes the direction."""
    kinds = {character: unicodedata.category(character) for character in set(text) - {"\n", "\t"}}
    assert [c for c, kind in kinds.items() if kind in ("Cc", "Cf", "Cs", "Zl", "Zp")] == []


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("hostile") / 'h <img src=x onerror="attacked=1">')


@pytest.fixture(scope="module")
def site(hostile: Path) -> Iterator[Site]:
    found = Site([hostile])
    yield found
    found.stop()


def test_every_page_that_is_linked_is_harmless_and_small(site: Site) -> None:
    todo, seen = ["/"], set[str]()
    kinds: dict[str, int] = {}
    while todo:
        path = todo.pop(0)
        kind = urlsplit(path).path
        kinds[kind] = kinds.get(kind, 0) + 1
        if path in seen or kinds[kind] > effort(12, 200):
            continue
        seen.add(path)
        found = ask(site, path)
        assert found.status in (200, 307, 404), path
        assert len(found.body) < LARGEST, path
        if found.status == 307:
            todo.append(found.headers["location"])
        type_ = found.headers.get("content-type", "")
        if type_.startswith(("text", "application/json", "image/svg")):
            check_text(found.body.decode())
        if type_.startswith("text/html") and "content-disposition" not in found.headers:
            page = Elements()
            page.feed(found.body.decode())
            page.close()
            todo += page.addresses
    assert len(seen) > 30


def test_the_matrix_as_json_is_plain(site: Site) -> None:
    where = ask(site, "/").headers["location"]
    found = ask(site, f"{where}/matrix.json")
    check_text(found.body.decode())
    data = json.loads(found.body)
    for name in [*data["tasks"], *data["pools"], *(one["shown"] for one in data["candidates"])]:
        check_text(name)
        assert len(name) <= 200
    assert set(TASKS) == set(data["ids"])


def _settle(page: "Page") -> None:
    page.locator("#theme", has_text="Theme:").wait_for()
    page.wait_for_load_state("load")


PLACES = ("", "/matrix", "/frontier", "/lineage", "/costs", "/failures")


def test_nothing_of_a_hostile_run_runs_in_a_browser(
    page: "Page", watch: Watch, site: Site
) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.goto(site.url)
    base = page.url
    page.add_init_script("addEventListener('securitypolicyviolation', e => window.attacked = e)")
    for place in PLACES:
        page.goto(base + place)
        _settle(page)
        assert page.evaluate(ATTACKED) is None, place
        assert page.evaluate("document.scripts.length") == (2 if place == "/matrix" else 1)
        assert page.evaluate("document.querySelectorAll('img, iframe, object, base').length") == 0
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{place}: {wide} pixels too wide"
    assert dialogs == []
    assert watch.unexpected() == []


def test_pages_of_hostile_names_open_and_can_be_used(page: "Page", site: Site) -> None:
    page.goto(site.url)
    base = page.url
    for path in (
        f"/candidate?name={_coded(HEBREW)}",
        f"/candidate?name=__proto__&against={_coded(HEBREW)}",
        f"/candidate?name={_coded(ALL)}",
        f"/task?name={_coded(TASKS[0])}",
        f"/task?name={_coded(TASKS[1])}",
    ):
        answer = page.goto(base + path)
        assert answer is not None
        assert answer.status == 200, path
        _settle(page)
        assert page.evaluate(ATTACKED) is None, path
        before = page.locator("#theme").inner_text()
        page.locator("#theme").click()
        assert page.locator("#theme").inner_text() != before
    trials = page.locator("table a[href*='/trial?']")
    for number in range(min(effort(3, 30), trials.count())):
        trials.nth(number).click()
        _settle(page)
        assert page.locator("h1").count() == 1
        assert page.evaluate(ATTACKED) is None
        page.go_back()


def _coded(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


def test_tips_of_the_matrix_show_names_as_text(page: "Page", site: Site) -> None:
    page.goto(site.url)
    page.goto(page.url + "/matrix?size=14")
    page.locator("#matrix[data-ready]").wait_for()
    box = page.locator("#matrix canvas").first.bounding_box()
    assert box is not None
    tips = set()
    for down in range(0, int(box["height"]), 18):
        page.mouse.move(box["x"] + 60, box["y"] + down)
        if page.locator("#tip").is_visible():
            tips.add(page.locator("#tip").inner_text())
    assert any("<script>" in text for text in tips)
    assert page.locator("#tip *").count() == 0
    for text in tips:
        check_text(text)
    assert page.evaluate(ATTACKED) is None


def test_letters_from_the_right_do_not_reorder_their_neighbours(page: "Page", site: Site) -> None:
    page.goto(site.url)
    page.goto(page.url + f"/candidate?name={_coded(HEBREW)}")
    _settle(page)
    places = page.evaluate(
        """() => {
            const beside = document.querySelector('h1 .soft');
            const range = document.createRange();
            range.setStart(document.querySelector('h1'), 0);
            range.setEndBefore(beside);
            return [range.getBoundingClientRect().right, beside.getBoundingClientRect().left];
        }"""
    )
    assert places[0] <= places[1] + 1
    styles = page.evaluate(
        "[...document.querySelectorAll('main a, main td, main .soft')]"
        ".map((one) => getComputedStyle(one).unicodeBidi)"
    )
    assert styles
    assert set(styles) == {"isolate"}


def test_files_of_a_hostile_run_are_harmless_when_opened(
    pages: NewPage, watch: Watch, hostile: Path, tmp_path: Path
) -> None:
    with RunStore.read(hostile) as journal:
        timeline = Timeline.of(journal)
        made = run_document(timeline, journal, version="1")
        figures = run_figures(timeline.snapshot(), timeline.grid("validation"))
        report = html_report(made.numbers, {name: one.svg for name, one in made.figures.items()})
        notebook = notebook_html(timeline)
    files = {"report.html": report, "notebook.html": f"<!doctype html><body>{notebook}"}
    files |= {f"{name}.svg": one.standalone() for name, one in figures.items()}
    page = pages()
    watch.allowed.append(r"a request that is not HTTP: file:")
    for name, text in files.items():
        check_text(text)
        assert len(text) < 5_000_000
        path = tmp_path / name
        path.write_text(text, "utf-8")
        page.goto(path.as_uri())
        assert page.evaluate(ATTACKED) is None, name
        assert page.evaluate("document.querySelectorAll('img, iframe, a[href^=j]').length") == 0
        # A file that is not well-formed shows an error of the parser instead.
        assert page.evaluate("document.querySelector('parsererror')") is None, name
    asked = [url for url in watch.requests if not url.startswith(tmp_path.as_uri())]
    assert asked == []


EVIL = """<!doctype html><link rel="icon" href="data:,"><title>evil</title><body><script>
const site = %s, got = {};
const soon = (ms) => new Promise((done) => setTimeout(done, ms));
async function attack() {
  for (const path of ["/runs/sample", "/runs/sample/matrix.json", "/stream"]) {
    for (const mode of ["cors", "no-cors"]) {
      try {
        const answer = await fetch(site + path, { mode, credentials: "include" });
        got[`${mode} ${path}`] = `${answer.type} ${(await answer.text()).length}`;
      } catch (error) { got[`${mode} ${path}`] = "refused"; }
    }
  }
  const element = (tag, name, path) => new Promise((done) => {
    const one = document.createElement(tag);
    one.onload = () => done("loaded");
    one.onerror = () => done("refused");
    if (tag === "link") one.rel = "stylesheet";
    one[name] = site + path;
    document.body.append(one);
    setTimeout(() => done("nothing"), 3000);
  });
  got.script = await element("script", "src", "/runs/sample/matrix.json");
  got.code = await element("script", "src", "/assets/live.js");
  got.image = await element("img", "src", "/assets/icon.svg");
  got.figure = await element("img", "src", "/runs/sample/figures/matrix.svg");
  got.style = await element("link", "href", "/assets/page.css");
  const source = new EventSource(site + "/runs/sample/stream", { withCredentials: true });
  got.events = await new Promise((done) => {
    source.onmessage = () => done("read");
    source.onopen = () => done("open");
    source.onerror = () => done("refused");
  });
  source.close();
  const frame = document.createElement("iframe");
  frame.src = site + "/runs/sample";
  document.body.append(frame);
  await soon(500);
  const tried = (get) => { try { return get(); } catch (error) { return "refused"; } };
  got.frame = tried(() => frame.contentDocument ? "read" : "refused");
  got.inside = tried(() => frame.contentWindow.document.body.innerText);
  try {
    const socket = new WebSocket(site.replace("http", "ws") + "/stream");
    got.socket = await new Promise((done) => {
      socket.onopen = () => done("open");
      socket.onerror = () => done("refused");
    });
  } catch (error) { got.socket = "refused"; }
  window.got = got;
}
attack();
window.openSite = () => { window.other = window.open(site + "/runs/sample"); };
</script>"""


class _Evil(BaseHTTPRequestHandler):
    page = b""
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("referer", "")))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page)  # type: ignore[attr-defined]

    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture
def evil() -> Iterator[ThreadingHTTPServer]:
    """Another site on this machine; its page and what was asked of it are attributes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Evil)
    server.page, server.asked = b"", []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("token", ["", "a secret of the reader"])
def test_the_page_of_another_site_cannot_read_a_run(
    name: str, token: str, pages: NewPage, watch: Watch, served: Serve, finished: Path,
    evil: ThreadingHTTPServer,
) -> None:  # fmt: skip
    site = served(finished, token=token)
    page = pages()
    watch.allowed.append(
        r"40[134]|Refused|blocked|WebSocket|ERR_|Cross-Origin|CORS|MIME|EventSource"
    )
    if token:  # the reader is logged in
        page.goto(f"{site.url}/?token={token.replace(' ', '%20')}")
        assert page.locator("h1").count() == 1
        assert "token" not in page.url
    evil.page = (EVIL % json.dumps(site.url)).encode()  # type: ignore[attr-defined]
    page.goto(f"http://{name}:{evil.server_port}/")
    page.wait_for_function("() => window.got")
    got = page.evaluate("window.got")
    assert set(got.values()) <= {"refused", "nothing"}, got
    for frame in page.frames[1:]:
        assert "sample" not in frame.content()
    with page.context.expect_page() as opened:
        page.evaluate("window.openSite()")
    opened.value.wait_for_load_state()
    assert page.evaluate("window.other.closed")  # as far as this site can see
    assert opened.value.evaluate("window.opener") is None


def test_the_token_does_not_leave_with_a_link(
    page: "Page", served: Serve, finished: Path, evil: ThreadingHTTPServer
) -> None:
    site = served(finished, token="a secret of the reader")
    evil.page = b'<!doctype html><link rel="icon" href="data:,"><title>x</title>'  # type: ignore[attr-defined]
    page.goto(f"{site.url}/?token=a%20secret%20of%20the%20reader")
    assert page.url == f"{site.url}/runs/sample"
    assert "secret" not in page.content()
    assert page.evaluate("document.cookie").count("coevolve-") <= 1  # the width of the window
    page.evaluate(f"location.href = 'http://127.0.0.1:{evil.server_port}/next'")
    page.wait_for_url("**/next")
    asked = dict(evil.asked)  # type: ignore[attr-defined]
    assert asked["/next"] == ""
