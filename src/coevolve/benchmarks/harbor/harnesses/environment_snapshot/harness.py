"""Terminus 2 that looks at the environment before it asks the model for the first time.

The search of Meta-Harness on Terminal-Bench 2 found that agents spend their first turns on
finding out where they are, and that some plan with tools that are not installed. One shell
command, run before the loop, collects the working folder, its files, the installed tools with
their versions, the missing ones, and the memory. The result is appended to the task description
of the first prompt. All else is Terminus 2.

If the command fails or takes longer than 15 seconds, the agent starts without a snapshot.

Requires Harbor >=0.24,<0.26. Overrides no private method, only `run`.
"""

import asyncio

from harbor.agents.terminus_2 import Terminus2

TOOLS = "python3 pip3 gcc g++ make node java rustc go git sqlite3 jq curl wget apt-get"
LONGEST = 4_000  # characters of the snapshot
COMMAND = rf"""
echo "Folder: $(pwd)   User: $(id -un)   Shell: $BASH_VERSION"
for folder in $(printf '%s\n' "$(pwd)" /app | sort -u); do
  [ -d "$folder" ] || continue
  count=$(ls -A "$folder" | wc -l)
  echo "Files in $folder ($count):"
  if [ "$count" -gt 25 ]; then ls -lA "$folder" | head -n 21; echo "..."; else ls -lA "$folder"; fi
done
echo "Installed:"
missing=""
for tool in {TOOLS}; do
  if command -v "$tool" >/dev/null 2>&1; then
    case "$tool" in
      go) text=$(go version 2>&1 | head -n 1) ;;
      java) text=$(java -version 2>&1 | head -n 1) ;;
      *) text=$("$tool" --version 2>&1 | head -n 1) ;;
    esac
    echo "  $tool: $text"
  else
    missing="$missing $tool"
  fi
done
echo "Not found:$missing"
awk '/MemTotal|MemAvailable/ {{printf "%s %d MB  ", $1, $2 / 1024}} END {{print ""}}' /proc/meminfo
"""


class AgentHarness(Terminus2):
    """Puts a snapshot of the environment into the first prompt."""

    @staticmethod
    def name():
        """Return the name of the agent and of its tmux session."""
        return "terminus-2-environment-snapshot"

    async def run(self, instruction, environment, context):
        """Solve the task, with the snapshot appended to its description."""
        snapshot = await self.snapshot(environment)
        await super().run(instruction + snapshot, environment, context)

    async def snapshot(self, environment):
        """Return a short text on the environment, empty if it cannot be had in time."""
        try:
            result = await asyncio.wait_for(
                environment.exec(COMMAND, timeout_sec=15, user=environment.default_user), 20
            )
        except (TimeoutError, RuntimeError) as error:
            self.logger.warning("No snapshot of the environment: %s", error)
            return ""
        text = (result.stdout or "").strip()
        if not text:
            self.logger.warning("No snapshot of the environment: status %s", result.return_code)
            return ""
        return f"\n\n[Environment snapshot]\n{text[:LONGEST]}\n"
