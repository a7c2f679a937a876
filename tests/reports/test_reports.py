"""A report: one file that needs nothing else, and says what the journal says."""

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coevolve
from coevolve.errors import InputError
from coevolve.formatting import json_text
from coevolve.reports import (
    RunDocument,
    check_report,
    html_report,
    markdown_report,
    run_document,
)
from coevolve.reports.markdown_report import text as markdown_text
from coevolve.reports.notebook_view import notebook_html
from coevolve.reports.report_check import embedded_numbers, events_of
from coevolve.search.journal import MemoryJournal
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.trials import Blame, Fault, Result, Trial
from coevolve.store import RunStore
from coevolve.views.timeline import Timeline
from tests.effort import effort
from tests.fuzz.inputs import changed
from tests.search.stubs import StubExecutor, beginning, go_on, opened
from tests.views.small_run import written

VERSION = "1.2.3"
BAD = "</pre></script><img src=x onerror=alert(1)><script>alert(2)</script>\"'`&amp; \u202e\x1b[2J"


def _pictures(document: RunDocument) -> dict[str, str]:
    return {name: figure.svg for name, figure in document.figures.items()}


def _made(journal: MemoryJournal, until: int | None = None) -> RunDocument:
    return run_document(Timeline.of(journal, until), journal, version=VERSION)


@pytest.fixture(scope="module")
def journal() -> MemoryJournal:
    found = MemoryJournal()
    opened(found, rescore=True, protocol="adaptive")
    go_on(found, StubExecutor(faults=0.1))
    return found


@pytest.fixture(scope="module")
def document(journal: MemoryJournal) -> RunDocument:
    return _made(journal)


@pytest.fixture(scope="module")
def html(document: RunDocument) -> str:
    return html_report(document.numbers, _pictures(document))


class Reader(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def check_safe(page: str) -> Reader:
    """A page runs nothing, asks for nothing, and has no character that is not shown."""
    found = read(page)
    assert not {"iframe", "img", "link", "object", "embed", "form", "base"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "style", "action", "formaction", "xlink:href")
        assert name != "href" or str(value).startswith("#")
    assert not {"\x1b", "\u202e", "\x00"} & set(page)
    return found


def test_the_page_needs_no_other_file_and_runs_nothing(html: str) -> None:
    found = check_safe(html)
    assert found.tags.count("script") == 1
    assert ("type", "application/json") in found.attributes
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of the language


def test_the_policy_allows_the_style_of_the_page_alone(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(sha256(style[1].encode()).digest()).decode()
    assert policy[1] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_every_section_and_every_figure_with_its_numbers(html: str, document: RunDocument) -> None:
    sections = re.findall(r'<section id="(\w+)"', html)
    assert sections == [
        "summary", "progress", "matrix", "frontier", "lineage", "costs", "failures", "winner",
        "provenance",
    ]  # fmt: skip
    assert html.count("<figure") == len(document.figures) == 9
    for name, figure in document.numbers["figures"].items():
        assert f'<figure id="figure-{name}">' in html
        assert len(figure["rows"]) == figure["all_rows"]
    rows = sum(len(one["rows"]) + 1 for one in document.numbers["figures"].values() if one["rows"])
    incidents = document.numbers["incidents"]["rows"]
    assert html.count("<tr>") == rows + (len(incidents) + 1 if incidents else 0)


def test_a_report_is_made_of_the_journal_alone(html: str, journal: MemoryJournal) -> None:
    again = _made(journal)
    assert html_report(again.numbers, _pictures(again)) == html
    assert check_report(html, again) == []
    pictures = {name: f"figures/{name}.svg" for name in again.figures}
    assert check_report(markdown_report(again.numbers, pictures), again) == []
    assert check_report(markdown_report(again.numbers, {}), again) == []


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, (*path, at))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def test_any_changed_number_is_named(document: RunDocument) -> None:
    """Every number in the file is compared, wherever it is."""
    paths = [path for path in _leaves(document.numbers) if path[0] != "format"]
    assert len(paths) > 300
    for path in paths[:: effort(23, 1)]:
        numbers = json.loads(json.dumps(document.numbers))
        place = numbers
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] += 0.01
        changed = html_report(numbers, _pictures(document))
        found = check_report(changed, document)
        assert found, path
        named = str(found[0])
        assert str(path[0]) in named
        if "rows" in path:
            table = document.numbers["figures"][path[1]] if path[0] == "figures" else None
            column = "" if table is None else table["columns"][path[-1]]
            assert column in named


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (r"<p>That is \+?-?\d\.\d+", "<p>That is +0.999", "section summary"),
        (r"<figcaption>", "<figcaption>Very ", "figure progress"),
        (r'class="n">0\.\d+</td>', 'class="n">0.999</td>', "figure"),
        (r"★ 0\.\d+<", "★ 0.999<", "figure progress"),
        (r'data-tip="r1-0, round 1: 0', 'data-tip="r1-0, round 1: 1', "figure"),
        (r"<dt>seed</dt><dd>7", "<dt>seed</dt><dd>8", "section provenance"),
    ],
)
def test_a_changed_text_is_found_even_if_the_numbers_are_right(
    html: str, document: RunDocument, old: str, new: str, where: str
) -> None:
    changed = re.sub(old, new, html, count=1)
    assert changed != html
    found = check_report(changed, document)
    assert found
    assert "visible text" in found[0].where
    assert where in found[0].where


