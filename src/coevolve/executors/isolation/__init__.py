"""Isolation of candidate code: who starts it, how it is called, and what stops it."""

from coevolve.executors.isolation.base import Isolation, Launch
from coevolve.executors.isolation.bubblewrap import Bubblewrap
from coevolve.executors.isolation.execute import Executed
from coevolve.executors.isolation.faults import HarnessFault, SandboxError
from coevolve.executors.isolation.finding import find_isolation
from coevolve.executors.isolation.harness import Harness
from coevolve.executors.isolation.limits import Limits
from coevolve.executors.isolation.plain import PlainProcess

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
