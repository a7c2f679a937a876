"""Terminus 2 of Harbor, unchanged.

The model answers with a JSON object: an analysis, a plan, and keystrokes for a terminal (tmux)
with the seconds to wait after each. The agent types them, waits exactly that long (60 s at most),
and shows the new output, of which at most 10 kB. The model ends the task by saying twice that it
is complete.

Requires Harbor >=0.24,<0.26. Overrides no private method.
"""

from harbor.agents.terminus_2 import Terminus2


class AgentHarness(Terminus2):
    """Harbor's own agent under the name that the benchmark loads."""
