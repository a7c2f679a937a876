"""`[executor] kind = "ray"`: trials on the nodes of a Ray cluster."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from coevolve.errors import CoevolveError, InputError
from coevolve.executors.executor_settings import ExecutorSettings, Work, arguments_of
from coevolve.executors.ray.node_checks import check_nodes
from coevolve.executors.ray.ray_connection import ClusterPlace
from coevolve.executors.ray.ray_executor import RayExecutor
from coevolve.executors.ray.trial_share import TrialShare
from coevolve.findings import Finding, failed
from coevolve.search.trials import Executor
from coevolve.settings import Amount, Context, Text, Texts

_ALL = 1_000_000
"""The number of workers that means as many as the cluster has."""
_LEFT_OUT = (".git", ".venv", ".env", ".env.*", "__pycache__", "node_modules", ".tools")
"""Files such as `.env` hold keys."""
_NotNegative = Annotated[float, Field(ge=0)]


class RaySettings(ExecutorSettings):
    """The nodes of a Ray cluster.

    `cpus`, `memory_mb`, `gpus` and `resources` are what one trial reserves. Without an `address`,
    Ray is started on this machine alone and ends with the run.
    """

    elsewhere: ClassVar[bool] = True
    address: Text | None = None
    cpus: _NotNegative = 1.0
    memory_mb: _NotNegative = 0.0
    gpus: _NotNegative = 0.0
    resources: dict[Text, Amount] = Field(default_factory=dict)
    exclude: Texts = ()
    runtime_env: dict[str, Any] = Field(default_factory=dict)
    join_seconds: Amount = 300.0

    def check(self, config: Any) -> None:
        if self.address is not None and self.address.startswith("ray://"):
            raise InputError(
                f"executor.address {self.address!r} is that of a Ray client, which cannot reach "
                "the nodes' actors in time; run coevolve on a machine of the cluster and give "
                "'auto' or 'HOST:6379'."
            )
        self.share()

    def processes(self) -> int:
        return self.workers or _ALL

    def share(self) -> TrialShare:
        """What one trial reserves."""
        return TrialShare(
            cpus=self.cpus,
            memory_mb=self.memory_mb,
            gpus=self.gpus,
            resources=self.resources,
        )

    def place(self, config: Any) -> ClusterPlace:
        """The cluster, and what its nodes get."""
        left_out = (*_LEFT_OUT, f"/{config.run.folder}", *self.exclude)
        return ClusterPlace(address=self.address, runtime_env=self.runtime_env, exclude=left_out)

    def build(self, context: Context, work: Work) -> Executor:
        given = arguments_of(self, work)
        workers = None if work.workers >= _ALL else work.workers
        return RayExecutor(
            work.benchmark,
            **{**given, "workers": workers},
            place=self.place(context.config),
            share=self.share(),
            join_seconds=self.join_seconds,
        )

    def examine(self, context: Context) -> Iterator[Finding]:
        """Every node of the cluster: whether it can run trials, and why not."""
        try:
            yield from check_nodes(
                self.place(context.config),
                share=self.share(),
                isolation=context.config.isolation.kind,
                workers=self.workers,
            )
        except CoevolveError as error:
            yield failed("ray", str(error))
