"""A proposer that runs a command-line agent to write candidates."""

import asyncio
import contextlib
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coevolve.core.outcomes import MOST_USAGE, Usage
from coevolve.errors import CoevolveError, ConfigError, StopRun
from coevolve.formatting import one_line
from coevolve.proposers.base import Broken, Proposal, Proposed, View, in_thread
from coevolve.proposers.command.agent_process import MEGABYTE, DiskQuota, Ended, Recording, work
from coevolve.proposers.command.agent_sandbox import (
    Isolation,
    Setting,
    proposal_start,
    why_no_sandbox,
)
from coevolve.proposers.command.agent_setup import find_installation
from coevolve.proposers.command.agents import Agent
from coevolve.proposers.command.usage_meters import Meter, decoded
from coevolve.proposers.proposal_folder import collect
from coevolve.proposers.workspace import Workspace, lay_out
from coevolve.proposers.workspace.workspace import set_aside, sweep
from coevolve.redaction import Redaction

_MOST_REPORT = 16 * MEGABYTE
"""Trajectories of hundreds of steps take a few MB. Parsing hostile JSON takes up to 0.4 GB."""
_MOST_USED = MOST_USAGE / 1000
"""The most that one proposal may report; the sum over a run must be plausible, too."""
_LAST = 400
_PROBE = "Answer with the word yes. Read and write no files."
_PROBE_SECONDS = 120.0
_MARGIN = 10.0
_LONGEST_SWEEP = 5.0
_BOXES = re.compile(r"[\u2500-\u257f]+")
_REFUSED = re.compile(
    r"api.?key|unauthori[sz]ed|authenticat|auth method|\b401\b|log ?in|logged in|credential",
    re.IGNORECASE,
)


class AgentError(CoevolveError):
    """An agent that failed before it did any work."""


def usage_of(meter: Meter, seconds: float) -> Usage:
    """The known usage; `notes_of` lists what is unknown."""
    return Usage(
        tokens_in=min(meter.tokens_in or 0, int(_MOST_USED)),
        tokens_out=min(meter.tokens_out or 0, int(_MOST_USED)),
        dollars=min(meter.dollars or 0.0, _MOST_USED),
        seconds=seconds,
    )


def notes_of(name: str, ended: Ended, meter: Meter) -> list[str]:
    """How the agent failed, if it did, and which usage is unknown, because unknown is not 0."""
    notes = []
    if ended.over_quota:
        notes.append(f"{name} was stopped: {ended.over_quota}.")
    elif ended.late:
        notes.append(f"{name} was stopped after {ended.seconds:,.0f} s.")
    elif ended.code:
        error = one_line(meter.error, 200)
        notes.append(f"{name} ended with exit status {ended.code}{f': {error}' if error else ''}.")
    if meter.silent:
        return [*notes, f"{name} reported no usage."]
    known = {"tokens": meter.tokens_in, "dollars": meter.dollars}
    unknown = [word for word, value in known.items() if value is None]
    return [*notes, *(f"{name} did not report {word}." for word in unknown)]


def check_worked(agent: Agent, ended: Ended, meter: Meter, transcript: str, log: Path) -> None:
    """Raise an error if an agent failed without any work.

    Raises:
        StopRun: Its key seems to be refused.
        AgentError: It failed otherwise; a retry may work.
    """
    if ended.well or ended.stopped or meter.tokens_in or meter.tokens_out:
        return
    printed = _last_words(meter, transcript)
    what = f"{agent.name} ended with exit status {ended.code} and wrote nothing; it printed: "
    what += f"{printed}."
    if advice := _key_advice(agent, printed):
        raise StopRun(f"{what}{advice} Its whole output is in {log}.")
    raise AgentError(f"{what} Its whole output is in {log}.")


def _last_words(meter: Meter, transcript: str) -> str:
    """The error that an agent reported, or the end of what it printed."""
    last = _BOXES.sub(" ", meter.error or transcript.strip()[-_LAST:])
    return one_line(last, _LAST).rstrip(".") or "nothing"


