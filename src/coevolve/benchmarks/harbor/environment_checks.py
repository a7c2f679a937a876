"""What `coevolve doctor` checks for Harbor: environments and data sets; nothing is run."""

import subprocess
from collections.abc import Iterator
from importlib.util import find_spec

from coevolve.benchmarks.harbor.namespace_support import missing_limits, why_unavailable
from coevolve.benchmarks.harbor.task_folders import downloaded, read_tasks_folder, revision
from coevolve.errors import ConfigError
from coevolve.findings import Finding, failed, noted, passed

ABOUT = "Harbor environment"
SECONDS = 10
"""How long Docker may take to answer."""


def installed() -> bool:
    """Whether the extra `harbor` is installed."""
    return find_spec("harbor") is not None


def check_environment(name: str) -> Iterator[Finding]:
    """Whether the environment of a project can work here."""
    if not installed():
        yield failed(ABOUT, "Harbor is not installed", 'pip install "task-coevolve[harbor]"')
    elif name == "namespace":
        yield _namespace(needed=True)
    elif name == "docker":
        yield _docker(needed=True)
    else:
        yield noted(ABOUT, f"{name!r} is not checked", "Its own documentation says what it needs.")


def check_dataset(name: str, version: str | None) -> Iterator[Finding]:
    """Which revision of a data set is used, for those who want to pin it."""
    if not installed():
        return
    try:
        folder = downloaded(name, version)
    except ConfigError as error:
        yield failed("data set", str(error))
        return
    found = revision(folder)
    pin = "" if found in (None, version) else f'To pin it, set version = "{found}".'
    yield passed("data set", f"{name}: {len(read_tasks_folder(folder))} tasks. {pin}".strip())


def check_environments() -> Iterator[Finding]:
    """Which environments can work here, if Harbor is installed."""
    if installed():
        yield _namespace(needed=False)
        yield _docker(needed=False)


def _namespace(*, needed: bool) -> Finding:
    if reason := why_unavailable():
        text = f"'namespace' (without Docker) cannot work here: {reason}"
        return failed(ABOUT, text) if needed else noted(ABOUT, text)
    if lacking := missing_limits():
        return noted(ABOUT, f"'namespace' works, with less protection: {'; '.join(lacking)}")
    return passed(ABOUT, "'namespace' (without Docker) can work here")


def _docker(*, needed: bool) -> Finding:
    engine, reason = _said("version", "--format", "{{.Server.Version}}")
    compose = ""
    if not reason:
        compose, reason = _said("compose", "version", "--short")
    if not reason:
        return passed(ABOUT, f"'docker' can work here: Docker {engine}, Compose {compose}")
    text = f"'docker' cannot work here: {reason}"
    if not needed:
        return noted(ABOUT, text)
    return failed(ABOUT, text, "Start Docker with Compose v2, or set environment = 'namespace'.")


def _said(*arguments: str) -> tuple[str, str]:
    """What `docker` says, and why it says nothing."""
    try:
        done = subprocess.run(
            ("docker", *arguments),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        return "", f"the program docker cannot be started ({error.strerror})"
    except subprocess.TimeoutExpired:
        return "", f"`docker {arguments[0]}` did not answer within {SECONDS} s"
    said = done.stdout.strip()
    if done.returncode or not said:
        lines = (done.stderr.strip() or said or "no answer").splitlines()
        return "", f"`docker {arguments[0]}` failed: {lines[-1][:200]}"
    return said.splitlines()[0], ""
