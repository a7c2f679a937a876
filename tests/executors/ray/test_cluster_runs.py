"""Whole runs on a cluster: they end as on one machine, whatever happens to nodes and head."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.ray.ray_connection import NAMESPACE
from coevolve.runs.session import create_run, read_state
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from tests.executors.projects import needs_bwrap, until
from tests.executors.ray.clusters import SmallCluster, small_cluster
from tests.runs.drill import make_project
from tests.search.snapshots import snapshot

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), needs_bwrap()]

COST = ("proposing", "evaluating", "failures")


def project(
    folder: Path, address: str | None, *, sleep: float = 0.02, rounds: int = 3, tasks: int = 32
) -> Path:
    """The drill's project; with an address its trials run on a cluster."""
    folder.mkdir(parents=True, exist_ok=True)
    file = make_project(folder, rounds=rounds, tasks=tasks)
    text = file.read_text().replace('kind = "process"', 'kind = "bwrap"')
    if address is not None:
        table = f'[executor]\nkind = "ray"\naddress = "{address}"\nworkers = 6\n'
        text = text.replace("[executor]\nworkers = 3\n", table)
    file.write_text(text)
    benchmark = folder / "benchmark.py"
    benchmark.write_text(benchmark.read_text().replace("0.004", str(sleep)))
    return file


def finish(folder: Path) -> RunState:
    """Go on with a run to its end, in a process of its own."""
    with begin(folder) as process:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output.decode()
    state = read_state(folder)
    assert state.ended == {"why": "finished"}
    return state


def begin(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "coevolve", "resume", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def reached(folder: Path, count: int) -> bool:
    """Whether a run has so many outcomes in time."""
    return until(lambda: len(events(folder, "outcome")) >= count, 150)


def events(folder: Path, kind: str) -> list[Any]:
    with RunStore.read(folder) as store:
        return [event for event in store.events() if event["type"] == kind]


def check_once(folder: Path, state: RunState) -> None:
    """Every outcome is recorded once, none is missing, and the ledger counts each."""
    outcomes = events(folder, "outcome")
    cells = Counter((one["candidate"], one["task"], one["trial"]) for one in outcomes)
    assert max(cells.values()) == 1
    assert sum(cells.values()) == state.evaluating.trials
    assert all(one.get("score") is not None for one in outcomes)


def choices(state: RunState) -> dict[str, Any]:
    """Draws, outcomes, estimates and the choice, without times and failed attempts."""
    return {name: value for name, value in snapshot(state).items() if name not in COST}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> RunState:
    """The state of the run on one machine."""
    folder = create_run(project(tmp_path_factory.mktemp("here"), None))
    return finish(folder)


def test_a_run_ends_as_on_one_machine(tmp_path: Path, here: RunState) -> None:
    with small_cluster(2, 2, 2) as cluster:
        folder = create_run(project(tmp_path, cluster.address))
        state = finish(folder)
        assert choices(state) == choices(here)
        check_once(folder, state)
        assert events(folder, "session")[0]["capacity"] == 6


def test_the_head_is_killed_and_the_run_resumed(tmp_path: Path, here: RunState) -> None:
    with small_cluster(2, 2, 2) as cluster:
        folder = create_run(project(tmp_path, cluster.address, sleep=0.1))
        for _ in range(2):
            wanted = len(events(folder, "outcome")) + 5
            with begin(folder) as process:
                assert reached(folder, wanted), process.poll()
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            assert until(lambda: not hosts(cluster), 60), "trial hosts outlive the head"
        state = finish(folder)
        assert choices(state) == choices(here)
        check_once(folder, state)
        assert not hosts(cluster)


def hosts(cluster: SmallCluster) -> list[str]:
    """The trial hosts that the cluster knows, asked by a process of its own."""
    program = (
        "import ray; ray.init(address='ADDRESS', log_to_driver=False, configure_logging=False)\n"
        "found = ray.util.list_named_actors(all_namespaces=True)\n"
        f"print('hosts:', *[one['name'] for one in found if one['namespace'] == {NAMESPACE!r}])"
    ).replace("ADDRESS", cluster.address)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("hosts:")]
    return line.split()[1:]  # Ray may print other lines: that a node was lost, for example


def test_200_trials_with_nodes_cut_short(tmp_path: Path) -> None:
    alone = finish(create_run(project(tmp_path / "here", None, tasks=64)))
    with small_cluster(3, 3, 3) as cluster:
        folder = create_run(project(tmp_path / "there", cluster.address, sleep=0.1, tasks=64))
        with begin(folder) as process:
            for killed_after in (30, 90, 150):
                assert reached(folder, killed_after), process.poll()
                cluster.kill(cluster.nodes[0])
                cluster.add(3)
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output.decode()
        state = read_state(folder)
        assert state.evaluating.trials >= 200
        assert choices(state) == choices(alone)
        check_once(folder, state)
        lost = [one for one in events(folder, "failed") if "node-lost" in str(one)]
        assert lost, "no attempt was lost with its node"
        assert not hosts(cluster)
