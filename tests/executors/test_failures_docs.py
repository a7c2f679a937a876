"""The page on failures shows exactly the table of the code."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coevolve.executors.failure_table import AWS, CLASSES, HTTP, SYSTEM, THREADS, WORDS, Row
from coevolve.search.retries import ATTEMPTS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "failures.md").read_text()


def line(names: str, row: Row[Any]) -> str:
    return f"| {names} | {row.blame} | {row.meaning} | {row.advice} |"


def named(row: Row[str]) -> str:
    return line(", ".join(f"`{name}`" for name in row.names), row)


def table() -> Iterator[str]:
    for row in (*CLASSES, THREADS):
        yield named(row)
    for codes in SYSTEM:
        yield line(", ".join(f"`{errno.errorcode[code]}`" for code in codes.names), codes)
    for codes in HTTP:
        yield line(", ".join(str(code) for code in codes.names), codes)
    for row in (*AWS, *WORDS.values()):
        yield named(row)


def test_the_page_has_every_row_and_no_other() -> None:
    heading = "| error | blame | what it means | advice |"
    shown = [
        text for part in PAGE.split(heading)[1:] for text in part.split("\n\n")[0].splitlines()[2:]
    ]
    assert shown == list(table())


def test_the_page_names_the_number_of_retries() -> None:
    assert {3: "twice"}[ATTEMPTS] in PAGE
