"""The board and the live view, drawn on consoles of several sizes."""

import asyncio
import io
from dataclasses import replace

import pytest

from coevolve.cli.board import board, chosen_rows
from coevolve.cli.console_output import Screen, fitted
from coevolve.cli.run_display import LiveView, PlainView, make_view, print_closing
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search
from coevolve.views.report import Report, report
from tests.search.stubs import StubExecutor, StubProposer, opened, whole_run


def drawn(report: Report, *, width: int, most: int = 20) -> str:
    console = Screen(file=io.StringIO(), width=width, color_system=None)
    console.print(board(report, width=width, most=most))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@pytest.fixture(scope="module")
def ended() -> Report:
    return report(whole_run())


@pytest.mark.parametrize("width", [40, 50, 60, 80])
def test_a_narrow_board_leaves_columns_out_and_cuts_none(ended: Report, width: int) -> None:
    budget = tuple(replace(cap, cap=1000.0) for cap in ended.spend.budget)
    long = replace(ended.candidates[2], name="fused-quota-calibrated-weighed-mistakes-3-1")
    now = replace(
        ended,
        spend=replace(ended.spend, budget=budget),
        candidates=(*ended.candidates[:2], long),
        phase="searching",
        left=1_250.0,
        seconds=1_255.0,
    )
    text = drawn(now, width=width)
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    words = " ".join(text.split())
    for whole in ("budget", "spent", "20m 55s", "20m 50s left", "of a full search", "trials"):
        assert whole in words
    assert all("…" not in line or "…" in line.split()[0] for line in lines)
    assert "es-3-1" in text
    assert ("●" in text) == (width == 80)


def test_names_that_differ_look_different(ended: Report) -> None:
    names = ("bm25-quota-calibrated-weighed", "bm25-quota-scores-weighed")
    rows = (replace(row, name=n) for row, n in zip(ended.candidates[2:4], names, strict=True))
    text = drawn(replace(ended, candidates=(*ended.candidates[:2], *rows)), width=66)
    shown = {line[2:].split()[0] for line in text.splitlines() if line[2:].startswith("bm25")}
    assert len(shown) == 2


