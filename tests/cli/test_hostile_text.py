"""No command and no file gives a terminal, a spreadsheet or a page what it would obey.

Task ids, answers, output, traces, errors, hypotheses, notes and transcripts of one run are
hostile. Every command shows that run through a pipe, on a terminal and as JSON.
"""

import contextlib
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coevolve.cli.main import app
from coevolve.formatting import csv_cell, json_text, one_line, visible
from coevolve_reproductions.tables.table import Column, Table
from tests.effort import effort

HOSTILE = (
    "\x1b[5;7;45mSGR \x1b]0;title\x07 \x1b]8;;http://evil.test\x1b\\link \x1b[2J\x9b31m \x1bc"
    " \x08\x7f\x00\x0b\x0c\x85\u2028\u2029 \u202eRLO \u2066LRI\u2069 \u200b\u200d\ufeff\xad"
    " \U000e0041 [bold red]markup[/] [link=http://evil.test]x[/] :skull: "
    "![image](http://evil.test/x.png) <img src=x onerror=alert(1)> `|` $x^{ é 漢字"
)
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1")

BENCHMARK = f"""
from coevolve import Missing
from coevolve.executors.workload import Score

HOSTILE = {HOSTILE!r}
TASKS = {{HOSTILE: [f"{{n}} {{HOSTILE}}" for n in range(4)], "formulas": {FORMULAS!r}}}
TEST_TASKS = ["sealed " + HOSTILE]
BRIEFING = "A harness answers."


def evaluate(harness, task):
    answer = harness.call("answer", task)
    trace = {{"question": task, HOSTILE: answer, "list": [answer, {{"deep": answer}}]}}
    if {effort(False, True)} and task == "=1+1":  # its retries take seconds
        return Missing(HOSTILE)
    return Score(value=float(len(task) % 2), trace=trace)
"""
START = f"""
def answer(task):
    print({HOSTILE!r})
    if task == "+1":
        raise ValueError({HOSTILE!r})
    return "{{name}} " + {HOSTILE!r}
"""
PROPOSE = f'''
from coevolve.search.proposal import Proposal, Proposed

HOSTILE = {HOSTILE!r}
WORKS = """
# FILE
def answer(task):
    print(TEXT)
    if task == "-1":
        raise type("E" + TEXT, (Exception,), {{}})(TEXT)
    return TEXT
"""
BREAKS = "raise RuntimeError(TEXT)"


def propose(view, count):
    made = []
    for number, body in enumerate((WORKS, BREAKS)):
        source = body.replace("TEXT", repr(HOSTILE)).replace("FILE", HOSTILE.replace("\\0", ""))
        made.append(
            Proposal(
                files={{"harness.py": source.encode(), "a.txt": HOSTILE.encode()}},
                name=f"r{{view.round}}-{{number}} {{HOSTILE}}",
                parents=(view.parent, HOSTILE),
                hypothesis=HOSTILE,
                components=(HOSTILE,),
            )
        )
    return Proposed(proposals=tuple(made), transcript=HOSTILE, notes=(HOSTILE,))
'''
CONFIG = """
[run]
name = "hostile"
[search]
rounds = 1
candidates = 2
fraction = 1.0
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/first", "starts/second"]
[proposer]
kind = "function"
file = "propose.py"
[executor]
workers = 1
[isolation]
kind = "process"
"""


ELEMENTS = (
    "html head meta title style body header p h1 h2 h3 nav a main section strong dl div dt dd "
    "figure figcaption details summary table thead tbody tr th td pre span code script svg "
    "desc g defs pattern path rect circle line text"
)
"""The elements of a report."""


def _project(folder: Path) -> Path:
    for name in ("first", "second"):
        (folder / "starts" / name).mkdir(parents=True)
        (folder / "starts" / name / "harness.py").write_text(START.replace("{name}", name))
    (folder / "benchmark.py").write_text(BENCHMARK)
    (folder / "propose.py").write_text(PROPOSE)
    (folder / "hostile.toml").write_text(CONFIG)
    (folder / "piped.toml").write_text(CONFIG.replace("hostile", "piped"))
    return folder


class Shown(NamedTuple):
    """What a command wrote, errors included, and its exit code."""

    text: str
    code: int


def _piped(*words: str) -> Shown:
    """What a command writes to a pipe."""
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    code = _called(words, written)
    written.flush()
    return Shown(written.buffer.getvalue().decode(), code)


def _on_a_terminal(*words: str) -> Shown:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    written = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                written.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with open(theirs, "w", encoding="utf-8") as terminal:  # noqa: PTH123
            code = _called(words, terminal)
    finally:
        reader.join()
        os.close(ours)
    return Shown(written.decode(), code)


