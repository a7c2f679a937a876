"""The connection of this process to a Ray cluster, shared by its executors."""

import contextlib
import hashlib
import importlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from coevolve.errors import ConfigError
from coevolve.formatting import one_line

NAMESPACE = "coevolve"
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray reads it when it is imported; 0 keeps a local Ray on the loopback address."""
_OBJECTS = 100_000_000
"""Bytes of the object store of a local Ray: contents pass through it one at a time."""
_END_SECONDS = 20.0
_REACH_SECONDS = 10.0


def find_ray() -> ModuleType:
    """Ray, imported only when an executor needs it.

    Raises:
        ConfigError: It is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "1")  # data is often in it
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "executor.kind 'ray' needs Ray; install it: pip install 'task-coevolve[ray]'."
        ) from error
    return ray


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlace:
    """Where a cluster is, and what its nodes get.

    Args:
        address: Its address, `host:port` or "auto"; None starts Ray on this machine alone, for
            this process.
        runtime_env: More of Ray's runtime environment, such as `pip` or `env_vars`.
        exclude: Patterns of files in the project folder that nodes do not need.
    """

    address: str | None = None
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()

    def environment(self, project: Path | None) -> dict[str, Any]:
        """Ray's runtime environment: the project's files, and what the user adds."""
        own: dict[str, Any] = dict(self.runtime_env)
        if self.address is not None and project is not None:
            own = {"working_dir": str(project), "excludes": list(self.exclude), **own}
        return own


class RayConnection:
    """The connection; the first executor of a process makes it, the last one ends it.

    A connection that the process had before is used as it is and left alone. Then the project's
    files are not copied: nodes must have them at the same path.
    """

    _lock = threading.Lock()
    _users = 0
    _ours: "RayConnection | None" = None

    def __init__(self, ray: ModuleType, *, project: str | None, owned: bool) -> None:
        self.ray, self.project, self._owned = ray, project, owned

    @classmethod
    def join(cls, place: ClusterPlace, *, project: Path | None, cpus: float) -> Self:
        """Connect, or use the connection that there is.

        Args:
            place: The cluster.
            project: The project folder, copied to the nodes of a cluster with an address.
            cpus: Processors of a local Ray, counted, not used.

        Raises:
            ConfigError: There is no such cluster.
        """
        if place.address is None:
            os.environ.setdefault(_LOOPBACK, "0")
        with cls._lock:
            ray = find_ray()
            if cls._ours is None:
                owned = not ray.is_initialized()
                if owned:
                    _start(ray, place, project, cpus)
                copied = owned and place.address is not None and project is not None
                cls._ours = cls(ray, project=str(project) if copied else None, owned=owned)
            cls._users += 1
            return cls._ours  # type: ignore[return-value]

    def leave(self) -> None:
        """End the connection if no other executor uses it."""
        kind = type(self)
        with kind._lock:
            kind._users -= 1
            if not kind._users:
                kind._ours = None
                if self._owned:
                    self.ray.shutdown()

    def nodes(self) -> dict[str, dict[str, float]]:
        """The free resources of every node that is alive, by its id."""
        # Ray has no public way to ask for the free resources of each node.
        state = importlib.import_module("ray._private.state")
        alive = [node["NodeID"] for node in self.ray.nodes() if node["Alive"]]
        free = state.available_resources_per_node()
        return {node: dict(free.get(node, {})) for node in alive}

    def totals(self) -> list[dict[str, float]]:
        """The resources of every node that is alive, free or not."""
        return [dict(node["Resources"]) for node in self.ray.nodes() if node["Alive"]]

    def labels(self) -> dict[str, str]:
        """Names of the nodes for people: host and the start of the id."""
        return {
            node["NodeID"]: f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"
            for node in self.ray.nodes()
        }

    def end_actors(self, run: str) -> int:
        """End the actors that a killed session of a run has left, and wait until they are gone."""
        found = self._actors(run)
        for name in found:
            with contextlib.suppress(ValueError):  # it has just ended
                self.ray.kill(self.ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
        deadline = time.monotonic() + _END_SECONDS
        while self._actors(run) and time.monotonic() < deadline:
            time.sleep(0.05)
        if left := self._actors(run):
            raise ConfigError(
                f"{len(left)} trial hosts of an earlier session of this run are still alive in "
                "the cluster and do not end; end them or wait, then resume the run."
            )
        return len(found)

    def _actors(self, run: str) -> list[str]:
        named = self.ray.util.list_named_actors(all_namespaces=True)
        return [
            actor["name"]
            for actor in named
            if actor["namespace"] == NAMESPACE and actor["name"].startswith(f"{run}/")
        ]

    def ask_for(self, bundles: list[dict[str, float]]) -> None:
        """Tell the autoscaler, if there is one, what the run could use."""
        from ray.autoscaler.sdk import request_resources

        request_resources(bundles=bundles)


def run_name(contents: object) -> str:
    """A name of the run for the cluster, the same in every session of a run on disk."""
    folder = getattr(contents, "folder", None)
    unique = os.urandom(16).hex() if folder is None else f"{socket.gethostname()}:{folder}"
    return hashlib.blake2b(unique.encode(), digest_size=8).hexdigest()


def _start(ray: ModuleType, place: ClusterPlace, project: Path | None, cpus: float) -> None:
    options: dict[str, Any] = {
        "namespace": NAMESPACE,
        "runtime_env": place.environment(project) or None,
        "log_to_driver": False,
        "configure_logging": False,
    }
    if place.address is None:
        options |= {
            "address": "local",  # without it, Ray would join another cluster of this machine
            "num_cpus": cpus,
            "include_dashboard": False,
            "object_store_memory": _OBJECTS,
            "_node_ip_address": "127.0.0.1",
            # Ray would start a process for each of the processors that slots stand for.
            "_system_config": {"prestart_worker_first_driver": False},
        }
    else:
        options |= {"address": place.address}
    try:
        _check_reachable(place.address)
        with _own_signals():
            ray.init(**options)
    except Exception as error:
        where = "on this machine" if place.address is None else f"at {place.address!r}"
        raise ConfigError(
            f"Ray {where} cannot be used: {one_line(str(error))}. Check executor.address and "
            "that the cluster runs: `ray status`."
        ) from error


def _check_reachable(address: str | None) -> None:
    """Raise an OSError if nothing listens at an address; Ray would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep this process's handling of SIGTERM, which Ray would replace."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
