"""The version of a benchmark: hashes of everything that can alter its scores, by part."""

from collections.abc import Mapping

from coevolve.errors import ChangedBenchmarkError
from coevolve.search.journal import Recorder
from coevolve.search.run_state import RunState, Status

MOST_NAMED = 10
"""Parts that a message names, at most."""


def settle_version(recorder: Recorder, parts: Mapping[str, str], *, accept: bool) -> None:
    """Record the parts of the benchmark, unless they are those of the last session.

    Raises:
        ChangedBenchmarkError: As for `check_version`.
    """
    changed = check_version(recorder.state, parts, accept=accept)
    if recorder.state.fingerprint != dict(parts):
        recorder.record("fingerprinted", {"parts": dict(parts), "changed": list(changed)})


def check_version(state: RunState, parts: Mapping[str, str], *, accept: bool) -> dict[str, str]:
    """The parts of the benchmark that have changed since the last session, and how.

    Args:
        state: The run.
        parts: A hash, or a short value, for each part of the benchmark.
        accept: Whether parts may have changed since trials were scored.

    Raises:
        ChangedBenchmarkError: Some have changed, and the change is not accepted.
    """
    changed = {} if state.fingerprint is None else differences(state.fingerprint, parts)
    if changed and not accept and _has_scores(state):
        raise ChangedBenchmarkError(
            f"the benchmark of run {state.name!r} has changed since "
            f"{state.evaluating.trials:,} trials were scored:\n"
            f"{listed(changed)}\n"
            "Scores of both versions would be mixed. Restore what was changed, start a new run, "
            "or resume or rescore with --accept-change (in Python: accept_change=True)."
        )
    return changed


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """What happened to each part that differs.

    >>> differences({"a.py": "1", "b.py": "2"}, {"a.py": "3", "c.py": "4"})
    {'a.py': 'changed', 'b.py': 'removed', 'c.py': 'new'}
    """
    found = {
        part: "removed" if part not in now else "changed"
        for part, value in before.items()
        if now.get(part) != value
    }
    return found | {part: "new" for part in now if part not in before}


def listed(changed: Mapping[str, str]) -> str:
    """Changed parts, one on each line."""
    lines = [f"  {part}: {what}" for part, what in changed.items()]
    more = len(lines) - MOST_NAMED
    return "\n".join(lines[:MOST_NAMED] + ([f"  and {more:,} more"] if more > 0 else []))


def mixture(state: RunState) -> str:
    """A sentence that says which versions the estimates of a run mix; empty if there is one.

    A candidate is scored in its round and maybe later, so no estimate is free of the mixture:
    all of them use the outcomes of the starting harnesses.
    """
    if not state.changes:
        return ""
    parts = list(dict.fromkeys(part for change in state.changes for part in change.parts))
    shown = ", ".join(parts[:3]) + (f" and {len(parts) - 3:,} more" if len(parts) > 3 else "")
    places = [f"round {change.round} ({change.trials:,} trials)" for change in state.changes]
    return (
        f"scores mix {len(state.changes) + 1} versions of the benchmark: {shown} changed after "
        f"{', '.join(places)}"
    )


def _has_scores(state: RunState) -> bool:
    """Whether anything that depends on the benchmark is recorded."""
    prepared = (Status.READY, Status.EVALUATED)
    learned = any(k.status in prepared and k.state is not None for k in state.candidates.values())
    return learned or state.evaluating.trials > 0
