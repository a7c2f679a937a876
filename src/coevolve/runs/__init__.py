"""A run from one TOML file: its configuration, and what it plugs together."""

from coevolve.runs.building import benchmark_spec, build_benchmark
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.proposer import build_proposer

__all__ = ["RunConfig", "benchmark_spec", "build_benchmark", "build_proposer", "read_config"]
