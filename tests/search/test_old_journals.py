"""Journals of event schema 1, as the first version recorded them, open and continue."""

import asyncio
import json
from pathlib import Path
from typing import Any

from coevolve.core.events import Event
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search
from coevolve.search.run_state import Status
from tests.search.test_failed_appends import Rough, told
from tests.search.test_repairing import Repairing

*LINES, LAST = (Path(__file__).parent / "journals" / "schema-1.jsonl").read_text().splitlines()
EVENTS: list[Event] = [json.loads(line) for line in LINES]
CONTENTS: dict[str, str] = json.loads(LAST)["contents"]


def journal(length: int) -> MemoryJournal:
    """The first events of the journal, and all its contents."""
    part = MemoryJournal(clock=lambda: 0.0)
    for text in CONTENTS.values():
        part.put(text.encode())
    for event in EVENTS[:length]:
        body = {k: v for k, v in event.items() if k not in ("seq", "type", "seal", "at", "clock")}
        part.append([(event["type"], body)])
    assert list(part.events()) == EVENTS[:length]
    return part


def test_it_opens() -> None:
    state = fold(EVENTS)
    assert state.ended == {"why": "finished"}
    assert state.chosen is not None
    assert state.chosen["candidate"] == "r1-1"
    assert {name: s.status for name, s in state.candidates.items()} == dict.fromkeys(
        ("plain", "terse", "r1-0", "r1-1"), Status.EVALUATED
    )
    assert (state.evaluating.trials, state.evaluating.failed_attempts) == (25, 16)
    assert state.proposing.tokens == 7


def drawn(events: list[Any]) -> list[Any]:
    return [
        design["tasks"] for e in events for d in e["events"] for p in d["draws"] for design in p
    ]


def test_it_continues_from_every_event() -> None:
    expected = told(journal(len(EVENTS)))
    for length in range(1, len(EVENTS)):
        part = journal(length)
        asyncio.run(Search(part, Rough(part), Repairing(repaired=b"# mended"), pause=0.0).run())
        found = told(part)
        assert found.keys() == expected.keys()
        for kind in ("outcome", "checked", "prepared", "proposed", "repaired", "told", "settled"):
            assert found[kind] == expected[kind], (length, kind)
        assert drawn(found["asked"]) == drawn(expected["asked"])
        assert found["chosen"][0]["candidate"] == expected["chosen"][0]["candidate"]
