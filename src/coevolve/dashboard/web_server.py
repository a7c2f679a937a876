"""The web server of the pages: routes, files, and the stream that says when a page is old."""

import asyncio
import json
import math
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from coevolve import __version__
from coevolve.dashboard.candidate_pages import (
    candidate_page,
    missing_page,
    task_page,
    trial_page,
)
from coevolve.dashboard.comparison_pages import comparison_page, replay_page, runs_page
from coevolve.dashboard.matrix_data import MatrixSource
from coevolve.dashboard.page_access import Access, AccessControl
from coevolve.dashboard.page_frame import (
    Ask,
    Page,
    address,
    document,
    empty,
    heading,
    notice,
    state_badge,
)
from coevolve.dashboard.run_catalogue import Catalogue
from coevolve.dashboard.run_feed import Moment, RunFeed
from coevolve.dashboard.run_pages import (
    costs_page,
    failures_page,
    frontier_page,
    lineage_page,
    matrix_page,
    overview_page,
)
from coevolve.errors import CoevolveError
from coevolve.figures import run_figures, style_sheet
from coevolve.formatting import json_text, one_line
from coevolve.reports import html_report, run_document
from coevolve.views.outcome_grid import GridSplit

PAGES: dict[str, Callable[[RunFeed, Ask, Moment], Page]] = {
    "": overview_page,
    "matrix": matrix_page,
    "frontier": frontier_page,
    "lineage": lineage_page,
    "costs": costs_page,
    "failures": failures_page,
    "candidate": candidate_page,
    "task": task_page,
    "trial": trial_page,
}
MOST_STREAMS = 200
"""Pages that may be open at once."""
TICK, HEARTBEAT = 0.5, 15.0
"""Seconds between two looks at a journal, and between two signs of life to a browser."""
PATIENCE = 1.0
"""Seconds that a browser waits for a long journal before it sees that it is being read."""
_LONGEST_QUERY = 4_000
type Look = Callable[[], dict[str, Any] | None]


def make_app(
    places: Sequence[Path],
    access: Access,
    *,
    tick: float = TICK,
    closing: asyncio.Event | None = None,
) -> AccessControl:
    """The application that shows runs.

    Args:
        places: Run folders, folders of runs, and files of replays.
        access: Who may see the pages.
        tick: Seconds between two looks at a journal.
        closing: Set when the server is about to end: the streams of open pages end.
    """
    server = _Server(Catalogue(places), tick, closing or asyncio.Event())
    routes = [
        Route("/", server.runs),
        Route("/compare", server.compare),
        Route("/replays/{key}", server.replay),
        Route("/stream", server.stream_of_runs),
        Route("/assets/{name}", server.asset),
        Route("/runs/{key}/stream", server.stream_of_run),
        Route("/runs/{key}/matrix.json", server.matrix),
        Route("/runs/{key}/cell.json", server.cell),
        Route("/runs/{key}/report.html", server.report),
        Route("/runs/{key}/figures/{name}", server.figure),
        Route("/runs/{key}", server.page),
        Route("/runs/{key}/{page}", server.page),
        Route("/{rest:path}", server.nothing),
    ]
    return AccessControl(Starlette(routes=routes, lifespan=server.lifespan), access)


