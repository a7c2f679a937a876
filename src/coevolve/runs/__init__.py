"""A run from one TOML file: its configuration, its parts, and the run on disk."""

from coevolve.runs.building import benchmark_spec, build_benchmark, build_proposer
from coevolve.runs.config import RunConfig, read_config

__all__ = ["RunConfig", "benchmark_spec", "build_benchmark", "build_proposer", "read_config"]
