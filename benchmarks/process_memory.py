"""Memory of a process and of those it started."""

import contextlib
import os
from pathlib import Path


def megabytes_of(pid: int) -> float:
    """Memory of one process that is not shared with others."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = (row for row in rows if row.startswith(("Private_Clean:", "Private_Dirty:")))
    return sum(int(row.split()[1]) for row in own) / 1024


def used_mb() -> float:
    """Memory of all processes below this one; shared pages count in proportion."""
    found, total = [os.getpid()], 0
    for one in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
            rows = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total / 1024
