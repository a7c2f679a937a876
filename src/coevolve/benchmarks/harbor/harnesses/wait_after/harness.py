"""Terminus 2 that stops waiting as soon as the shell prompt is back.

The harness that Task-CoEvolve found on Terminal-Bench 2.1 (its paper, "wait_after"). Terminus 2
sleeps for the whole duration that the model asked for, whatever the command does. A task has a
time budget, so these sleeps cost turns. Here the agent looks at the terminal with growing delays
and returns early if all three conditions hold:

1. the screen differs from the one before the keystrokes: the command has echoed;
2. the screen is the same as at the last look: the terminal is quiet;
3. the last line that is not blank ends in "#" or "$": the prompt is back.

Pagers, interpreters and silent long compilations never show such a prompt, so they keep the full
duration. Keystrokes that do not run a command (C-c, an empty wait) keep it, too.

Requires Harbor >=0.24,<0.26. Overrides the private method `_execute_commands`.
"""

import asyncio

from harbor.agents.terminus_2 import Terminus2

FIRST_DELAY = 0.5  # seconds
GROWTH = 1.5
LONGEST_DELAY = 3.0  # seconds
PROMPT_ENDS = ("#", "$")


class AgentHarness(Terminus2):
    """Polls the terminal instead of sleeping."""

    @staticmethod
    def name():
        """Return the name of the agent and of its tmux session."""
        return "terminus-2-wait-after"

    async def _execute_commands(self, commands, session):
        """Type every command, wait after it, and return the new output."""
        for command in commands:
            await wait_after(session, command.keystrokes, command.duration_sec)
        return False, self._limit_output_length(await session.get_incremental_output())


async def wait_after(session, keystrokes, duration):
    """Type the keystrokes and wait until the prompt is back, `duration` seconds at most."""
    if not runs_a_command(keystrokes):
        await session.send_keys(keystrokes, block=False, min_timeout_sec=duration)
        return
    before = await session.capture_pane()
    await session.send_keys(keystrokes, block=False, min_timeout_sec=min(duration, FIRST_DELAY))
    previous = await session.capture_pane()
    delay = elapsed = FIRST_DELAY
    while elapsed < duration:
        await asyncio.sleep(delay)
        elapsed += delay
        delay = min(GROWTH * delay, LONGEST_DELAY)
        pane = await session.capture_pane()
        if pane != before and pane == previous and prompt_is_back(pane):
            return
        previous = pane


def runs_a_command(keystrokes):
    """Return whether the keystrokes are an Enter key or end in a newline."""
    return keystrokes in ("Enter", "C-m") or keystrokes.endswith(("\n", "\r"))


def prompt_is_back(pane):
    """Return whether the last line that is not blank ends as a shell prompt does."""
    lines = [line.rstrip() for line in pane.splitlines() if line.strip()]
    return bool(lines) and lines[-1].endswith(PROMPT_ENDS)
