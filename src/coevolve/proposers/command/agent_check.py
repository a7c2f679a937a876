"""Checks that an agent is ready: installed, with a key, confined; for `coevolve doctor`."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from coevolve.errors import CoevolveError
from coevolve.executors.isolation.execution import execute
from coevolve.executors.isolation.launch import HarnessFault, Limits, SandboxError
from coevolve.findings import Finding
from coevolve.formatting import one_line
from coevolve.proposers.command.agent_sandbox import (
    Isolation,
    Setting,
    command_start,
    why_no_sandbox,
)
from coevolve.proposers.command.agent_setup import find_program, secret_names, set_keys
from coevolve.proposers.command.agents import Agent, Command
from coevolve.proposers.workspace import Workspace
from coevolve.redaction import Redaction

_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
_LIMITS = Limits(seconds=60, memory_mb=1 << 20, processes=1000, cpu_seconds=600)


def examine(
    agent: Agent,
    *,
    isolation: Isolation = "bwrap",
    readable: Sequence[Path] = (),
    keys: Sequence[str] = (),
) -> Iterator[Finding]:
    """What `coevolve doctor` reports about an agent; its model is not called.

    Args:
        agent: The agent.
        isolation: As for `CommandProposer`.
        readable: Further files and folders that it may read.
        keys: Further environment variables that it gets.
    """
    setting = Setting(isolation=isolation, readable=tuple(readable), keys=tuple(keys))
    try:
        program = find_program(agent)
    except CoevolveError as error:
        yield Finding(kind="failed", about="agent", detail=str(error))
        return
    reason = why_no_sandbox() if setting.confined else ""
    if reason:
        advice = "Install bubblewrap (docs/isolation.md), or trust the agent: isolation = 'none'."
        yield Finding(kind="failed", about="agent's isolation", detail=reason, advice=advice)
    else:
        yield _version(agent, program, setting)
        yield _isolation(setting.confined)
    yield _keys(agent, keys)


def _version(agent: Agent, program: Path, setting: Setting) -> Finding:
    """Start the agent in its sandbox to ask for its version."""
    if not agent.version:
        return Finding(
            kind="passed", about="agent", detail=f"{program} exists; it was not started"
        )
    try:
        printed = _printed(agent, setting)
    except (CoevolveError, OSError) as error:
        why = one_line(str(error))
        detail = f"{program} does not start: {why}"
        advice = "Add the files it needs to `readable`." if setting.confined else ""
        return Finding(kind="failed", about="agent", detail=detail, advice=advice)
    version = _VERSION.search(printed)
    known = version.group().rstrip(".") if version else "of unknown version"
    return Finding(kind="passed", about="agent", detail=f"{agent.name} {known}, {program}")


def _printed(agent: Agent, setting: Setting) -> str:
    """What an agent prints when asked for its version; SandboxError if it fails."""
    with tempfile.TemporaryDirectory(prefix="coevolve-") as name:
        folder = Path(name)
        (folder / "proposals").mkdir()
        workspace = Workspace(folder=folder, proposals=folder / "proposals", prompt="")
        start = command_start(agent, setting, workspace, Command(arguments=agent.version))
        try:
            done = execute(start.launch, _LIMITS)
        except HarnessFault as fault:
            raise SandboxError(str(fault)) from fault
        finally:
            start.launch.close()  # even if it could not be started
    if done.code:
        last = Redaction(start.secrets).text(done.stderr.decode("utf-8", "replace").strip())
        raise SandboxError(last[-500:] or f"exit status {done.code}")
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def _isolation(confined: bool) -> Finding:
    if confined:
        detail = "bwrap; it sees its workspace, its installation and the system"
        return Finding(kind="passed", about="agent's isolation", detail=detail)
    return Finding(
        kind="noted",
        about="agent's isolation",
        detail="none: it can read and change everything this user can, including the answers.",
        advice="Use isolation = 'bwrap' unless you trust it.",
    )


def _keys(agent: Agent, keys: Sequence[str]) -> Finding:
    if unset := [name for name in keys if not os.environ.get(name)]:
        return Finding(
            kind="noted",
            about="agent's keys",
            detail=f"{', '.join(unset)} is listed in `keys` but not set",
            advice="Set it, or remove it from `keys`.",
        )
    there = set_keys(agent, keys)
    files = [name for name in agent.home if (Path.home() / name).is_file()]
    detail = ", ".join([*there, *(f"~/{name}" for name in files)])
    wanted = secret_names(agent, keys)
    if there or files or not (wanted or agent.home):
        return Finding(kind="passed", about="agent's keys", detail=detail or "it needs none")
    none_set = f"none of {', '.join(wanted)} is set, and " if wanted else ""
    return Finding(
        kind="noted",
        about="agent's keys",
        detail=f"{none_set}there is no login",
        advice="Set a key or log in with the agent, unless it needs neither.",
    )
