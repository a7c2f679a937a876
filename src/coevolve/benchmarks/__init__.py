"""What a trial is.

`PLUGS` names the settings class of every built-in benchmark, which builds it.
"""

from coevolve.benchmarks.base import Benchmark, SealedBenchmark
from coevolve.benchmarks.command import CommandBenchmark
from coevolve.benchmarks.function import FunctionBenchmark, load_file

__all__ = [
    "PLUGS",
    "Benchmark",
    "CommandBenchmark",
    "FunctionBenchmark",
    "SealedBenchmark",
    "load_file",
]

PLUGS = {
    "function": "coevolve.benchmarks.benchmark_settings:FunctionSettings",
    "command": "coevolve.benchmarks.benchmark_settings:CommandSettings",
    "synthetic": "coevolve.benchmarks.synthetic.synthetic_settings:SyntheticSettings",
    "harbor": "coevolve.benchmarks.harbor.harbor_settings:HarborSettings",
    "textclass": "coevolve.benchmarks.textclass.textclass_settings:TextClassificationSettings",
}
