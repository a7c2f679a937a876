"""Conformance checks for plugs of your own, and executors that fail on purpose.

`assert_benchmark`, `assert_proposer`, `assert_executor` and `assert_model` are for your tests;
`check_...` return the same findings as a list.
"""

from coevolve.findings import Finding
from coevolve.testing.benchmark_checks import assert_benchmark, check_benchmark
from coevolve.testing.executor_checks import assert_executor, check_executor
from coevolve.testing.fault_injection import FaultyExecutor
from coevolve.testing.model_checks import assert_model, check_model
from coevolve.testing.proposer_checks import (
    assert_proposer,
    check_proposer,
    propose_once,
    sample_views,
)

__all__ = [
    "FaultyExecutor",
    "Finding",
    "assert_benchmark",
    "assert_executor",
    "assert_model",
    "assert_proposer",
    "check_benchmark",
    "check_executor",
    "check_model",
    "check_proposer",
    "propose_once",
    "sample_views",
]
