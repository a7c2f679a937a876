"""Run the tests of task environments in Harbor's Docker environment and record the result.

They run with a private engine (`docker_engine.py`). The result is written to
benchmarks/results/test-docker.json: date, versions, counts, seconds, and each test with its own.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docker_engine import DockerEngine, running_engine
from docker_packages import EngineError
from long_tests import Case

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "test-docker.json"
PACKAGES = ("task-coevolve", "harbor", "litellm", "pytest")
FOLDER = "tests/benchmarks/harbor"
TESTS = (
    f"{FOLDER}/test_docker_environment.py",
    f"{FOLDER}/test_terminal_tasks.py::test_the_oracle_passes_and_doing_nothing_fails",
    f"{FOLDER}/test_starting_harnesses.py::test_harnesses_differ_by_what_they_do",
    f"{FOLDER}/test_killed_search.py",
    f"{FOLDER}/test_trial_trouble.py",
    f"{FOLDER}/test_trial_leftovers.py",
    f"{FOLDER}/test_agent_trials.py",
)
"""The longest first."""


def main() -> int:
    """Run the tests, with the arguments of the command line for pytest; its exit status."""
    begun = time.monotonic()
    try:
        with running_engine() as engine, tempfile.TemporaryDirectory() as folder:
            ready = time.monotonic()
            report = Path(folder) / "report.xml"
            variables = {**engine.variables, "HARBOR_TEST_ENVIRONMENT": "docker"}
            command = (sys.executable, "-m", "pytest", f"--junit-xml={report}", *TESTS)
            code = subprocess.run(
                (*command, *sys.argv[1:]), cwd=ROOT, env={**os.environ, **variables}, check=False
            ).returncode
            if not report.exists():
                return code
            found = read_report(report)
            versions = _versions(engine)
    except EngineError as error:
        print(f"docker engine: {error}", file=sys.stderr)
        return 2
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "versions": versions,
        "seconds to start the engine": round(ready - begun),
        **found,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"recorded in {RESULT.relative_to(ROOT)}")
    return code


def _versions(engine: DockerEngine) -> dict[str, str]:
    shown = engine.docker("version", "--format", "{{.Server.Version}}").stdout.strip()
    compose = engine.docker("compose", "version", "--short").stdout.strip()
    packages = {name: version(name) for name in PACKAGES}
    return {
        "python": platform.python_version(),
        "docker": shown,
        "compose": compose,
        "kernel": platform.release(),
        **packages,
    }


def read_report(report: Path) -> dict[str, Any]:
    """What a JUnit report says."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    if suite is None:
        raise ValueError(f"{report} has no test suite.")
    cases = [Case.read(case) for case in suite.iter("testcase")]
    return {
        "passed": sum(case.passed for case in cases),
        "skipped": sum(case.skipped is not None for case in cases),
        "failed": sum(case.failed for case in cases),
        "seconds": round(float(suite.get("time", 0))),
        "tests_failed": [case.name for case in cases if case.failed],
        "tests": {case.name: round(case.seconds, 1) for case in cases},
    }


if __name__ == "__main__":
    sys.exit(main())
