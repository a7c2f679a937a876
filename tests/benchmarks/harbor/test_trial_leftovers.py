"""Nothing is left of trials whose process was killed; what belongs to others stays."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.benchmarks.harbor import trial_leftovers
from coevolve.benchmarks.harbor.trial_leftovers import abandoned, owned_prefix
from tests.benchmarks.harbor.task_boxes import processes_with, wait_for
from tests.benchmarks.harbor.trials import ENVIRONMENT, Bench, needs_trials, write_task

in_docker = pytest.mark.skipif(
    ENVIRONMENT != "docker", reason="only with Docker: run `make test-docker`"
)

DRIVER = """
import sys
from pathlib import Path
from tests.benchmarks.harbor.trials import Bench, agent
if __name__ == "__main__":
    Bench(Path(sys.argv[1])).tried(agent("await environment.exec('sleep 8765.4')"))
"""


def listed(*arguments: str) -> set[str]:
    """What `docker` lists."""
    done = subprocess.run(
        ("docker", *arguments), capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def of_trials(owner: int | None = None) -> set[str]:
    """Containers, networks, volumes and images of the trials of a process, or of all."""
    if ENVIRONMENT != "docker":
        return set()
    found = listed("ps", "--all", "--format", "{{.Names}}")
    for kind in ("network", "volume"):
        found |= listed(kind, "ls", "--format", "{{.Name}}")
    found |= listed("image", "ls", "--format", "{{.Repository}}")
    return {
        name
        for name in found
        if name.startswith("coevolve-") and (owner is None or f"-{owner}-" in name)
    }


def test_a_trial_belongs_to_one_process_of_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    own = owned_prefix()
    machine, pid, ticks = own.removeprefix("coevolve-").split("-")
    assert not abandoned(f"{own}-task-1")
    assert abandoned(f"coevolve-{machine}-999999999-1-task-1")
    assert abandoned(f"coevolve-{machine}-{pid}-{int(ticks) - 1}-task-1"), "an earlier process"
    assert not abandoned(f"coevolve-{'0' * 8}-999999999-1-task-1"), "of another machine"


def test_folders_of_unfinished_trials_of_ended_processes_are_removed(tmp_path: Path) -> None:
    machine = owned_prefix().split("-")[1]
    ended = f"coevolve-{machine}-999999999-1"
    for name in (f"{ended}-cut", f"{ended}-done", f"{owned_prefix()}-now", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{ended}-done" / "result.json").touch()
    assert trial_leftovers.sweep_trials(tmp_path) == [f"{ended}-cut"]
    assert len(list(tmp_path.iterdir())) == 3


@needs_trials
def test_a_killed_process_leaves_nothing_after_the_next_start(
    tmp_path: Path, environment_cache: Path
) -> None:
    write_task(tmp_path / "tasks" / "one")
    command = (sys.executable, "-c", DRIVER, str(tmp_path))
    driver = subprocess.Popen(command, cwd=Path(__file__).parents[3])
    try:
        assert wait_for(lambda: len(processes_with("sleep\0" + "8765.4")) > 0, 120)
        assert (len(of_trials(driver.pid)) >= 3) == (ENVIRONMENT == "docker")
    finally:
        driver.kill()
        driver.wait()
    Bench(tmp_path).benchmark.sweep()
    assert wait_for(lambda: processes_with("sleep\0" + "8765.4") == [])
    assert wait_for(lambda: of_trials(driver.pid) == set()), of_trials(driver.pid)


@contextlib.contextmanager
def project(name: str, folder: Path) -> Iterator[None]:
    """A compose project with a network and a volume, as a task may have."""
    file = folder / "compose.yaml"
    file.write_text(
        "services: {main: {image: 'debian:bookworm-slim', command: sleep infinity,"
        " volumes: ['data:/data']}}\nvolumes: {data: {}}\n"
    )
    compose = ("docker", "compose", "--project-name", name, "--file", str(file))
    try:
        subprocess.run((*compose, "up", "--detach"), check=True, capture_output=True)
        yield
    finally:
        subprocess.run((*compose, "kill"), check=True, capture_output=True)
        subprocess.run((*compose, "down", "--volumes"), check=True, capture_output=True)


@in_docker
def test_a_sweep_spares_living_and_foreign_trials(tmp_path: Path) -> None:
    machine = owned_prefix().split("-")[1]
    gone = f"coevolve-{machine}-999999999-1-task-aaaa__env"
    stay = [f"{owned_prefix()}-task-bbbb__env", f"coevolve-{'0' * 8}-999999999-1-task-cccc__env"]
    with contextlib.ExitStack() as stack:
        for name in (gone, *stay):
            (tmp_path / name).mkdir()
            stack.enter_context(project(name, tmp_path / name))
        assert gone in trial_leftovers.sweep_docker()
        left = of_trials()
        assert [name for name in left if name.startswith(gone)] == []
        for name in stay:
            parts = {f"{name}-main-1", f"{name}_default", f"{name}_data"}
            assert parts <= left
