"""Run the tests of Ray clusters on the loopback address and record the result.

The result is written to benchmarks/results/test-ray.json: date, versions, counts, seconds, and
each test with its own. The tests start clusters of three nodes and kill their parts; `make
test-long` runs them too.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from docker_tests import read_report

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "test-ray.json"
PACKAGES = ("task-coevolve", "ray", "pytest")


def main() -> int:
    """Run the tests, with the arguments of the command line for pytest; its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = (sys.executable, "-m", "pytest", f"--junit-xml={report}", "tests/executors/ray")
        environment = {**os.environ, "TEST_LONG": "1"}
        code = subprocess.run(
            (*command, *sys.argv[1:]), cwd=ROOT, env=environment, check=False
        ).returncode
        if not report.exists():
            return code
        found = read_report(report)
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "versions": {**versions, **{name: version(name) for name in PACKAGES}},
        **found,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"recorded in {RESULT.relative_to(ROOT)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
