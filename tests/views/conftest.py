from typing import NamedTuple

import pytest

from coevolve.search.journal import MemoryJournal
from coevolve.search.run_state import RunState
from tests.search.stubs import go_on, opened


class Ended(NamedTuple):
    """A run that has ended, in memory."""

    state: RunState
    journal: MemoryJournal


@pytest.fixture(scope="session")
def ended() -> Ended:
    journal = MemoryJournal()
    opened(journal, rescore=True)
    return Ended(go_on(journal), journal)