def test_a_name_in_a_table_is_broken_at_hyphens() -> None:
    console = Screen(file=io.StringIO(), width=36, color_system=None)
    rows = [["fused-quota-calibrated-weighed", "0.123"]]
    console.print(fitted(36, ("name", "score"), rows, wrap=["name"]))
    console.print(fitted(24, ("name", "score"), rows, wrap=["name"]), width=24)
    lines = [line.split() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert ["fused-quota-calibrated-", "0.123"] in lines
    assert ["weighed"] in lines
    assert ["fused-quota-", "0.123"] in lines


def test_status_shows_whole_reasons(ended: Report) -> None:
    reason = "it is a copy of " + "-".join(["long"] * 20)
    refused = replace(ended.candidates[-1], status="refused", reason=reason, estimate=None)
    console = Screen(file=io.StringIO(), width=60, color_system=None)
    console.print(board(replace(ended, candidates=(refused,)), width=60, most=9, whole=True))
    shown = "".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert reason.replace(" ", "") in shown


def test_a_table_leaves_columns_out_and_says_so() -> None:
    console = Screen(file=io.StringIO(), width=30, color_system=None)
    rows = [["a-very-long-name-of-a-candidate", "0.123", "12,345"]]
    console.print(fitted(30, ("name", "score", "trials"), rows, wrap=["name"], drop=["trials"]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert "0.123" in shown
    assert "12,345" not in shown
    assert "left out on a narrow terminal: trials" in " ".join(shown.split())


def test_a_table_with_short_names_needs_no_more_width_than_its_cells() -> None:
    console = Screen(file=io.StringIO(), width=23, color_system=None)
    rows = [["a", "0.123", "12,345"]]
    console.print(fitted(23, ("name", "score", "trials"), rows, wrap=["name"], drop=["trials"]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "12,345" in shown
    assert "left out" not in shown


def test_the_closing_table_has_every_warning(ended: Report) -> None:
    console = Screen(file=io.StringIO(), width=80, color_system=None)
    now = replace(ended, mixed="scores mix 2 versions", tested=("r1-0", "r2-0"))
    print_closing(console, now, None)
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "warning scores mix 2 versions" in shown
    assert "warning the sealed test was used for 2 candidates" in shown


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(ended: Report, width: int) -> None:
    long = replace(ended.candidates[-1], name="a-very-long-name-" * 4, status="refused")
    many = replace(ended, candidates=(*ended.candidates, replace(long, estimate=None)))
    text = drawn(many, width=width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "★" in text


def test_the_best_is_always_among_the_few_that_fit(ended: Report) -> None:
    rows = chosen_rows(ended, 3)
    assert len(rows) == 3
    assert ended.best in [row.name for row in rows]
    values = [row.estimate["value"] for row in rows if row.estimate]
    assert values == sorted(values, reverse=True)
    assert "and 5 other candidates" in drawn(ended, width=80, most=3)


def test_faults_and_caps_are_shown(ended: Report) -> None:
    spend = ended.spend
    caps = (replace(cap, cap=10.0) if cap.name == "dollars" else cap for cap in spend.budget)
    row = replace(ended.candidates[0], zeros=2, missing=1)
    troubled = replace(
        ended,
        spend=replace(spend, budget=tuple(caps)),
        candidates=(row, *ended.candidates[1:]),
        missing=1,
        failures={"time-limit": 2, "sandbox": 1},
    )
    text = drawn(troubled, width=80)
    assert "of $10.00" in text
    assert "1 missing, 2 scored 0 (time-limit 2, sandbox 1)" in text


def test_what_is_under_way_is_shown(ended: Report) -> None:
    row = replace(ended.candidates[-1], estimate=None, done=3, asked=8, status="ready")
    now = replace(
        ended,
        phase="searching",
        doing="evaluating and proposing round 4",
        candidates=(*ended.candidates[:-1], row),
        done=3,
        asked=10,
        under_way=2,
        left=70.0,
    )
    text = drawn(now, width=80)
    assert "3 of 10 done, 2 running" in text
    assert "3 of 8 trials done" in text
    assert "round 3 of 3  evaluating and proposing round 4" in text
    assert "about 1m 10s left" in text


def test_a_terminal_gets_a_live_board_and_a_file_gets_lines() -> None:
    terminal = Screen(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    assert isinstance(make_view(terminal, quiet=False), LiveView)
    assert type(make_view(Screen(file=io.StringIO()), quiet=False)) is PlainView
    assert make_view(terminal, quiet=True).console.quiet


def test_the_live_view_follows_a_run() -> None:
    file = io.StringIO()
    environ = {"TERM": "xterm"}
    console = Screen(file=file, force_terminal=True, width=80, height=25, _environ=environ)
    journal = MemoryJournal()
    opened(journal)
    with LiveView(console) as view:
        search = Search(journal, StubExecutor(), StubProposer(), listen=view.listen, pause=0.001)
        view.attach(search)
        asyncio.run(search.run())
        view.draw()
    text = file.getvalue()
    for part in ("phase 0 done", "round 3 done", "chosen: ", "ended: finished"):
        assert part in text


def test_one_slow_drawing_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    takes = [0.01, 3.0, 0.01, 3.0, 3.0]  # the second imports what it computes with
    drawn: list[float] = []

    def slow(*_: object, **__: object) -> Report:
        nonlocal now
        now += takes[len(drawn)]
        drawn.append(now)
        return report(search.state)

    monkeypatch.setattr("coevolve.cli.run_display.time.monotonic", lambda: now)
    monkeypatch.setattr("coevolve.cli.run_display.report", slow)
    journal = MemoryJournal()
    opened(journal)
    search = Search(journal, StubExecutor(), StubProposer())
    console = Screen(file=io.StringIO(), force_terminal=True, width=80, height=25)
    with LiveView(console) as view:
        view.attach(search)
        for expected in (2, 3, 4, 5, 5):  # at last two were slow, and it takes its time
            now += 0.5
            view.tick()
            assert len(drawn) == expected
