"""Settings of text classification."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from coevolve.benchmarks.benchmark_settings import BenchmarkSettings, Starts
from coevolve.benchmarks.textclass.harness_check import Mode
from coevolve.benchmarks.textclass.harness_files import DEFAULT_STARTS, built_in
from coevolve.errors import InputError
from coevolve.executors.workload import Spec
from coevolve.settings import Context, Needed, Text, Words


class TextClassificationSettings(BenchmarkSettings):
    """Text classification with a model; see `coevolve.benchmarks.textclass`."""

    building_blocks: ClassVar[str] = "coevolve.benchmarks.textclass.blocks:TextBlocks"
    unscored: ClassVar[frozenset[str]] = BenchmarkSettings.unscored | {"data"}
    sets: Words = ("service-desk",)
    data: Text | None = None
    starts: Starts = DEFAULT_STARTS
    mode: Mode = "offline"

    def check(self, config: Any) -> None:
        if config.model is None:
            raise InputError(
                f"benchmark.kind {self.kind!r} needs a model; add [model] with "
                'name = "embedded" or another model (docs/models.md).'
            )

    def needs(self) -> Iterator[Needed]:
        if self.data is not None:
            yield ("data", self.data, "folder")
        yield from (("sets", path, "folder") for path in self.sets if "/" in path)
        yield from (("starts", name, "harness") for name in self.starts)

    def harnesses(self) -> Mapping[str, Path]:
        return built_in()

    def spec(self, context: Context) -> Spec:
        base, known = context.base.resolve(), self.harnesses()
        return Spec(
            factory="coevolve.benchmarks.textclass.text_classification:TextClassification",
            arguments={
                "sets": [str(base / name) if "/" in name else name for name in self.sets],
                "data": None if self.data is None else str(base / self.data),
                "starts": [n if n in known else str(base / n) for n in self.starts],
                "mode": self.mode,
            },
            folder=base,
        )
