"""The frame around a harness: the functions that the benchmark calls in the sandbox.

Errors are reported with the file and line of the candidate. Nothing outside relies on this code,
because the candidate runs in the same process and can change it.
"""

from __future__ import annotations

import json

from coevolve.benchmarks.textclass.inside.harness_class import Adapter, harness_class
from coevolve.benchmarks.textclass.inside.interface import (
    Example,
    InterfaceError,
    Model,
    Task,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Memory:
    """A harness for the questions of one pool; only `learn` changes what it knows."""

    def __init__(self, task: Task, state: object) -> None:
        self._task = task
        self._harness: Any = self._made(state)
        self._frozen: str | None = None

    def learn(self, example: Example) -> None:
        """Let the harness learn an example."""
        self._frozen = None
        self._harness.learn(example)

    def predict(self, question: str) -> str:
        """The answer of the harness; a change of its state is undone."""
        if self._frozen is None:
            self._frozen = self.text()
        answer = self._harness.predict(question)
        if not isinstance(answer, str):
            raise InterfaceError(f"predict must return a string, got {shown(answer)}")
        now = self.text()
        if now != self._frozen and json.loads(now) != json.loads(self._frozen):
            self._harness = self._made(json.loads(self._frozen))
        return answer

    def text(self) -> str:
        """What the harness knows, as JSON."""
        state = self._harness.state()
        try:
            return json.dumps(state, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InterfaceError(f"state() must return plain JSON: {error}") from error

    def _made(self, state: object) -> object:
        kind, native = harness_class()
        harness: Any = kind(Model(), self._task) if native else Adapter(kind, Model(), self._task)
        if state is not None:
            harness.restore(state)
        return harness


_memories: dict[str, Memory] = {}


def describe() -> dict[str, str]:
    """The name of the harness class, and which interface it is written for."""
    kind, native = harness_class()
    return {"class": kind.__name__, "interface": "native" if native else "memory-system"}


def begin(task: dict[str, Any], state: object = None, pool: str = "") -> None:
    """Make a harness for a pool, from a state if one is given."""
    _memories.pop(pool, None)
    _memories[pool] = Memory(Task(**task), state)


def learn(example: dict[str, Any], pool: str = "") -> None:
    """Show the harness of a pool an example with its answer."""
    _memory(pool).learn(Example(**example))


def state(pool: str = "") -> Any:
    """What the harness of a pool knows, as JSON."""
    return json.loads(_memory(pool).text())


def predict(question: str, pool: str = "") -> str:
    """The answer of the harness of a pool, which learns nothing from it."""
    return _memory(pool).predict(question)


def _memory(pool: str) -> Memory:
    if pool not in _memories:
        raise LookupError(f"begin was not called for pool {pool!r} in this process")
    return _memories[pool]
