"""Keeping what a user's code prints out of the way of JSON."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def prints_aside(wanted: bool) -> Iterator[None]:
    """Send the standard output of this process and of its children to the error output."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
