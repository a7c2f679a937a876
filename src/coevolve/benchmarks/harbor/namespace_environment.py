"""A Harbor environment without Docker: bubblewrap and overlayfs in a mapped user namespace.

Use it as `EnvironmentConfig(import_path="coevolve.benchmarks.harbor.namespace_environment:"
"NamespaceEnvironment", kwargs={...})`. It needs root, bubblewrap and Linux 5.19. What differs from
Docker is in `docs/terminal-bench-environments.md`.
"""

import asyncio
import secrets
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult, SandboxBuildFailedError
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.models.trial.config import ResourceMode

from coevolve.benchmarks.harbor.dockerfile import Dockerfile, read_dockerfile
from coevolve.benchmarks.harbor.namespace_leftovers import sweep_leftovers
from coevolve.benchmarks.harbor.namespace_limits import NamespaceLimits
from coevolve.benchmarks.harbor.namespace_support import (
    environments_folder,
    why_no_disk_limit,
    why_unavailable,
)
from coevolve.benchmarks.harbor.root_folders import find_root, remove_unfinished
from coevolve.benchmarks.harbor.task_layers import (
    TaskLayer,
    build_layer,
    layer_key,
    layers_folder,
)
from coevolve.benchmarks.harbor.task_namespace import NamespacePlan, Network, TaskNamespace
from coevolve.errors import InputError

DISK_MB = 10_240
_LOGS = "/logs"


