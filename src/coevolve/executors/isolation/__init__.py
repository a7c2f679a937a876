"""Isolation of candidate code: who starts it, how it is called, and what stops it."""

from coevolve.executors.isolation.bubblewrap import Bubblewrap
from coevolve.executors.isolation.detection import find_isolation
from coevolve.executors.isolation.execution import Executed
from coevolve.executors.isolation.harness_calls import Harness
from coevolve.executors.isolation.launch import (
    HarnessFault,
    Isolation,
    Launch,
    Limits,
    SandboxError,
)
from coevolve.executors.isolation.plain_process import PlainProcess

__all__ = [
    "Bubblewrap",
    "Executed",
    "Harness",
    "HarnessFault",
    "Isolation",
    "Launch",
    "Limits",
    "PlainProcess",
    "SandboxError",
    "find_isolation",
]
