"""Whether a process may be forked after a benchmark was built in it."""

import os
import pickle
import random
from tempfile import gettempdir

import numpy as np

from coevolve.executors.isolation.processes import children


class Surroundings:
    """What a process has before a benchmark is built that its children would share.

    >>> before = Surroundings()
    >>> file = open(os.devnull)
    >>> before.left_by_building()
    'it has opened files or connections'
    >>> file.close()
    """

    def __init__(self) -> None:
        self._open = _names("/proc/self/fd")
        self._files = _names(gettempdir())
        self._random = _random_states()

    def left_by_building(self) -> str:
        """What building has left that no child may share; empty if nothing.

        A lock that a thread holds is never released in a child, a connection would carry the
        answers of several, a file has one position, whoever ends first removes the temporary
        files, and all would draw the same random numbers.
        """
        if _names("/proc/self/fd") != self._open:
            return "it has opened files or connections"
        if len(_names("/proc/self/task")) != 1:
            return "it has started threads"
        if children(os.getpid()):
            return "it has started processes"
        if _names(gettempdir()) != self._files:
            return "it has made temporary files"
        return "" if _random_states() == self._random else "it has drawn random numbers"


def _names(folder: str) -> set[str]:
    return set(os.listdir(folder))  # noqa: PTH208


def _random_states() -> bytes:
    """The generators that a process has in common."""
    return pickle.dumps((random.getstate(), np.random.get_state()))
