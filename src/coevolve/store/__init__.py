"""The journal of a run: one SQLite file of sealed events, with contents by address beside it."""

from coevolve.store.layout import JOURNAL, run_folders
from coevolve.store.lock import Owner, owner
from coevolve.store.repair import Health, Repaired, repair, verify
from coevolve.store.run_store import RunStore

__all__ = [
    "JOURNAL",
    "Health",
    "Owner",
    "Repaired",
    "RunStore",
    "owner",
    "repair",
    "run_folders",
    "verify",
]
