"""A whole search over terminal tasks: real Terminus 2, real tmux, a scripted model, no Docker.

Run as `make bench-harbor_search` or `python benchmarks/harbor_search.py`, as root, with bubblewrap
and tmux; it takes some minutes. It runs `coevolve run` on examples/terminal_bench and
records what each candidate was estimated at. `--quick` uses six tasks and two rounds, and records
nothing.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

EXAMPLE = Path(__file__).parent.parent / "examples" / "terminal_bench"
QUICK = ("sort-downloads", "sales-totals", "slow-build", "log-errors", "event-report", "git-*")
sys.path.insert(0, str(EXAMPLE))


def configuration(url: str, *, quick: bool) -> str:
    """The offline example, with the address of the model."""
    text = (EXAMPLE / "offline.toml").read_text()
    text = text.replace("http://127.0.0.1:8765/v1", url)
    if quick:
        text = text.replace("rounds = 6", "rounds = 2")
        text = text.replace('path = "tasks"', f'path = "tasks"\ntasks = {json.dumps(QUICK)}')
    return text


def searched(folder: Path, *, quick: bool) -> tuple[dict[str, Any], float]:
    """Run the search; the status of the run, and the seconds it took."""
    from scripted_model import ScriptedModel  # type: ignore[import-not-found]

    project = folder / "project"
    shutil.copytree(EXAMPLE, project)
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-m", "coevolve"]
    with ScriptedModel() as server:
        (project / "offline.toml").write_text(configuration(server.url, quick=quick))
        begin = time.perf_counter()
        subprocess.run([*command, "run", "offline.toml"], cwd=project, env=environment, check=True)
        seconds = time.perf_counter() - begin
    status = subprocess.run(
        [*command, "status", "runs/offline", "--json"],
        cwd=project,
        env=environment,
        check=True,
        capture_output=True,
    )
    return json.loads(status.stdout), seconds


def rows(status: dict[str, Any]) -> list[dict[str, Any]]:
    """What is known of each candidate."""
    found = []
    for candidate in status["candidates"]:
        estimate, whole = candidate["estimate"], candidate["full"]
        error = "" if estimate["se"] is None else f" ± {estimate['se']:.3f}"
        found.append(
            {
                "harness": candidate["name"],
                "round": candidate["round"] or "start",
                "estimate": f"{estimate['value']:.3f}{error}",
                "tasks": f"{estimate['tasks']} of {estimate['pool_size']}",
                "on all tasks": "" if whole is None else f"{whole:.3f}",
            }
        )
    return found


def main() -> None:
    """Search, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small search, nothing recorded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        status, seconds = searched(Path(name), quick=options.quick)
    found = rows(status)
    spent = status["evaluating"]
    totals = [
        {
            "trials": spent["trials"],
            "failed attempts": spent["failed_attempts"],
            "missing": status["missing"],
            "trials of new candidates": f"{status['searched']} of {status['full']}",
            "tokens": f"{spent['tokens_in'] + spent['tokens_out']:,}",
            "seconds": f"{seconds:.0f}",
        }
    ]
    record.show("Candidates", found)
    record.show("Search", totals)
    if not options.quick:
        record.save("harbor_search", {"candidates": found, "search": totals})


if __name__ == "__main__":
    main()
