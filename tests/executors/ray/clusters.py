"""Ray clusters of a few nodes on the loopback address, for tests."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Ray reads these when it is imported.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # stay on the loopback address
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"  # it would write a token into the home folder

pytest.importorskip("ray", reason="Ray is not installed")

HOST = {"node_ip_address": "127.0.0.1", "object_store_memory": 80_000_000, "num_gpus": 0}


class SmallCluster:
    """A head without room for trials, and nodes that have some."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.nodes: list[Any] = []

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, cpus: int = 2, **more: Any) -> Any:
        """A new node."""
        node = self._cluster.add_node(num_cpus=cpus, **HOST, **more)
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """End all processes of a node at once, as if its machine were gone."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)


@contextlib.contextmanager
def own_ray() -> Iterator[None]:
    """A folder for what Ray writes; it and a connection that is left are removed."""
    import ray

    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # paths of sockets must be short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        try:
            yield
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def small_cluster(*cpus: int) -> Iterator[SmallCluster]:
    """A cluster with a node for each number of processors; nothing is left of it."""
    import ray
    from ray.cluster_utils import Cluster

    with own_ray():
        head = {"num_cpus": 0, "include_dashboard": False, **HOST}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        small = SmallCluster(cluster)
        try:
            for count in cpus:
                small.add(count)
            yield small
        finally:
            ray.shutdown()
            cluster.shutdown()  # type: ignore[no-untyped-call]
