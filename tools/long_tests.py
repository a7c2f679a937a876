"""Run every test with all repetitions and record the result.

The result is written to benchmarks/results/test-long.json: date, versions, counts, seconds, the
names of the tests that failed or were skipped, and how many attacks were tried and held.
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

ATTACKS = {
    "candidates that attack their sandbox, or try to reach out of it": (
        "tests.executors.isolation",
        "tests.runs.test_hostile",
    ),
    "trials that leave something behind for the next": (
        "tests.executors.isolation.test_trials",
        "tests.executors.test_trial_state",
    ),
    "candidates that drop tasks by a fault they cause": (
        "tests.core.test_missingness",
        "tests.search.test_strategic",
        "tests.search.test_unexplained",
    ),
    "replies of a model service: redirects, size, time, usage, keys": (
        "tests.models.test_reply_limits",
        "tests.models.test_hosted_errors",
        "tests.test_redaction",
    ),
    "proposals and the agents that write them": (
        "tests.proposers.command",
        "tests.proposers.test_proposal_folder",
        "tests.proposers.workspace",
    ),
    "hostile text, through every command": ("tests.cli.test_hostile_text",),
    "damaged run folders": (
        "tests.cli.test_damage",
        "tests.store.test_damage",
        "tests.store.test_flips",
        "tests.store.test_log",
        "tests.store.test_repair",
    ),
    "kills of a run (`kill -9`)": ("tests.runs.test_killed", "tests.store.test_crash"),
    "parsers with 10,000 inputs each, and inputs that once failed": ("tests.fuzz",),
}
"""Modules and packages of tests, by what they try; the longest name that fits counts."""


def attack(module: str) -> str | None:
    """What the tests of a module try, if they are attacks."""
    fitting = {
        name: what
        for what, names in ATTACKS.items()
        for name in names
        if f"{module}.".startswith(f"{name}.")
    }
    return fitting[max(fitting, key=len)] if fitting else None


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
    attacks: dict[str, dict[str, Any]] = {
        what: {"attack": what, "cases": 0, "held": 0, "skipped": 0} for what in ATTACKS
    }
    suite = ElementTree.parse(report).getroot().find("testsuite")
    if suite is None:
        raise ValueError(f"{report} has no test suite.")
    for case in suite.iter("testcase"):
        module = case.get("classname", "")
        name = f"{module}::{case.get('name')}"
        what = attack(module)
        row = attacks[what] if what else {"cases": 0, "held": 0, "skipped": 0}
        row["cases"] += 1
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif (skip := case.find("skipped")) is not None:
            skipped[name] = skip.get("message", "")
            row["skipped"] += 1
        else:
            passed += 1
            row["held"] += 1
    return {
        "passed": passed,
        "skipped": len(skipped),
        "failed": len(failed),
        "seconds": round(float(suite.get("time", 0))),
        "tests_failed": failed,
        "tests_skipped": skipped,
        "attacks": list(attacks.values()),
    }


if __name__ == "__main__":
    sys.exit(main())
