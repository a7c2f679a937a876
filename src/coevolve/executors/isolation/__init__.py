"""Isolation of candidate code: how it is started, called, limited and stopped."""

from coevolve.executors.isolation.bubblewrap import Bubblewrap
from coevolve.executors.isolation.detection import find_isolation
from coevolve.executors.isolation.execution import Executed
from coevolve.executors.isolation.harness_calls import Harness
from coevolve.executors.isolation.interruption import CallInterrupted
from coevolve.executors.isolation.launch import (
    HarnessFault,
    Isolation,
    Launch,
    Limits,
    Program,
    SandboxError,
)
from coevolve.executors.isolation.plain_process import PlainProcess
from coevolve.executors.isolation.service_calls import AskAbandoned, ServedAsk, current_ask

__all__ = [
    "AskAbandoned",
    "Bubblewrap",
    "CallInterrupted",
    "Executed",
    "Harness",
    "HarnessFault",
    "Isolation",
    "Launch",
    "Limits",
    "PlainProcess",
    "Program",
    "SandboxError",
    "ServedAsk",
    "current_ask",
    "find_isolation",
]
