"""Isolation of candidate code: how it is started, called, limited and stopped."""

from coevolve.executors.isolation.bubblewrap import Bubblewrap
from coevolve.executors.isolation.detection import find_isolation
from coevolve.executors.isolation.execution import Executed
from coevolve.executors.isolation.harness_calls import Harness
from coevolve.executors.isolation.launch import (
    HarnessFault,
    Isolation,
    Launch,
    Limits,
    Program,
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
    "Program",
    "SandboxError",
    "find_isolation",
]