def test_a_changed_text_of_markdown_is_found(document: RunDocument) -> None:
    report = markdown_report(document.numbers, {})
    changed = report.replace("| seed | 7 |", "| seed | 8 |")
    assert changed != report
    (found,) = check_report(changed, document)
    assert found.where == "visible text of section Configuration and provenance"


def test_counts_are_compared_exactly(document: RunDocument) -> None:
    summary = document.numbers["summary"]
    large = document.numbers | {"summary": summary | {"tokens": 10**9}}
    again = RunDocument(numbers=large, figures=document.figures)
    one_less = document.numbers | {"summary": summary | {"tokens": 10**9 - 1}}
    (found, *_) = check_report(html_report(one_less, _pictures(document)), again)
    assert found.where == "summary.tokens"


def test_pictures_may_differ_by_the_rounding_of_another_machine(
    html: str, document: RunDocument
) -> None:
    moved = re.sub(r'cx="(\d+\.\d+)"', lambda at: f'cx="{float(at[1]) + 0.01:.2f}"', html)
    assert moved != html
    assert check_report(moved, document) == []
    far = re.sub(r'cx="(\d+\.\d+)"', lambda at: f'cx="{float(at[1]) + 9:.2f}"', html)
    assert check_report(far, document)


def test_the_report_of_a_run_that_went_on_is_checked_at_its_own_event(
    journal: MemoryJournal,
) -> None:
    events = sum(1 for _ in journal.events())
    early = _made(journal, until=events // 2)
    report = html_report(early.numbers, _pictures(early))
    number = embedded_numbers(report)["provenance"]["events"]
    assert number == events // 2
    assert check_report(report, _made(journal, until=number)) == []
    assert "The run has not ended" in report
    assert check_report(report, _made(journal))  # it is not the report of the whole run


def test_another_version_is_compared_by_its_numbers_alone(
    html: str, document: RunDocument
) -> None:
    newer = RunDocument(numbers=document.numbers | {"version": "9.9"}, figures=document.figures)
    (found,) = check_report(html.replace("<h1>", "<h1>New "), newer)
    assert found.where == "version"


@pytest.mark.parametrize("page", ["", "<html></html>", html_report.__doc__ or ""])
def test_a_file_without_numbers_is_an_error(page: str, document: RunDocument) -> None:
    with pytest.raises(InputError, match="no numbers"):
        check_report(page, document)


def test_numbers_that_cannot_be_read_are_an_error(html: str, document: RunDocument) -> None:
    with pytest.raises(InputError, match="not JSON"):
        check_report(html.replace('{"format":', '{"format"'), document)
    with pytest.raises(InputError, match="another form"):
        check_report(html.replace('{"format": 1', '{"format": 99'), document)


@pytest.mark.parametrize("kept", [1, 4, 12, 20])
def test_a_run_at_any_time_has_a_report(kept: int) -> None:
    part = beginning(written(), kept)
    made = _made(part)
    page = html_report(made.numbers, _pictures(made))
    check_safe(page)
    assert check_report(page, made) == []


def test_the_summary_says_what_won_by_how_much_and_what_it_cost() -> None:
    made = _made(written())
    page = re.sub(r"<[^>]+>", " ", html_report(made.numbers, _pictures(made)))
    words = " ".join(page.split())
    for sentence in (
        "r1-0 won with 1.000 on all 4 tasks.",
        "That is +0.500 against the best starting harness, plain, which scores 0.500 on all",
        "On the sealed test of 1 task it has 0.000; plain has 0.000.",
        "1 of the 3 candidates compared with it may be better.",
        "19 trials in all, 100% of a full search (19).",
        "The run ended (finished) after 1 of 1 round with 2 candidates.",
        "Warning. ",
    ):
        assert (sentence in words) == (sentence != "Warning. "), sentence


def _hostile(source: bytes, text: str) -> MemoryJournal:
    """A run whose candidates have hostile files, hypotheses, notes and reasons."""

    class Writer:
        async def propose(self, view: View, count: int) -> Proposed:
            made = Proposal(
                files={"harness.py": source, "b <b>.txt": text.encode(errors="replace")},
                name=text,
                parents=("plain",),
                hypothesis=text,
            )
            return Proposed(proposals=(made,), notes=(text,), transcript=text)

    def act(trial: Trial) -> Result | None:
        if trial.task == "law-1":
            return Result(fault=Fault(blame=Blame.CANDIDATE, kind=text[:40], reason=text))
        return None

    journal = MemoryJournal()
    opened(journal, rounds=1, candidates=1)
    go_on(journal, StubExecutor(act=act), Writer())  # type: ignore[arg-type]
    return journal


def test_hostile_candidates_cannot_inject_anything() -> None:
    journal = _hostile(f"# {BAD}\nprint('{BAD}')".encode(), BAD)
    made = _made(journal)
    page = html_report(made.numbers, _pictures(made))
    found = check_safe(page)
    assert found.tags.count("script") == 1
    assert "onerror=alert(1)" not in re.sub(r"&lt;.*?&gt;", "", page.split("<script")[0])
    assert check_report(page, made) == []
    markdown = markdown_report(made.numbers, {})
    assert check_report(markdown, made) == []
    bare = re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)<(?!!-- numbers)", bare)
    check_safe(notebook_html(Timeline.of(journal)).replace("<style>", "").replace("</style>", ""))