def _called(words: Sequence[str], stream: IO[str]) -> int:
    """The exit code of a command that runs in this process."""
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            app(list(words))
        except SystemExit as end:
            return int(end.code or 0)
    raise AssertionError("a command ends with an exit code")


_OF_RICH = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AKG]|2K)")
"""What Rich itself sends: styles, the cursor, and the clearing of a line."""


TASK, NOBODY = f"0 {HOSTILE}", f"no {HOSTILE}"


def _obeyed(text: str) -> list[str]:
    """The characters that a terminal obeys or does not show."""
    kinds = {character: unicodedata.category(character) for character in set(text) - {"\n"}}
    return [repr(c) for c, kind in kinds.items() if kind in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def _check(text: str, *, terminal: bool = False) -> None:
    if terminal:
        assert "\x1b[5;7;45m" not in text
        assert "\x1b[2J" not in text
        text = _OF_RICH.sub("", text).replace("\r", "")
    assert _obeyed(text.replace("\t", "")) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder, with a project whose run has ended; it ran on a terminal."""
    folder = _project(tmp_path_factory.mktemp("hostile"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "100")
        shown = _on_a_terminal("run", "hostile.toml")
        assert shown.code == 0, shown.text
        _check(shown.text, terminal=True)
        for words in (("export", "--to", "out.npz"), ("report", "--to", "out.html")):
            assert _piped(words[0], "runs/hostile", *words[1:]).code == 0  # others read them
        yield folder


@pytest.fixture(scope="module")
def names(run: Path) -> dict[str, str]:
    """The names of a candidate that was evaluated and of one that was refused."""
    rows = json.loads(_piped("status", "runs/hostile", "--json").text)["candidates"]
    made = {row["status"]: row["name"] for row in rows if row["round"]}
    return {"GOOD": made["evaluated"], "BAD": made["refused"]}


RUN = "runs/hostile"
SHOWN: tuple[tuple[str, ...], ...] = (
    ("run", "piped.toml"),
    ("resume", RUN),
    ("runs", "."),
    ("status", RUN),
    ("show", RUN, "first"),
    ("show", RUN, TASK),
    ("show", RUN, "=1+1"),
    ("show", RUN, "1", "--as", "round"),
    ("show", RUN, "first", "--on", TASK),
    ("show", RUN, "first", "--on", "+1"),
    ("show", RUN, "GOOD"),
    ("show", RUN, "GOOD", "--transcript"),
    ("show", RUN, "BAD"),
    ("show", RUN, NOBODY),
    ("diff", RUN, "first", "GOOD"),
    ("diff", RUN, "first", NOBODY),
    ("query", "top", "--run", RUN),
    ("query", "show", "GOOD", "--run", RUN),
    ("query", "diff", "first", "GOOD", "--run", RUN),
    ("query", "failures", "first", "--run", RUN),
    ("query", "task", TASK, "--run", RUN),
    ("query", "tasks", "--run", RUN),
    ("query", "trace", "first", TASK, "--run", RUN),
    ("query", "show", NOBODY, "--run", RUN),
    ("query", "task", "no", "--run", RUN),
    ("estimate", "hostile.toml"),
    ("doctor", RUN),
    ("propose", "hostile.toml", "--to", "FRESH"),
    ("propose", "hostile.toml", "--view", "--to", "FRESH"),
    ("rescore", "first", RUN),
    ("rescore", NOBODY, RUN),
    ("evaluate", "first", "--run", RUN),
    ("export", RUN, "--to", "out.npz"),
    ("report", RUN, "--to", "out.html"),
    ("report", RUN, "--to", "out.html", "--verify"),
    ("import", "no", "--to", RUN),
    ("analyse", RUN, "--table", "difficulty"),
    ("table", "tb", RUN),
    ("table", "phase0", RUN, "--format", "latex"),
    ("replay", "out.npz", "--seeds", "1", "--workers", "1", "--protocols", "full"),
)
SLOW = ("run", "doctor", "propose", "analyse", "replay")
"""Commands that are shown in all three ways only in `make test-long`."""
OWN = (
    *("init", "demo", "worlds", "protocols", "data", "model", "harbor", "ui"),
    *("fill", "searches"),
)
"""Commands that print nothing of a run; tests/dashboard has the pages of `ui`."""


def test_every_command_is_among_these() -> None:
    commands = [found.name or found.callback.__name__ for found in app.registered_commands]  # type: ignore[union-attr]
    groups = [found.name or found.typer_instance.info.name for found in app.registered_groups]  # type: ignore[union-attr]
    assert {*commands, *groups} == {words[0] for words in SHOWN} | set(OWN)


@pytest.mark.parametrize("words", SHOWN, ids=lambda words: one_line(" ".join(words), 40))
def test_what_a_command_prints_is_not_obeyed(
    words: tuple[str, ...], run: Path, names: dict[str, str]
) -> None:
    def given() -> list[str]:
        fresh = next(n for n in range(99) if not (run / f"new-{n}").exists())
        return [{**names, "FRESH": f"new-{fresh}"}.get(word, word) for word in words]

    shown = _piped(*given())
    assert shown.code in ((2,) if NOBODY in words or "no" in words else (0,)), shown.text
    _check(shown.text)
    if words[0] in SLOW and not effort(False, True):
        return
    _check(_on_a_terminal(*given()).text, terminal=True)
    if "--transcript" not in words and "--format" not in words:
        shown = _piped(*given(), "--json")
        _check(shown.text)


def test_json_is_what_was_recorded(run: Path) -> None:
    trial, *_ = json.loads(_piped("show", RUN, "first", "--on", TASK, "--json").text)
    assert trial["task"] == TASK
    assert trial["content"]["trace"][HOSTILE] == f"first {HOSTILE}"
    found = json.loads(_piped("query", "trace", "first", TASK, "--json", "--run", RUN).text)
    assert found["content"][HOSTILE] == f"first {HOSTILE}"


def test_no_cell_of_a_csv_file_is_a_formula(run: Path) -> None:
    assert _piped("export", RUN, "--to", "out.csv").code == 0
    columns = (Column(name="task", heading="task"),)
    table = Table(name="t", title="T", columns=columns, rows=({"task": "=1+1"},))
    for text in ((run / "out.csv").read_text("utf-8"), table.csv()):
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert "'=1+1" in cells
        assert [cell for cell in cells if cell.strip(" ").startswith(tuple("=+-@\t\r＝"))] == []
        _check("".join(cells))


def test_a_report_has_the_elements_of_a_harmless_run(run: Path) -> None:
    for name in ("out.html", "out.md"):
        assert _piped("report", RUN, "--to", name).code == 0
        text = (run / name).read_text("utf-8")
        _check(text)
        assert _piped("report", RUN, "--to", name, "--verify").code == 0
    for page in (run / "out.html", *(run / "out-figures").glob("*.svg")):
        text = page.read_text("utf-8")
        _check(text)
        reader = Elements()
        reader.feed(text)
        assert reader.tags <= set(ELEMENTS.split())
        assert not any(name.startswith("on") or name in ("src", "style") for name in reader.names)


class Elements(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.names = set[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}


def test_a_workspace_contains_text_only(run: Path) -> None:
    assert _piped("propose", "hostile.toml", "--view", "--to", "space").code == 0
    space = run / "space"
    exact = [*space.glob("candidates/*/files/**/*"), space / "bin" / "coevolve"]
    pages = [path for path in space.rglob("*") if path.is_file() and path not in exact]
    assert len(pages) > 20
    for page in pages:
        _check(page.read_text("utf-8"))
    for name in ("SUMMARY.md", "tasks.md"):
        text = (space / name).read_text("utf-8")
        bare = re.sub("`[^`]*`", "", text)  # without code, which no page interprets
        assert not re.search(r"(?<!\\)(?:\\\\)*(?:\[image\]|<img)", bare)
    rows = json.loads((space / "tasks.json").read_text("utf-8"))
    file = next(row["file"] for row in rows if row["task"] == TASK)
    nobody = NOBODY.replace("\0", "")
    for words in (["tasks"], ["trace", "first", file], ["tasks", "--json"], ["show", nobody]):
        asked = [sys.executable, "bin/coevolve", "query", *words]
        done = subprocess.run(asked, cwd=space, capture_output=True, check=False)
        assert done.returncode in (0, 2), done.stderr
        _check((done.stdout + done.stderr).decode())


@given(st.text(), st.sampled_from(HOSTILE))
@example("\r\n", "\r")
def test_escaped_text_is_safe_and_escaping_it_again_changes_nothing(text: str, more: str) -> None:
    for escaped in (visible(text + more), one_line(text + more), csv_cell(text + more)):
        _check(escaped)
        assert visible(escaped) == escaped
        escaped.encode()
    for ascii in (True, False):
        shown = json_text([text, {more: text}], ascii=ascii)
        _check(shown)
        assert json.loads(shown) == [text, {more: text}]
