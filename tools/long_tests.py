"""Run every test with all repetitions and record the result.

The result is written to benchmarks/results/test-long.json: date, versions, counts, seconds, the
names of the tests that failed or were skipped, how many attacks were tried and held, and the
inputs and seconds of every fuzz target. With `--again`, only the tests that failed the last time
run, after a fix; their results replace the recorded ones, and `tests_repeated` names them.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self
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
    "agents of terminal tasks: traps, faults, leftovers": (
        "tests.benchmarks.harbor.test_agent_trials",
        "tests.benchmarks.harbor.test_killed_search",
        "tests.benchmarks.harbor.test_namespace_limits",
        "tests.benchmarks.harbor.test_trial_leftovers",
        "tests.benchmarks.harbor.test_trial_trouble",
    ),
    "candidates that drop tasks by a fault they cause": (
        "tests.core.test_missingness",
        "tests.executors.test_dropped_tasks",
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


AGAIN = "--again"


def main() -> int:
    """Run the tests, with the arguments of the command line for pytest; its exit status."""
    arguments = [argument for argument in sys.argv[1:] if argument != AGAIN]
    before: dict[str, Any] | None = None
    if AGAIN in sys.argv:
        before = json.loads(RESULT.read_text())
        if not before["tests_failed"]:
            print(f"no test failed in {RESULT.relative_to(ROOT)}")
            return 0
        arguments += map(node, before["tests_failed"])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        chosen = ["-m", "not record", f"--junit-xml={report}"]
        command = [sys.executable, "-m", "pytest", *chosen, *arguments]
        environment = {**os.environ, "TEST_LONG": "1"}
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if not report.exists():
            return code
        found = _read(report)
    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    date = datetime.now(UTC).date().isoformat()
    found = found if before is None else merged(before, found)
    result = {"date": date, "cores": os.cpu_count(), "versions": versions, **found}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"recorded in {RESULT.relative_to(ROOT)}")
    return code


def node(name: str) -> str:
    """The id of a recorded test, as pytest takes it."""
    place, _, test = name.partition("::")
    parts = place.split(".")
    for n in range(len(parts), 0, -1):
        file = f"{'/'.join(parts[:n])}.py"
        if (ROOT / file).exists():
            return "::".join([file, *parts[n:], test])
    raise SystemExit(f"{RESULT.relative_to(ROOT)} names {name!r}, which does not exist.")


def merged(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The record of all tests, with new results of those that failed."""
    repeated = [*before.get("tests_repeated", []), *before["tests_failed"]]
    new = {row["target"]: row for row in found["fuzzed"]}
    attacks = [
        {**old, "held": old["held"] + row["held"], "seconds": old["seconds"] + row["seconds"]}
        for old, row in zip(before["attacks"], found["attacks"], strict=True)
    ]
    return {
        **before,
        "passed": before["passed"] + found["passed"],
        "failed": found["failed"],
        "seconds": before["seconds"] + found["seconds"],
        "tests_failed": found["tests_failed"],
        "tests_repeated": list(dict.fromkeys(repeated)),
        "attacks": attacks,
        "fuzzed": [new.get(row["target"], row) for row in before["fuzzed"]],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test of a JUnit report; `noted` is what it recorded itself."""

    module: str
    name: str
    seconds: float
    failed: bool
    skipped: str | None
    noted: dict[str, str]

    @classmethod
    def read(cls, case: ElementTree.Element) -> Self:
        """The test that an element of the report describes."""
        skip = case.find("skipped")
        return cls(
            module=case.get("classname", ""),
            name=f"{case.get('classname')}::{case.get('name')}",
            seconds=float(case.get("time", 0)),
            failed=case.find("failure") is not None or case.find("error") is not None,
            skipped=None if skip is None else skip.get("message", ""),
            noted={
                entry.get("name", ""): entry.get("value", "") for entry in case.iter("property")
            },
        )

    @property
    def passed(self) -> bool:
        return not self.failed and self.skipped is None


def _read(report: Path) -> dict[str, Any]:
    """What a JUnit report says."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    if suite is None:
        raise ValueError(f"{report} has no test suite.")
    cases = [Case.read(case) for case in suite.iter("testcase")]
    skipped = {case.name: case.skipped for case in cases if case.skipped is not None}
    failed = [case.name for case in cases if case.failed]
    return {
        "passed": sum(case.passed for case in cases),
        "skipped": len(skipped),
        "failed": len(failed),
        "seconds": round(float(suite.get("time", 0))),
        "tests_failed": failed,
        "tests_skipped": skipped,
        "attacks": [_attacks(what, cases) for what in ATTACKS],
        "fuzzed": [_fuzzed(case) for case in cases if "target" in case.noted],
    }


def _attacks(what: str, cases: list[Case]) -> dict[str, Any]:
    tried = [case for case in cases if attack(case.module) == what]
    return {
        "what is tried": what,
        "cases": len(tried),
        "held": sum(case.passed for case in tried),
        "skipped": sum(case.skipped is not None for case in tried),
        "seconds": round(sum(case.seconds for case in tried)),
    }


def _fuzzed(case: Case) -> dict[str, Any]:
    inputs = int(case.noted.get("inputs", 0))
    return {
        "target": case.noted["target"],
        "inputs": inputs,
        "seconds": round(case.seconds),
        "held": case.passed,
    }


if __name__ == "__main__":
    sys.exit(main())