class NamespaceEnvironment(BaseEnvironment):
    """Runs a task in namespaces of this machine.

    Args:
        root: The root for every task: the name of a prepared one, `host`, or a folder. Default:
            by the base image of each task.
        roots: Roots for other base images than the known ones, by image.
        network: The network of a task that requests a public one: `loopback` (nothing outside),
            `slirp4netns` (the outside, but not this machine) or `host` (all of this machine's
            network, for trusted tasks). A task without a network gets `loopback`.
        disk_mb: How much a task may write if its `storage_mb` is not set; 0 means no limit.
        processes: The maximum number of processes and threads of a task.
        output_mb: How much output of one command is kept.
        transfer_mb: The maximum size of one upload or download.
        folder: Where the folders of running environments are. Default: the cache.
    """

    def __init__(
        self,
        *args: Any,
        root: str | None = None,
        roots: dict[str, str] | None = None,
        network: Network = "loopback",
        disk_mb: int = DISK_MB,
        processes: int = 4096,
        output_mb: int = 16,
        transfer_mb: int = 1024,
        folder: str | None = None,
        **kwargs: Any,
    ) -> None:
        if network not in ("loopback", "slirp4netns", "host"):
            raise ValueError(
                f"network is {network!r}; it must be 'loopback', 'slirp4netns' or 'host'."
            )
        self._root_name = root
        self._roots = roots or {}
        self._network = network
        self._disk_mb = disk_mb
        self._processes = processes
        self._output_bytes = output_mb << 20
        self._transfer_bytes = transfer_mb << 20
        self._folder = environments_folder() if folder is None else Path(folder)
        self._namespace: TaskNamespace | None = None
        self._layer: TaskLayer | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    @override
    def type() -> str:
        return "coevolve-namespace"

    @classmethod
    @override
    def preflight(cls) -> None:
        if reason := why_unavailable():
            raise SystemExit(f"The environment without Docker cannot run here: {reason}.")

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        # Without a way out there is nothing to switch between phases.
        return EnvironmentCapabilities(
            disable_internet=True, dynamic_network_policy=self._network == "loopback"
        )

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        """Nothing to do: every policy that is accepted means loopback here."""

    @override
    def _validate_definition(self) -> None:
        """Nothing here: a task that cannot be built must not end the whole job; see `start`."""

    @property
    def layer(self) -> TaskLayer:
        """What the environment was made from; only after `start`."""
        if self._layer is None:
            raise RuntimeError("the environment was not started.")
        return self._layer

    @property
    def namespace(self) -> TaskNamespace:
        """The running environment."""
        if self._namespace is None:
            raise RuntimeError("the environment is not running.")
        return self._namespace

    @override
    async def start(self, force_build: bool) -> None:
        if reason := why_unavailable():
            raise SandboxBuildFailedError(f"the environment cannot run here: {reason}")
        if outside := self._other_mounts():
            raise SandboxBuildFailedError(
                f"the mount of {outside} is not supported; use environment = 'docker'"
            )
        await asyncio.to_thread(sweep_leftovers, self._folder)
        await asyncio.to_thread(remove_unfinished, layers_folder())
        try:
            self._layer = await self._build(force_build)
        except InputError as error:
            raise SandboxBuildFailedError(f"{self.environment_name}: {error}") from error
        namespace = TaskNamespace(
            self._plan(self._layer),
            self._folder,
            output_bytes=self._output_bytes,
            transfer_bytes=self._transfer_bytes,
        )
        await namespace.start()
        self._namespace = namespace
        if self._layer.entrypoint:
            await self._run_entrypoint(self._layer.entrypoint)
        await self._upload_environment_dir_after_start()

    async def _build(self, rebuild: bool) -> TaskLayer:
        dockerfile = self.environment_dir / "Dockerfile"
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise InputError(
                "cannot be built: docker-compose.yaml (several containers) is not supported"
            )
        if dockerfile.exists():
            base = read_dockerfile(dockerfile).base
        elif self.task_env_config.docker_image:
            base = self.task_env_config.docker_image
        else:
            raise InputError(f"cannot be built: {self.environment_dir} has no Dockerfile")
        root = find_root(base, chosen=self._root_name, more=self._roots)
        if not dockerfile.exists():
            recipe = Dockerfile(base=base, steps=(), env=root.env)
            return await build_layer(root, recipe, self.environment_dir, key="")
        recipe = read_dockerfile(dockerfile, base_env=root.env)
        key = layer_key(root, dockerfile, self.environment_dir)
        return await build_layer(root, recipe, self.environment_dir, key=key, rebuild=rebuild)

    def _plan(self, layer: TaskLayer) -> NamespacePlan:
        policy = self.network_policy.network_mode
        disk = 0 if why_no_disk_limit() else self._effective_storage_mb or self._disk_mb
        limit = ResourceMode.LIMIT
        limits = NamespaceLimits(
            memory_mb=self._resource_limit_value("memory", auto_mode=limit),
            cpus=self._resource_limit_value("cpu", auto_mode=limit),
            processes=self._processes,
            disk_mb=disk or None,
        )
        return NamespacePlan(
            trees=layer.trees(),
            limits=limits,
            network="loopback" if policy == NetworkMode.NO_NETWORK else self._network,
            hostname=secrets.token_hex(6),
            workdir=self.task_env_config.workdir or layer.workdir,
            open_folders=tuple(self._log_folders()),
        )

    def _log_folders(self) -> list[str]:
        return [target for target in self._mount_targets() if target.startswith(f"{_LOGS}/")]

    def _other_mounts(self) -> str:
        """A mount that is not one of Harbor's folders for logs, which are copied instead."""
        logs = self._log_folders()
        others = (mount for mount in self._mounts if mount.get("target") not in logs)
        return next((str(mount.get("source")) for mount in others), "")

    async def _run_entrypoint(self, entrypoint: tuple[str, ...]) -> None:
        """Start the entry point in the background, with the command that Harbor gives to it."""
        program = 'setsid -- "$@" >/dev/null 2>&1 </dev/null &'
        argv = ("/bin/sh", "-c", program, "sh", *entrypoint, "sh", "-c", "sleep infinity")
        await self.namespace.exec(argv, env=self._variables(None), user=self.layer.user)

    def _variables(self, env: dict[str, str] | None) -> dict[str, str]:
        # Without a network, uv must not ask for newer versions of what is in its cache.
        offline = {"UV_OFFLINE": "1"} if self.namespace.plan.network == "loopback" else {}
        return {**offline, **self.layer.env, **(self._merge_env(env) or {})}

    @override
    async def stop(self, delete: bool) -> None:
        namespace, self._namespace = self._namespace, None
        if namespace is not None:
            await namespace.stop()

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        callback = self._output_callback()

        async def told(text: str) -> None:
            if callback is not None:
                await callback(text, "stdout")

        chosen = self._resolve_user(user)
        try:
            done = await self.namespace.exec(
                ("bash", "-c", command),
                cwd=cwd,
                env=self._variables(env),
                user=self.layer.user if chosen is None else chosen,
                timeout=timeout_sec or None,
                on_output=None if callback is None else told,
            )
        except TimeoutError:
            # As Harbor's Docker environment does.
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
        return ExecResult(stdout=done.output or None, stderr=None, return_code=done.code)

    async def end_agent_processes(self) -> None:
        """Kill all processes of the task, for example before its result is verified."""
        await self.namespace.end_processes()

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self.namespace.put_file(Path(source_path), target_path)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self.namespace.put_folder(Path(source_dir), target_dir)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self.namespace.get_file(source_path, Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        if note := await self.namespace.get_folder(source_dir, Path(target_dir)):
            self.logger.warning(note)
