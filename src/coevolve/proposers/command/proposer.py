"""A proposer that has a command-line agent write candidates."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coevolve.errors import ConfigError, StopRun
from coevolve.proposers.base import Broken, Proposal, Proposed, View
from coevolve.proposers.command.agent import Agent
from coevolve.proposers.command.installation import find_installation
from coevolve.proposers.command.judging import (
    blanked,
    complain,
    left_report,
    notes_of,
    usage_of,
    without_secrets,
)
from coevolve.proposers.command.launching import Isolation, Setting, ready
from coevolve.proposers.command.meters import Meter
from coevolve.proposers.command.recording import Recording
from coevolve.proposers.command.room import Room
from coevolve.proposers.command.running import work
from coevolve.proposers.command.sandbox import why_no_sandbox
from coevolve.proposers.handover import collect
from coevolve.proposers.threads import in_thread
from coevolve.proposers.view import Workspace, lay_out
from coevolve.proposers.view.workspace import set_aside, sweep

_MARGIN = 10.0
_LONGEST_SWEEP = 5.0


class CommandProposer:
    """Has a command-line agent write candidates in a workspace of their own.

    Each round gets a folder, `round-001`, and beside it a log of what the agent prints, which
    can be followed while it works. Candidates that it wrote before it failed, or before its time
    was over, count.

    Args:
        agent: Made by `preset` or `custom`.
        folder: Where workspaces and logs go.
        seconds: How long one proposal may take; less where the view says so.
        isolation: "bwrap" shows the agent its workspace, its installation and the system alone;
            "none" trusts it with all that this user can do.
        hidden: Folders that it must not see even where they lie among those it may read.
        readable: Further files and folders that it may read.
        keys: Further variables of the environment that it gets.

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
        """What the agent is called."""
        return self._agent.name

    def check(self) -> None:
        """Make sure that the agent is here and can be confined.

        Raises:
            ConfigError: It is not; the message says what to do.
        """
        find_installation(self._agent)
        reason = why_no_sandbox() if self._setting.confined else ""
        if reason:
            raise ConfigError(
                f"{self.name} cannot be confined, since bwrap does not work here: {reason} "
                "Install bubblewrap and allow user namespaces (docs/isolation.md says how), or "
                "trust the agent with this machine: isolation = 'none'."
            )

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
        set_aside(folder)  # of a proposal that was interrupted
        await self._sweep(_LONGEST_SWEEP)
        shown = replace(view, seconds=min(view.seconds, self._seconds))
        workspace = await in_thread(lay_out, shown, folder, count=count, broken=broken)
        meter = self._agent.meter()
        # Nothing comes between the copies of its credentials and its work, which removes them.
        with Recording(log, line=meter.line) as recording:
            room, seconds = Room(workspace), self._limit(view, time.monotonic() - began)
            start = ready(self._agent, self._setting, workspace)
            recording.hide(start.secrets)
            ended = await work(start.launch, start.stdin, recording, seconds, room)
        proposals, notes = await in_thread(
            self._taken, workspace, view, count, broken, meter, start.secrets
        )
        left = view.seconds - (time.monotonic() - began)
        await self._sweep(min(_LONGEST_SWEEP, left / 2))
        if not proposals:
            if not notes or broken is not None:
                complain(self._agent, ended, meter, recording.transcript, log)
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
        """What is taken over of an agent's work, with notes; the rest is put away."""
        meter.report(left_report(workspace.folder, self._agent.report))
        # A mended candidate may lie beside the broken one, which then is no candidate.
        most = count if broken is None else count + 1
        collected = collect(workspace.proposals, view, count=most, source=self.name)
        written = tuple(p for p in collected.proposals if not _unmended(p, broken))[:count]
        proposals, leaking = without_secrets(written, secrets)
        notes = [blanked(note, secrets) for note in (*collected.notes, *leaking)]
        try:
            workspace.put_away(proposals)
        except OSError as error:  # a full disk, say; the run keeps what was taken over
            notes.append(f"its workspace was not kept: {error.strerror}.")
        return proposals, notes

    async def _sweep(self, seconds: float) -> None:
        """Delete what was set aside; what takes longer than this goes on beside the search."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await in_thread(sweep, self._folder)

    def _limit(self, view: View, passed: float) -> float:
        """The agent's seconds, so that its candidates can be collected in time."""
        return min(self._seconds, view.seconds - passed - min(_MARGIN, 0.1 * view.seconds))


def _unmended(proposal: Proposal, broken: Broken | None) -> bool:
    """Whether it is the candidate to mend, left as it was."""
    return broken is not None and dict(proposal.files) == dict(broken.proposal.files)