def _key_advice(agent: Agent, printed: str) -> str:
    """What to do if an agent seems to lack a key; empty if it does not."""
    if not _REFUSED.search(printed):
        return ""
    keys = f"set one of {', '.join(agent.keys)}" if agent.keys else "name it in `keys`"
    return f" It seems to need a key: {keys}, or log in with the agent."


def left_report(workspace: Path, name: str) -> object:
    """The report that an agent wrote; None if it is outside the workspace or too large."""
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
    """The proposals whose files contain no secret of the agent, and notes on the others.

    Secrets in names, parents, hypotheses and components are replaced.
    """
    redaction, kept, notes = Redaction(secrets), [], []
    for proposal in proposals:
        blank = replace(
            proposal,
            name=redaction.text(proposal.name),
            parents=tuple(map(redaction.text, proposal.parents)),
            hypothesis=redaction.text(proposal.hypothesis),
            components=tuple(map(redaction.text, proposal.components)),
        )
        held = (path.encode() + b"\n" + data for path, data in proposal.files.items())
        if any(map(redaction.finds, held)):
            notes.append(f"{blank.name!r} was rejected: its files contain a key of the agent.")
        else:
            kept.append(blank)
    return tuple(kept), notes


class CommandProposer:
    """Runs a command-line agent that writes candidates in a workspace.

    Each round has a folder, such as `round-001`, and a log of the agent's output next to it,
    which can be followed while it works. Candidates that it wrote before it failed or reached its
    time limit count.

    Args:
        agent: Made by `preset` or `custom`.
        folder: The folder for workspaces and logs.
        seconds: The time limit of one proposal; the view may set a lower one.
        isolation: "bwrap" shows the agent only its workspace, its installation and the system;
            "none" lets it do everything that this user can do.
        hidden: Folders that it must not see, even inside those it may read.
        readable: Further files and folders that it may read.
        keys: Further environment variables that it gets.

    >>> from coevolve.proposers.command import preset
    >>> CommandProposer(preset("codex"), folder=Path("proposing"), seconds=600).name
    'codex'
    """

    def __init__(
        self,
        agent: Agent,
        *,
        folder: Path,
        seconds: float = 1800.0,
        isolation: Isolation = "bwrap",
        hidden: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        keys: Sequence[str] = (),
    ) -> None:
        if not seconds > 0:
            raise ConfigError(f"seconds must be positive, got {seconds!r}.")
        self._agent, self._folder, self._seconds = agent, folder, seconds
        self._setting = Setting(
            isolation=isolation,
            hidden=(*hidden, folder),
            readable=tuple(readable),
            keys=tuple(keys),
        )

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self._agent.name

    def check(self) -> None:
        """Check that the agent is installed and can be confined.

        Raises:
            ConfigError: It is not or cannot be; the message says what to do.
        """
        find_installation(self._agent)
        reason = why_no_sandbox() if self._setting.confined else ""
        if reason:
            raise ConfigError(
                f"{self.name} cannot be confined, because bwrap does not work here: {reason} "
                "Install bubblewrap and allow user namespaces (see docs/isolation.md), or trust "
                "the agent: isolation = 'none'."
            )

    async def probe(self) -> Usage | None:
        """Give the agent one short prompt, and return its cost; None if it cannot be probed.

        Raises:
            ConfigError: It failed or did not answer in time, such as with a wrong key or model.
        """
        if not self._agent.probed:
            return None
        with tempfile.TemporaryDirectory(prefix="coevolve-") as name:
            folder, log = Path(name) / "workspace", Path(name) / "probe.log"
            (folder / "proposals").mkdir(parents=True)
            workspace = Workspace(folder=folder, proposals=folder / "proposals", prompt=_PROBE)
            meter = self._agent.meter()
            with Recording(log, line=meter.line) as recording:
                quota = DiskQuota(workspace)
                start = proposal_start(self._agent, self._setting, workspace)
                recording.hide(start.secrets)
                ended = await work(start.launch, start.stdin, recording, _PROBE_SECONDS, quota)
            meter.report(left_report(folder, self._agent.report))
        if not ended.well:
            how = (
                f"did not answer a short prompt within {_PROBE_SECONDS:.0f} s"
                if ended.late
                else f"failed on a short prompt with exit status {ended.code}"
            )
            said = _last_words(meter, recording.transcript)
            raise ConfigError(
                f"[proposer]: {self.name} {how}, and nothing was evaluated yet; it printed: "
                f"{said}.{_key_advice(self._agent, said)}"
            )
        return usage_of(meter, ended.seconds)

    async def propose(self, view: View, count: int) -> Proposed:
        return await self._ask(view, f"round-{view.round:03d}", count)

    async def repair(self, view: View, broken: Broken) -> Proposed:
        name = f"round-{view.round:03d}-repair-{broken.proposal.name}"
        return await self._ask(view, name, 1, broken)

    async def _ask(
        self, view: View, name: str, count: int, broken: Broken | None = None
    ) -> Proposed:
        began = time.monotonic()
        try:
            self.check()
        except ConfigError as error:
            raise StopRun(str(error)) from error
        folder, log = self._folder / name, self._folder / f"{name}.log"
        set_aside(folder)  # left by an interrupted proposal
        await self._sweep(_LONGEST_SWEEP)
        shown = replace(view, seconds=min(view.seconds, self._seconds))
        workspace = await in_thread(lay_out, shown, folder, count=count, broken=broken)
        meter = self._agent.meter()
        # Nothing may fail between copying its credentials and `work`, which removes the copies.
        with Recording(log, line=meter.line) as recording:
            quota, seconds = DiskQuota(workspace), self._limit(view, time.monotonic() - began)
            start = proposal_start(self._agent, self._setting, workspace)
            recording.hide(start.secrets)
            ended = await work(start.launch, start.stdin, recording, seconds, quota)
        proposals, notes = await in_thread(
            self._taken, workspace, view, count, broken, meter, start.secrets
        )
        left = view.seconds - (time.monotonic() - began)
        await self._sweep(min(_LONGEST_SWEEP, left / 2))
        if not proposals:
            if not notes or broken is not None:
                check_worked(self._agent, ended, meter, recording.transcript, log)
            notes.append(f"{self.name} wrote no candidate.")
        return Proposed(
            proposals=proposals,
            usage=usage_of(meter, ended.seconds),
            transcript=recording.transcript,
            notes=(*notes_of(self.name, ended, meter), *notes),
        )

    def _taken(
        self,
        workspace: Workspace,
        view: View,
        count: int,
        broken: Broken | None,
        meter: Meter,
        secrets: Sequence[str],
    ) -> tuple[tuple[Proposal, ...], list[str]]:
        """The proposals that the agent wrote, and notes; the rest is set aside."""
        meter.report(left_report(workspace.folder, self._agent.report))
        # A repaired candidate may be next to the broken one, which does not count.
        most = count if broken is None else count + 1
        collected = collect(workspace.proposals, view, count=most, source=self.name)
        written = tuple(p for p in collected.proposals if not _unchanged(p, broken))[:count]
        proposals, leaking = without_secrets(written, secrets)
        notes = list(map(Redaction(secrets).text, (*collected.notes, *leaking)))
        try:
            workspace.put_away(proposals)
        except OSError as error:  # such as a full disk; the proposals are kept
            notes.append(f"its workspace was not kept: {error.strerror}.")
        return proposals, notes

    async def _sweep(self, seconds: float) -> None:
        """Delete what was set aside; after these seconds, continue in the background."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await in_thread(sweep, self._folder)

    def _limit(self, view: View, passed: float) -> float:
        """The time limit of the agent, which leaves time to collect its candidates."""
        return min(self._seconds, view.seconds - passed - min(_MARGIN, 0.1 * view.seconds))


def _unchanged(proposal: Proposal, broken: Broken | None) -> bool:
    """Whether a proposal is the broken candidate, unchanged."""
    return broken is not None and dict(proposal.files) == dict(broken.proposal.files)
