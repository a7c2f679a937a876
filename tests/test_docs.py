"""Every Python block of the README and the documentation runs and prints what the page shows."""

import contextlib
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.command import coevolve
from tests.effort import LONG

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```)?", re.M | re.S)


def test_the_numbers_of_the_figure_are_those_of_the_page() -> None:
    figures = runpy.run_path(str(ROOT / "docs" / "figures.py"))
    rows = figures["ROWS"]
    if not LONG:  # each row takes a second
        rows = figures["report"].__globals__["ROWS"] = rows[-1:]
    head, *numbers = figures["report"]([figures["repeated"](row) for row in rows]).splitlines()
    page = (ROOT / "docs" / "concepts.md").read_text()
    [shown] = re.findall(f"^```text\n{head}\n(.*?)^```", page, re.M | re.S)
    assert shown.splitlines()[-len(numbers) :] == numbers


@pytest.mark.long
def test_the_page_shows_what_the_worlds_print() -> None:
    done = coevolve("worlds")
    page = (ROOT / "docs" / "choosing.md").read_text()
    shown = re.search(r"```text\n\$ coevolve worlds\n(.*?)```", page, re.S)
    assert shown is not None
    printed = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert [line.strip() for line in shown[1].splitlines() if line.strip()] == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run_in_order(page: Path) -> None:
    text = page.read_text()
    names: dict[str, Any] = {"__name__": page.stem}
    for found in BLOCK.finditer(text):
        line = text[: found.start()].count("\n") + 2
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + found[1], str(page), "exec"), names)
        if found[2] is not None:
            assert printed.getvalue() == found[2], f"{page.name}, block at line {line}"
