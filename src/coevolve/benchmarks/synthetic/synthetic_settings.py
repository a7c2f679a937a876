"""Settings of synthetic worlds, and of the proposer that knows them."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from coevolve.benchmarks.benchmark_settings import BenchmarkSettings
from coevolve.benchmarks.synthetic.synthetic_benchmark import SyntheticProposer
from coevolve.benchmarks.synthetic.world import SyntheticWorld
from coevolve.errors import InputError
from coevolve.executors.workload import Spec
from coevolve.proposers.proposer_settings import ProposerSettings
from coevolve.search.proposal import Proposer
from coevolve.settings import Amount, Context, Count, Text

_NOT_OF_THE_WORLD = {"kind", "starts", "test_tasks", "seconds"}


class SyntheticSettings(BenchmarkSettings):
    """A synthetic world; see `coevolve.benchmarks.synthetic.SyntheticWorld`."""

    uses_model: ClassVar[bool] = False
    unscored: ClassVar[frozenset[str]] = frozenset({"starts", "seconds"})
    pools: dict[Text, Count] = Field(default_factory=lambda: {"all": 89}, min_length=1)
    ease: dict[str, float] | None = None
    skills: Count = 3
    spread: Amount = 3.0
    sharpness: Amount = 3.0
    drift: float = 0.0
    step: Amount = 0.4
    mends: Annotated[int, Field(ge=0)] = 2
    mend: float = 5.0
    seed: Annotated[int, Field(ge=0)] = 0
    starts: Annotated[int, Field(ge=1)] = 2
    test_tasks: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0

    def spec(self, context: Context) -> Spec:
        return Spec(
            factory="coevolve.benchmarks.synthetic.synthetic_benchmark:build",
            arguments=self.model_dump(mode="json", exclude={"kind"}),
            folder=context.base.resolve(),
        )

    def world(self) -> SyntheticWorld:
        """The world of the validation tasks."""
        return SyntheticWorld(**self.model_dump(exclude=_NOT_OF_THE_WORLD))


class SyntheticProposerSettings(ProposerSettings):
    """The proposer of the synthetic world that is the benchmark."""

    free: ClassVar[bool] = True
    reads_traces: ClassVar[bool] = False

    def check(self, config: Any) -> None:
        if not isinstance(config.benchmark, SyntheticSettings):
            raise InputError(
                "proposer.kind 'synthetic' needs benchmark.kind 'synthetic', got "
                f"{config.benchmark.kind!r}."
            )

    def build(self, context: Context) -> Proposer:
        return SyntheticProposer(context.config.benchmark.world())