def test_megabytes_do_not_blow_up_the_file() -> None:
    lines = b"x" * 3_000_000 + b"\n" + b"<&\xe2\x80\xae\n" * 500_000
    made = _made(_hostile(lines, "<" * 1_000_000))
    page = html_report(made.numbers, _pictures(made))
    check_safe(page)
    assert len(page) < 5_000_000
    assert len(markdown_report(made.numbers, {})) < 5_000_000
    assert "of 500,002 lines are shown" in page


@settings(max_examples=effort(10, 200), deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_shown_and_nothing_else(text: str) -> None:
    timeline = Timeline.of(JOURNAL)
    made = run_document(timeline, JOURNAL, version=VERSION)
    numbers = made.numbers | {"summary": made.numbers["summary"] | {"name": text, "why": text}}
    numbers = json.loads(json.dumps(numbers))
    before = read(html_report(made.numbers, dict.fromkeys(made.figures, ""))).tags
    page = html_report(numbers, dict.fromkeys(made.figures, ""))
    assert read(page).tags == before
    assert embedded_numbers(page) == numbers
    line = markdown_text(text)
    assert "\n" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*[<`*\[]", line)
    markdown = markdown_report(numbers, {})
    assert embedded_numbers(markdown) == numbers


JOURNAL = written()


def test_a_run_and_a_result_render_themselves_in_a_notebook(tmp_path: Path) -> None:
    run = coevolve.open(
        {
            "run": {"folder": str(tmp_path), "name": "first"},
            "search": {"rounds": 2, "protocol": "naive"},
            "benchmark": {"kind": "synthetic", "pools": {"all": 20}},
            "proposer": {"kind": "synthetic"},
            "executor": {"workers": 1},
        }
    )
    assert run._repr_html_() == f"<code>Run(&#39;{tmp_path}/first&#39;, not started)</code>"
    with RunStore.create(tmp_path / "stub") as store:
        opened(store)
        go_on(store)
    shown = coevolve.open(tmp_path / "stub")
    page = shown._repr_html_()
    assert page == shown.result._repr_html_()
    assert len(page) < 60_000
    found = check_safe(page)
    assert "script" not in found.tags
    assert "svg" in found.tags
    assert "stub" in page


def test_a_result_in_memory_renders_itself() -> None:
    result = coevolve.optimize(
        tasks=["1", "2", "3", "4"],
        starts={"same": "n", "none": "0"},
        evaluate=lambda candidate, task: candidate.text == "2 * n",
        propose=lambda view: "2 * n",
        rounds=1,
    )
    page = result._repr_html_()
    check_safe(page)
    assert "r1-0" in page


SMALL = _made(JOURNAL)
PAGE, TEXT = html_report(SMALL.numbers, _pictures(SMALL)), markdown_report(SMALL.numbers, {})


@settings(max_examples=effort(12, 2_000), deadline=None)
@given(st.booleans(), changed(SMALL.numbers))
def test_whatever_the_numbers_of_a_file_are_it_is_checked_or_refused(
    html: bool, numbers: Any
) -> None:
    page = PAGE if html else TEXT
    start = page.rindex('{"format": 1')
    end = page.rindex("</script>" if html else " -->")
    changed_page = page[:start] + json_text(numbers) + page[end:]
    with contextlib.suppress(InputError):
        for one in check_report(changed_page, SMALL):
            assert str(one)
        events_of(changed_page)
