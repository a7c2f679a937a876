"""The page on the journal lists every event a run records."""

import re
from pathlib import Path

from coevolve.search.effects import _HANDLERS
from coevolve.search.journal import MemoryJournal
from tests.search.stubs import StubExecutor, go_on, opened

PAGE = (Path(__file__).parents[2] / "docs/journal.md").read_text().split("\n## Events\n")[1]
ROWS = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", PAGE, flags=re.MULTILINE))


def test_every_type_is_listed() -> None:
    assert set(ROWS) == {"opened", *_HANDLERS}


def test_every_field_of_a_recorded_event_is_named() -> None:
    journal = MemoryJournal()
    opened(journal)
    go_on(journal, StubExecutor(faults=0.3))
    for event in journal.events():
        named = ROWS[event["type"]] + (ROWS["outcome"] if event["type"] == "failed" else "")
        for field in event.keys() - {"seq", "type", "at", "clock", "seal"}:
            assert f"`{field}`" in named, f"{event['type']}.{field}"
