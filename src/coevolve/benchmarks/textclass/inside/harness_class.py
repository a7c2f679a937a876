"""The one harness class in a candidate's file, native or written for Meta-Harness."""

from __future__ import annotations

import sys

from coevolve.benchmarks.textclass.inside.interface import (
    Example,
    InterfaceError,
    Model,
    Task,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

HOME = "text_classification.agents"
STAND_INS: dict[str, str] = {}
"""Sources of modules that candidates for Meta-Harness import; `frame_source` fills it in."""

_loaded: dict[str, ModuleType] = {}


def load(name: str) -> ModuleType:
    """Import the candidate as part of the package that its relative imports expect."""
    package, _, folder = HOME.partition(".")
    _make_package(package, [])
    setattr(sys.modules[package], folder, _make_package(HOME, sys.path[:1]))
    sys.meta_path.append(StandIns())  # type: ignore[arg-type]
    module = __import__(f"{HOME}.{name}", fromlist=["*"])
    _loaded["candidate"] = sys.modules[name] = module
    return module


def harness_class() -> tuple[type, bool]:
    """The harness class that the candidate's file defines, and whether it is a native one.

    Imported and abstract classes do not count.
    """
    module = _loaded["candidate"]
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    own = dict.fromkeys(kind for kind in classes if kind.__module__ == module.__name__)
    found = [kind for kind in own if _is_harness(kind)]
    if len(found) != 1:
        names = ", ".join(sorted(kind.__name__ for kind in found))
        many = f"{len(found)} harness classes ({names})" if found else "no harness class"
        raise InterfaceError(
            f"{_file_name(module)} defines {many}; it must define exactly one class with the "
            f"methods learn and predict{'' if found else _unfinished(own)}"
        )
    return found[0], not _is_memory_system(found[0])


class StandIns:
    """Imports the modules in `STAND_INS`, after all other importers."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """The spec of a module, if it is a stand-in."""
        if name not in STAND_INS:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: object) -> None:
        """Use Python's default."""

    def exec_module(self, module: ModuleType) -> None:
        """Run its source."""
        source = STAND_INS[module.__name__]
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)


def _is_harness(kind: type) -> bool:
    if getattr(kind, "__abstractmethods__", None):
        return False
    native = all(callable(getattr(kind, name, None)) for name in ("learn", "predict"))
    return native or _is_memory_system(kind)


def _unfinished(classes: Iterable[type]) -> str:
    """The methods that the abstract classes lack."""
    lacking = {kind.__name__: getattr(kind, "__abstractmethods__", None) for kind in classes}
    return "".join(
        f"; {name} lacks {', '.join(sorted(its))}" for name, its in lacking.items() if its
    )


def _is_memory_system(kind: type) -> bool:
    return any(base.__module__ == f"{HOME.split('.')[0]}.memory_system" for base in kind.__mro__)


def _make_package(name: str, folders: list[str]) -> ModuleType:
    module: Any = type(sys)(name)
    module.__path__ = folders
    sys.modules[name] = module
    return module  # type: ignore[no-any-return]


def _file_name(module: ModuleType) -> str:
    return (module.__file__ or module.__name__).rsplit("/", 1)[-1]


class Adapter:
    """A memory system of Meta-Harness behind the interface of harnesses."""

    def __init__(self, kind: type, model: Model, task: Task) -> None:
        self._system: Any = kind(llm=model)
        self._task = task
        self._metadata: dict[str, object] = {}

    def learn(self, example: Example) -> None:
        """Pass on a batch of one example; offline, the answer counts as predicted."""
        offline = example.prediction is None
        result: dict[str, object] = {
            "input": self._task.prompt(example.question),
            "prediction": example.answer if offline else example.prediction,
            "ground_truth": example.answer,
            "was_correct": True if offline else bool(example.correct),
            "raw_question": example.question,
        }
        if not offline:
            result["metadata"] = self._metadata.pop(example.question, {})
        self._metadata.clear()
        self._system.learn_from_batch([result])

    def predict(self, question: str) -> str:
        """The answer to the full text of the task."""
        given = self._system.predict(self._task.prompt(question))
        if not (isinstance(given, tuple) and len(given) == 2):
            raise InterfaceError(f"predict must return (answer, metadata), got {shown(given)}")
        answer, self._metadata[question] = given
        return answer  # type: ignore[no-any-return]

    def state(self) -> str:
        """The state as a text."""
        state = self._system.get_state()
        if not isinstance(state, str):
            raise InterfaceError(f"get_state must return a string, got {shown(state)}")
        return state

    def restore(self, state: str) -> None:
        """Take over a state."""
        self._system.set_state(state)
