"""Run every test with all repetitions and record the result.

The result is written to benchmarks/results/test-long.json: date, versions, counts, seconds, and
the names of the tests that failed or were skipped.
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
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "test-long.json"
PACKAGES = ("task-coevolve", "numpy", "scipy", "litellm", "xllamacpp", "pytest", "hypothesis")


def main() -> int:
    """Run the tests, with the arguments of the command line for pytest; its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *sys.argv[1:]]
        environment = {**os.environ, "TEST_LONG": "1"}
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if not report.exists():
            return code
        found = _read(report)
    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    date = datetime.now(UTC).date().isoformat()
    result = {"date": date, "cores": os.cpu_count(), "versions": versions, **found}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"recorded in {RESULT.relative_to(ROOT)}")
    return code


def _read(report: Path) -> dict[str, Any]:
    """The counts, the seconds and the names of a JUnit report."""
    failed, skipped, passed = [], {}, 0
    suite = ElementTree.parse(report).getroot().find("testsuite")
    if suite is None:
        raise ValueError(f"{report} has no test suite.")
    for case in suite.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif (skip := case.find("skipped")) is not None:
            skipped[name] = skip.get("message", "")
        else:
            passed += 1
    return {
        "passed": passed,
        "skipped": len(skipped),
        "failed": len(failed),
        "seconds": round(float(suite.get("time", 0))),
        "tests_failed": failed,
        "tests_skipped": skipped,
    }


if __name__ == "__main__":
    sys.exit(main())