class PageServer(uvicorn.Server):
    """A web server that ends the streams of open pages first; otherwise it would wait for them.

    Args:
        places: Run folders, folders of runs, and files of replays.
        access: Who may see the pages.
        tick: Seconds between two looks at a journal.
    """

    def __init__(self, places: Sequence[Path], access: Access, *, tick: float = TICK) -> None:
        self._closing = asyncio.Event()
        app = make_app(places, access, tick=tick, closing=self._closing)
        # The logging of the process stays as it is: pages that fail answer for themselves.
        config = uvicorn.Config(
            app,
            http="h11",  # refuses header lines that are too long or not valid
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, end the streams, finish what was asked for."""
        self._closing.set()
        await super().shutdown(sockets)


class _Server:
    """Answers requests; work on journals happens in threads."""

    def __init__(self, catalogue: Catalogue, tick: float, closing: asyncio.Event) -> None:
        self._catalogue, self._tick = catalogue, tick
        self._matrices: dict[RunFeed, MatrixSource] = {}
        self._using = threading.Lock()
        self._closing = closing
        self._looks: dict[str, tuple[float, asyncio.Future[dict[str, Any] | None]]] = {}
        self._open = asyncio.Semaphore(MOST_STREAMS)

    def lifespan(self, app: Starlette) -> Any:
        @asynccontextmanager
        async def living() -> AsyncIterator[None]:
            yield
            self._closing.set()
            self._catalogue.close()

        return living()

    async def runs(self, request: Request) -> Response:
        """The list of runs; the run itself if there is just one and no replay."""

        def made() -> Response:
            known = self._catalogue.folders()
            if len(known) == 1 and not self._catalogue.replays:
                return RedirectResponse(address(next(iter(known))), 307)
            ask = _ask(request)
            return _html(runs_page(self._catalogue, ask), ask)

        return await run_in_threadpool(made)

    async def compare(self, request: Request) -> Response:
        """Runs side by side."""
        keys = request.query_params.getlist("run")[:100]

        def made() -> Response:
            ask = _ask(request)
            return _html(comparison_page(self._catalogue, ask, keys), ask)

        return await run_in_threadpool(made)

    async def replay(self, request: Request) -> Response:
        """Protocols on recorded outcomes."""
        key = request.path_params["key"]

        def made() -> Response:
            ask = _ask(request)
            if key not in self._catalogue.replays:
                return _html(_not_found(f"There is no replay {key[:80]!r}."), ask)
            try:
                return _html(replay_page(self._catalogue, ask, key), ask)
            except CoevolveError as error:
                return _html(_broken(str(error)), ask)

        return await run_in_threadpool(made)

    async def page(self, request: Request) -> Response:
        """A page of a run."""
        return await run_in_threadpool(self._page, request)

    def _page(self, request: Request) -> Response:
        key, place = request.path_params["key"], request.path_params.get("page", "")
        ask = _ask(request, key)
        feed = self._catalogue.feed(key)
        if feed is None:
            return _html(_not_found(f"There is no run {key[:80]!r}."), _ask(request))
        # Only where a person opens a page: a script could do nothing with the answer.
        opened = request.headers.get("sec-fetch-mode") == "navigate"
        if opened and not feed.read_within(PATIENCE):
            answer = _html(_reading(feed.folder.name), ask)
            answer.headers["refresh"] = "0"
            return answer
        moment = feed.moment()
        look = f"{'n' if ask.narrow else 'w'}{ask.theme}"
        tag = f'"{moment.tag}-{feed.file}-{look}-{__version__}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        name = feed.folder.name
        try:
            with feed.locked():
                made = PAGES.get(place)
                page = missing_page("page", place) if made is None else made(feed, ask, moment)
                text = document(page, ask, moment, state_badge(feed, moment), name)
        except CoevolveError as error:
            page = _broken(f"The journal of {feed.folder} cannot be read: {error}")
            badge = '<b class="badge bad">unreadable</b>'
            text = document(page, ask, moment, badge, name)
        # "no-cache" keeps a copy, which the next request may confirm by its tag.
        headers = {"etag": tag, "cache-control": "no-cache"}
        return HTMLResponse(_encoded(text), page.status, headers=headers)

    async def matrix(self, request: Request) -> Response:
        """The matrix as JSON: whole, or the changes since a number of events."""

        def made() -> Response:
            source = self._matrix(request)
            if source is None:
                return _json({"error": "There is no such run."}, 404)
            split, since = _split(request), request.query_params.get("since", "")
            try:
                found = None
                if since.isascii() and since.isdigit() and len(since) < 16:
                    found = source.changes(split, int(since))
                return _json(source.whole(split) if found is None else found)
            except CoevolveError as error:
                return _json({"error": str(error)}, 503)

        return await run_in_threadpool(made)

    async def cell(self, request: Request) -> Response:
        """How a task came to a candidate."""

        def made() -> Response:
            source = self._matrix(request)
            given = _query(request)
            if source is None:
                return _json({"error": "There is no such run."}, 404)
            try:
                found = source.cell(
                    _split(request), given.get("candidate", ""), given.get("task", "")
                )
            except CoevolveError as error:
                return _json({"error": str(error)}, 503)
            if found is None:
                return _json({"error": "The run has no such candidate or task."}, 404)
            return _json(found)

        return await run_in_threadpool(made)

    def _matrix(self, request: Request) -> MatrixSource | None:
        feed = self._catalogue.feed(request.path_params["key"])
        if feed is None:
            return None
        with self._using:
            if feed not in self._matrices:
                kept = {
                    one: source
                    for one, source in self._matrices.items()
                    if self._catalogue.keeps(one)
                }
                self._matrices = {**kept, feed: MatrixSource(feed)}
            return self._matrices[feed]

    async def report(self, request: Request) -> Response:
        """The report of a run as one file."""
        return await run_in_threadpool(self._report, request)

    def _report(self, request: Request) -> Response:
        feed = self._catalogue.feed(request.path_params["key"])
        if feed is None:
            return _html(_not_found("There is no such run."), _ask(request))
        try:
            with feed.locked():
                made = run_document(feed.timeline(), feed.journal(), version=__version__)
        except CoevolveError as error:
            return _html(_broken(str(error)), _ask(request))
        text = html_report(made.numbers, {name: one.svg for name, one in made.figures.items()})
        name = f'attachment; filename="{request.path_params["key"]}-report.html"'
        return HTMLResponse(text, headers={"content-disposition": name})

    async def figure(self, request: Request) -> Response:
        """A figure as an SVG or PNG file."""
        return await run_in_threadpool(self._figure, request)

    def _figure(self, request: Request) -> Response:
        feed = self._catalogue.feed(request.path_params["key"])
        name, _, kind = request.path_params["name"].partition(".")
        if feed is None or kind not in ("svg", "png"):
            return _html(_not_found("There is no such figure."), _ask(request))
        try:
            with feed.locked():
                found = run_figures(feed.snapshot(), feed.grid()).get(name)
            if found is None:
                return _html(_not_found("There is no such figure."), _ask(request))
            data = found.standalone().encode() if kind == "svg" else found.png()
        except CoevolveError as error:
            return _html(_broken(str(error)), _ask(request))
        media = "image/svg+xml" if kind == "svg" else "image/png"
        given = f'attachment; filename="{request.path_params["key"]}-{name}.{kind}"'
        return Response(data, media_type=media, headers={"content-disposition": given})

    async def stream_of_run(self, request: Request) -> Response:
        """Events that say how far a run is."""
        feed = await run_in_threadpool(self._catalogue.feed, request.path_params["key"])
        if feed is None:
            return _json({"error": "There is no such run."}, 404)

        def look() -> dict[str, Any] | None:
            if not self._catalogue.keeps(feed):
                return None  # reading it again and again would push out the others
            moment = feed.moment()
            return {
                "tag": moment.tag,
                "events": moment.events,
                "held": moment.held,
                "trouble": one_line(moment.trouble, 300),
            }

        return self._stream(request, f"{feed.folder} {id(feed)}", look)

    async def stream_of_runs(self, request: Request) -> Response:
        """Events that say when any run went on."""
        return self._stream(request, "", lambda: {"tag": _hashed(self._catalogue.changes())})

    def _stream(self, request: Request, name: str, look: Look) -> Response:
        """What `look` finds, as events; streams with the same name look together.

        The stream ends when it finds None, and the page asks for it again, later.
        """
        if request.method == "HEAD":
            return Response(media_type=_EVENTS)

        async def ticks() -> AsyncIterator[bytes]:
            last, silent = None, 0.0
            yield b"retry: 1000\n\n"
            while not self._closing.is_set() and not await request.is_disconnected():
                found = await self._looked(name, look)
                if found is None:
                    yield b"retry: 10000\n\n"
                    return
                silent += self._tick
                if found != last:
                    last, silent = found, 0.0
                    yield f"data: {json_text(found)}\n\n".encode()
                elif silent >= HEARTBEAT:
                    silent = 0.0
                    yield b": still here\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._tick)

        return _Stream(ticks(), self._open)

    async def _looked(self, name: str, look: Look) -> dict[str, Any] | None:
        """What was found in this tick; one look is enough for all streams."""
        now = asyncio.get_running_loop().time()
        when, found = self._looks.get(name, (-math.inf, None))
        if found is None or (found.done() and now - when >= 0.9 * self._tick):
            found = asyncio.ensure_future(run_in_threadpool(look))
            self._looks[name] = now, found
            while len(self._looks) > 2 * MOST_STREAMS:
                self._looks.pop(next(iter(self._looks)))
        return await asyncio.shield(found)

    async def asset(self, request: Request) -> Response:
        """A style, a script or an icon."""
        name = request.path_params["name"]
        data = _asset(name)
        if data is None:
            return _html(_not_found("There is no such file."), _ask(request))
        tag = f'"{_hashed(data)}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=_ASSETS[name], headers=headers)

    async def nothing(self, request: Request) -> Response:
        """A page for addresses that are none."""
        return _html(_not_found("There is no such page."), _ask(request))


class _Stream(StreamingResponse):
    """A stream of events, or a refusal if too many are open."""

    def __init__(self, content: AsyncIterator[bytes], places: asyncio.Semaphore) -> None:
        super().__init__(content, media_type=_EVENTS)
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._places.locked():
            answer = _json({"error": "Too many pages are open; close some."}, 503)
            await answer(scope, receive, send)
            return
        async with self._places:
            await super().__call__(scope, receive, send)


_EVENTS = "text/event-stream"
_ASSETS = {
    "page.css": "text/css",
    "live.js": "text/javascript",
    "matrix.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
"""Files and their types; those that the system knows may be others."""


def _asset(name: str) -> bytes | None:
    if name not in _ASSETS:
        return None
    data = files("coevolve.dashboard").joinpath("assets", name).read_bytes()
    return data + style_sheet().encode() if name == "page.css" else data


def _ask(request: Request, key: str = "") -> Ask:
    width = request.cookies.get("coevolve-width", "")
    theme = request.cookies.get("coevolve-theme", "")
    agent = request.headers.get("user-agent", "")
    return Ask(
        key=key,
        query={name: value[:_LONGEST_QUERY] for name, value in _query(request).items()},
        narrow=width == "narrow" if width else "Mobi" in agent,
        theme=theme if theme in ("light", "dark") else "",
    )


def _query(request: Request) -> dict[str, str]:
    """The query of an address; unpaired surrogates, which names can have, are kept."""
    raw = request.scope["query_string"].decode("latin-1")
    pairs = parse_qsl(raw, keep_blank_values=True, encoding="latin-1")
    return {_decoded(name): _decoded(value) for name, value in pairs}


def _decoded(value: str) -> str:
    """A part of an address, given as a character for each byte."""
    given = value.encode("latin-1")
    try:
        return given.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return given.decode("utf-8", "replace")


def _split(request: Request) -> GridSplit:
    return "test" if request.query_params.get("split") == "test" else "validation"


def _html(page: Page, ask: Ask) -> Response:
    return HTMLResponse(_encoded(document(page, ask, None, "", "")), page.status)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _json(found: Any, status: int = 200) -> Response:
    # ASCII alone: a name may have half characters, which UTF-8 cannot say.
    text = json.dumps(found, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def _not_found(text: str) -> Page:
    body = [empty(text), '<p><a href="/">All runs</a></p>']
    return Page(title="Not found", parts={"missing": body}, status=404)


def _reading(name: str) -> Page:
    text = "The journal is being read. The page appears when that is done."
    body = [heading(name, 1), f'<p role="status">{text}</p>']
    return Page(title=f"Reading {name}", place="-", parts={"reading": body})


def _broken(text: str) -> Page:
    return Page(
        title="Unreadable", place="-", parts={"broken": [notice(text, "error")]}, status=503
    )


def _hashed(data: bytes | str) -> str:
    return sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()[:16]
