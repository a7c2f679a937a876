"""What is made of an agent's work: usage, notes, and what the operator must mend."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coevolve.core.outcomes import MOST_USAGE, Usage
from coevolve.errors import CoevolveError, StopRun
from coevolve.executors.isolation.faults import one_line
from coevolve.proposers.base import Proposal
from coevolve.proposers.command.agent import Agent
from coevolve.proposers.command.meters import Meter, decoded
from coevolve.proposers.command.recording import MEGABYTE
from coevolve.proposers.command.running import Ended

_MOST_REPORT = 16 * MEGABYTE
"""Trajectories of hundreds of steps have a few; of JSON that is made to, this takes 0.4 GB."""
_MOST_USED = MOST_USAGE / 1000
"""Of anything in one proposal; the sum over a run must be believable, too."""
_LAST = 400
_BOXES = re.compile(r"[\u2500-\u257f]+")
_REFUSED = re.compile(
    r"api.?key|unauthori[sz]ed|authenticat|auth method|\b401\b|log ?in|logged in|credential",
    re.IGNORECASE,
)


class AgentError(CoevolveError):
    """An agent that failed before it did anything."""


def usage_of(meter: Meter, seconds: float) -> Usage:
    """What is known to be used; notes say what is not."""
    return Usage(
        tokens_in=min(meter.tokens_in or 0, int(_MOST_USED)),
        tokens_out=min(meter.tokens_out or 0, int(_MOST_USED)),
        dollars=min(meter.dollars or 0.0, _MOST_USED),
        seconds=seconds,
    )


def notes_of(name: str, ended: Ended, meter: Meter) -> list[str]:
    """How it ended, if not well, and what is not known, since nothing is not zero."""
    notes = []
    if ended.full:
        notes.append(f"{name} was stopped: {ended.full}.")
    elif ended.late:
        notes.append(f"{name} was stopped after {ended.seconds:,.0f} s.")
    elif ended.code:
        said = one_line(meter.error, 200)
        notes.append(f"{name} ended with code {ended.code}{f': {said}' if said else ''}.")
    if meter.silent:
        return [*notes, f"{name} reported no usage."]
    known = {"tokens": meter.tokens_in, "dollars": meter.dollars}
    unknown = [word for word, value in known.items() if value is None]
    return [*notes, *(f"{name} did not report {word}." for word in unknown)]


def complain(agent: Agent, ended: Ended, meter: Meter, transcript: str, log: Path) -> None:
    """Raise what the operator must mend: an agent that failed without any work.

    Raises:
        StopRun: Its key seems to be refused.
        AgentError: It failed otherwise; another try may do better.
    """
    if ended.well or ended.stopped or meter.tokens_in or meter.tokens_out:
        return
    last = _BOXES.sub(" ", meter.error or transcript.strip()[-_LAST:])
    said = one_line(last, _LAST).rstrip(".") or "nothing"
    what = f"{agent.name} ended with code {ended.code} and wrote nothing; it said: {said}."
    if _REFUSED.search(said):
        keys = f"set one of {', '.join(agent.keys)}" if agent.keys else "name it in `keys`"
        raise StopRun(
            f"{what} It seems to lack a key: {keys}, or log in with the agent. All it said is "
            f"in {log}."
        )
    raise AgentError(f"{what} All it said is in {log}.")


def left_report(workspace: Path, name: str) -> object:
    """The file an agent left about itself, unless it leads out of the workspace or is huge."""
    if not name:
        return None
    try:
        file = (workspace / name).resolve()
        if not file.is_relative_to(workspace.resolve()) or not file.is_file():
            return None
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as report:
            data = report.read(_MOST_REPORT + 1)
    except OSError:
        return None
    return decoded(data) if len(data) <= _MOST_REPORT else None


def without_secrets(
    proposals: tuple[Proposal, ...], secrets: Sequence[str]
) -> tuple[tuple[Proposal, ...], list[str]]:
    """The proposals that hold no key of the agent, with a note on each that does.

    In what they say of themselves it is blanked out.
    """
    texts = [secret.encode() for secret in secrets]
    kept, notes = [], []
    for proposal in proposals:
        blank = replace(
            proposal,
            name=blanked(proposal.name, secrets),
            hypothesis=blanked(proposal.hypothesis, secrets),
            components=tuple(blanked(part, secrets) for part in proposal.components),
        )
        held = (path.encode() + b"\n" + data for path, data in proposal.files.items())
        if any(text in file for file in held for text in texts):
            notes.append(f"{blank.name!r} was not taken: it holds a key of the agent.")
        else:
            kept.append(blank)
    return tuple(kept), notes


def blanked(text: str, secrets: Sequence[str]) -> str:
    """A text without the secrets in it."""
    for secret in secrets:
        text = text.replace(secret, "[hidden]")
    return text
