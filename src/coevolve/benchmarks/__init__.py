"""What a trial is."""

from coevolve.benchmarks.base import Benchmark, SealedBenchmark
from coevolve.benchmarks.command import CommandBenchmark
from coevolve.benchmarks.conformance import Finding, assert_benchmark, check_benchmark
from coevolve.benchmarks.function import FunctionBenchmark, load_file

__all__ = [
    "Benchmark",
    "CommandBenchmark",
    "Finding",
    "FunctionBenchmark",
    "SealedBenchmark",
    "assert_benchmark",
    "check_benchmark",
    "load_file",
]
