"""What the runner is told to do to itself before any other code runs."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coevolve.executors.isolation.limits import Limits
from coevolve.executors.isolation.system import interpreter

OPEN_FILES = 256
_SPARE = 8
"""Processes past the limit that may exist until the watch sees them."""
_SHARED_SPARE = 512
_UIDS = range(2_100_000_000, 2_147_000_000)
"""Users that neither systems nor directories of companies give away."""
_FEW_UIDS = range(20_000, 60_000)
"""The same where a container has 65536 users in all."""
_UIDS_PER_PROCESS = 64


def confined(
    argv: Sequence[str],
    limits: Limits,
    *,
    runner: str,
    private_count: bool,
    uid: int | None,
    parent: int | None,
    serve: Mapping[str, Any] | None,
) -> list[str]:
    """The command line that confines itself and then becomes `argv` or serves.

    `private_count` says that no process outside counts against the limit on processes.
    """
    spare = _SPARE if private_count else _SHARED_SPARE + user_threads(os.getuid())
    numbers = {
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_NPROC": limits.processes + spare,
    }
    config = {"limits": numbers, "uid": uid, "parent": parent, "serve": serve}
    # Not "-I", which would also leave out the hash seed; the environment is ours anyway.
    return [str(interpreter()), "-P", "-s", "-S", runner, json.dumps(config), *argv]


def unused_uid(slot: int) -> int | None:
    """A user nobody else has, for one sandbox; None where there is none to spare.

    A limit on processes counts all processes of a user, so that each sandbox needs its own.
    """
    wanted = os.getpid() * _UIDS_PER_PROCESS + slot % _UIDS_PER_PROCESS
    for uids in (_UIDS, _FEW_UIDS):
        if uids.stop <= _mapped_uids():
            return uids[wanted % len(uids)]
    return None


def _mapped_uids() -> int:
    """How many users from 0 on exist in this user namespace."""
    try:
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        return 0
    return next((int(count) for inside, _, count in rows if inside == "0"), 0)


def user_threads(uid: int) -> int:
    """How many processes and threads a user has now; 0 where that cannot be known."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == uid:
                total += len(os.listdir(folder / "task"))  # noqa: PTH208
        except OSError:
            continue
    return total
