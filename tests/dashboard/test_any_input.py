"""Whatever a reader asks for and whatever a journal or a trace says, there is a page."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="starlette is missing")
pytest.importorskip("uvicorn", reason="uvicorn is missing")

from coevolve.dashboard.matrix_data import MatrixSource
from coevolve.dashboard.page_frame import Ask, document, state_badge
from coevolve.dashboard.run_feed import RunFeed
from coevolve.dashboard.source_listing import source
from coevolve.dashboard.trace_view import trace
from coevolve.dashboard.web_server import PAGES
from coevolve.errors import CoevolveError
from coevolve.store import RunStore
from coevolve.views.answer_text import flat, parsed
from tests.dashboard.sample_runs import CHAT, STEPS
from tests.effort import effort
from tests.fuzz.examination import bounded
from tests.fuzz.inputs import ANY_TEXT, changed, json_bytes, spoiled
from tests.fuzz.target import scratch

QUERY = st.dictionaries(
    st.sampled_from(
        ["name", "candidate", "task", "against", "kind", "from", "find", "sort", "split", "round",
         "tasks", "measure", "axis", "key", "page"]
    ),
    ANY_TEXT
    | st.sampled_from(["plain", "r1-0", "law-1", "test-1", "law-1\nlaw-2", "²", "1", "-1"])
    | st.sampled_from(["9" * 4_000, "estimate", "tokens", "seconds", "\ud800", "e " * 2_000]),
    max_size=4,
)  # fmt: skip
LARGEST = 1_500_000
REFUSED = (CoevolveError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""How a page of impossible values ends: with a reason, or as status 500 without content."""


def made(feed: RunFeed, place: str, query: dict[str, str], narrow: bool = False) -> str:
    """A page as HTML."""
    moment = feed.moment()
    ask = Ask(key="run", query=query, narrow=narrow)
    with feed.locked():
        page = PAGES[place](feed, ask, moment)
        return document(page, ask, moment, state_badge(feed, moment), "run")


@pytest.fixture(scope="module")
def feed(finished: Path) -> Iterator[RunFeed]:
    found = RunFeed(finished)
    yield found
    found.close()


@settings(
    max_examples=effort(40, 3_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.sampled_from(sorted(PAGES)), query=QUERY, narrow=st.booleans())
def test_any_query_has_a_page(
    feed: RunFeed, place: str, query: dict[str, str], narrow: bool
) -> None:
    text = made(feed, place, query, narrow)
    assert "<h1" in text or "empty" in text
    assert len(text) < LARGEST
    text.encode("utf-8", "replace")


@settings(max_examples=effort(60, 10_000), deadline=None)
@given(json_bytes(CHAT, STEPS, {"trace": STEPS, "error": "x"}))
def test_any_trace_is_shown(data: bytes) -> None:
    with bounded():
        text = "".join(trace(flat(parsed(data.decode(errors="replace")))))
    assert len(text) < LARGEST
    assert "<script" not in text


@settings(max_examples=effort(60, 10_000), deadline=None)
@given(
    st.sampled_from([".py", ".md", ".json", ".toml", ".sh", ".yaml", ".js", ".txt", ""]),
    spoiled(
        b"def f(x):\n    return f'{x!r}'  # <script>\n", b"a: [1, {b: |\n c}]\n", b"```\n# *x*"
    ),
)
def test_any_file_is_shown(suffix: str, data: bytes) -> None:
    with bounded():
        text = "".join(source(f"a{suffix}", data))
    assert "<script" not in text


def _events(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    own = ("seq", "type", "seal", "at", "clock")
    with RunStore.read(folder) as store:
        return [
            (event["type"], {name: value for name, value in event.items() if name not in own})
            for event in store.events()
        ]


@settings(
    max_examples=effort(5, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_journal_with_any_event_cannot_write_a_page(finished: Path, data: st.DataObject) -> None:
    events = _events(finished)
    kinds = {kind: at for at, (kind, _) in enumerate(events)}
    at = data.draw(st.sampled_from(sorted(kinds.values())) | st.integers(0, len(events) - 1))
    body = data.draw(changed(events[at][1]))
    with tempfile.TemporaryDirectory(dir=scratch()) as place, contextlib.suppress(CoevolveError):
        folder = Path(place) / "run"
        with RunStore.create(folder) as store:
            store.append(events[:at])
            store.append([(events[at][0], body if isinstance(body, dict) else {"value": body})])
            store.append(events[at + 1 :])
        feed = RunFeed(folder)
        try:
            for name in PAGES:
                with contextlib.suppress(*REFUSED):
                    text = made(
                        feed, name, {"name": "plain", "candidate": "plain", "task": "law-1"}
                    )
                    assert "<script>" not in text
            with contextlib.suppress(*REFUSED):
                MatrixSource(feed).whole("validation")
        finally:
            feed.close()
