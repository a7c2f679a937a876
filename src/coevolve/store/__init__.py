"""The journal of a run: one SQLite file of sealed events, and contents by address beside it."""

from coevolve.store.lock import Owner, owner
from coevolve.store.run import RunStore
from coevolve.store.salvage import Health, Repaired, repair, verify

__all__ = ["Health", "Owner", "Repaired", "RunStore", "owner", "repair", "verify"]
