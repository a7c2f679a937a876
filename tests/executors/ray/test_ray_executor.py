"""The executor on a Ray of its own: what the engine relies on."""

import subprocess
import sys
from types import SimpleNamespace
from typing import cast

import pytest

from coevolve.errors import ConfigError, InputError
from coevolve.executors.ray.node_handle import NodeHandle, NodeLost, loss
from coevolve.executors.ray.trial_share import TrialShare
from coevolve.runs.config import RunConfig
from coevolve.search.trials import Blame, Fault
from tests.executors.ray.clusters import own_ray

TABLES = {
    "search": {"rounds": 1},
    "benchmark": {"kind": "synthetic"},
    "proposer": {"kind": "synthetic"},
}


def test_it_does_what_the_engine_relies_on() -> None:
    from coevolve.executors.ray.ray_executor import RayExecutor
    from coevolve.testing import assert_executor

    with own_ray():
        assert_executor(lambda spec, contents: RayExecutor(spec, contents=contents, workers=2))


def test_importing_coevolve_does_not_import_ray() -> None:
    program = "import sys, coevolve, coevolve.cli.main; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_node_has_as_many_slots_as_its_scarcest_resource_allows() -> None:
    share = TrialShare(cpus=0.5, memory_mb=2000, gpus=0.25, resources={"license": 1})
    free = {"CPU": 64.0, "memory": 100e9, "GPU": 4.0, "license": 3.0}
    assert share.fit(free) == 3
    assert share.fit({**free, "license": 100.0}) == 16
    assert share.fit({"CPU": 64.0}) == 0
    assert share.options(2)["num_gpus"] == 0.5


def test_a_trial_must_reserve_something() -> None:
    with pytest.raises(InputError, match="must reserve something"):
        TrialShare(cpus=0)
    with pytest.raises(ConfigError, match="must reserve something"):
        RunConfig.from_json({**TABLES, "executor": {"kind": "ray", "cpus": 0.0}})


def test_the_address_of_a_ray_client_is_refused() -> None:
    with pytest.raises(ConfigError, match="Ray client"):
        RunConfig.from_json({**TABLES, "executor": {"kind": "ray", "address": "ray://h:10001"}})


def test_a_cluster_that_is_not_there_is_an_error_of_the_configuration() -> None:
    from coevolve.executors.ray.ray_connection import ClusterPlace, RayConnection

    place = ClusterPlace(address="127.0.0.1:1")
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1"):
        RayConnection.join(place, project=None, cpus=1)


def lost(cause: str, *, isolated: bool = True) -> Fault:
    """The fault of an attempt whose node was lost with an error of Ray."""
    from ray.exceptions import RayError

    node = cast(NodeHandle, SimpleNamespace(label="n1"))
    error = NodeLost()
    error.__cause__ = RayError(cause)
    return loss(error, node, isolated=isolated, since=0.0).fault


def test_whose_fault_a_lost_node_is() -> None:
    killed = "Worker exit type: SYSTEM_ERROR, such as: (1) killed by the OOM killer"
    assert lost(killed).blame is Blame.INFRASTRUCTURE
    assert not lost(killed).unexplained
    assert lost(killed, isolated=False).unexplained, "a candidate may have killed it"
    assert lost("Worker exit type: NODE_OUT_OF_MEMORY").blame is Blame.DOUBTFUL
