"""Detection of the isolation that works on this machine."""

import functools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coevolve.errors import InputError, StopRun, nearest
from coevolve.executors.isolation.bubblewrap import Bubblewrap
from coevolve.executors.isolation.execution import execute
from coevolve.executors.isolation.launch import (
    HarnessFault,
    Isolation,
    Limits,
    Program,
    SandboxError,
)
from coevolve.executors.isolation.plain_process import AS_ROOT, PlainProcess
from coevolve.executors.isolation.system_paths import interpreter, site_packages
from coevolve.formatting import one_line

KINDS = ("auto", "bwrap", "process", AS_ROOT)

_PROBE = (
    "import os, sys, stat, random; [os.listdir(path) for path in sys.argv[1:]]; print('works')"
)


def find_isolation(kind: str = "auto", *, hidden: Sequence[Path] = ()) -> Isolation:
    """The isolation of this name; "auto" is bwrap if it works, else a plain process.

    Args:
        kind: "auto", "bwrap", "process", or "process-as-root", which is a plain process that may
            run as root where it cannot get its own user.
        hidden: Folders that bwrap hides, even inside folders of the system; a plain process hides
            nothing.

    Raises:
        StopRun: "bwrap" does not work here, or a plain process would run as root; the message
            says what to do.

    >>> find_isolation("process-as-root").name in ("process", "process-as-root")
    True
    """
    if kind not in KINDS:
        raise InputError(
            f"isolation must be one of {', '.join(KINDS)}, got {kind!r}.{nearest(kind, KINDS)}"
        )
    if kind == AS_ROOT:
        return PlainProcess(as_root=True)
    if kind == "process":
        return _plain_process()
    found = _bubblewrap()
    if isinstance(found, Bubblewrap):
        return replace(found, hidden=tuple(hidden))
    if kind == "auto":
        return _plain_process(f"isolation 'bwrap' does not work here: {found} ")
    raise StopRun(
        f"isolation 'bwrap' does not work here: {found} Install bubblewrap and allow user "
        "namespaces (docs/isolation.md says how, for containers too), or use isolation 'process' "
        "for candidates you trust."
    )


def _plain_process(before: str = "") -> PlainProcess:
    isolation = PlainProcess()
    if refusal := isolation.refusal():
        raise StopRun(before + refusal)
    return isolation


def why_not_bubblewrap() -> str:
    """Why bwrap does not work here; empty if it works."""
    found = _bubblewrap()
    return "" if isinstance(found, Bubblewrap) else found


@functools.cache
def _bubblewrap() -> Bubblewrap | str:
    """The bubblewrap that works on this machine, or why none does."""
    reason = ""
    for candidate in (Bubblewrap(), Bubblewrap(change_user=False)):
        wrong = _failure(candidate)
        if not wrong:
            return candidate
        reason = reason or wrong
    return reason


def _failure(isolation: Isolation) -> str:
    """Why a program that needs this Python and its packages fails; empty if it works."""
    limits = Limits(seconds=20)
    argv = [str(interpreter()), "-I", "-S", "-c", _PROBE, *site_packages()]
    with tempfile.TemporaryDirectory(prefix="coevolve-") as folder:
        try:
            program = Program(argv=argv, folder=Path(folder), limits=limits)
            done = execute(isolation.launch(program), limits)
        except (StopRun, SandboxError, HarnessFault) as error:
            return one_line(str(error))
    works = done.code == 0 and done.stdout == b"works\n"
    return (
        "" if works else one_line(done.stderr.decode("utf-8", "replace")) or "it printed nothing."
    )
