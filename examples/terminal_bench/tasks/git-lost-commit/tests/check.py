"""Check the branch by reading the repository's files, without trusting its configuration."""

import subprocess
import sys
from pathlib import Path

SITE = Path("/app/site/.git")


def git(*arguments):
    """Return the output of a git command that reads the repository."""
    command = ["/usr/bin/git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false"]
    return subprocess.run(
        [*command, "-C", "/app/site", *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


RESCUED = "798e1872618a027fdad3d74caa2ca73efbd9d15e"
MAIN = "37539bb48aff3cce743da14dbd0c984e11a9b67f"
good = (
    git("rev-parse", "refs/heads/rescue") == RESCUED
    and git("rev-parse", "refs/heads/main") == MAIN
    and (SITE / "HEAD").read_text().strip() == "ref: refs/heads/main"
    and git("cat-file", "-p", "rescue:prices.txt") == "basic 10\nplus 25\nteam 90"
    and git("status", "--porcelain") == ""
)
sys.exit(0 if good else "the branches are not as asked")
