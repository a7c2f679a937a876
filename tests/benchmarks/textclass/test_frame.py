"""The frame finds the one harness, gives it what it needs, and keeps its memory as it was."""

import ast
import sys
from typing import Any

import pytest

from coevolve.benchmarks.textclass.harness_files import frame_source
from coevolve.executors.isolation import HarnessFault
from tests.benchmarks.textclass.lives import OPEN, TASK, alive

LIST = """
class Lister:
    def __init__(self, model, task):
        self.model, self.task, self.seen = model, task, []

    def learn(self, example):
        self.seen.append(example.answer)

    def predict(self, question):
        return " ".join(self.seen)

    def state(self):
        return self.seen

    def restore(self, state):
        self.seen = state
"""


def test_the_frame_needs_the_standard_library_alone() -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(frame_source())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    assert names - {"coevolve_host"} <= sys.stdlib_module_names


def test_it_learns_and_answers() -> None:
    with alive(LIST) as life:
        assert life.call("describe") == {"class": "Lister", "interface": "native"}
        life.learn(("It barks.", "dog"), ("It purrs.", "cat"))
        assert life.predict("It barks?") == "dog cat"
        assert life.call("state") == ["dog", "cat"]


def test_a_state_makes_another_instance_know_the_same() -> None:
    with alive(LIST, None) as life:
        life.call("begin", TASK, ["dog"], "b")
        assert life.predict("?", "b") == "dog"


def test_every_pool_has_an_instance_of_its_own() -> None:
    with alive(LIST, None) as life:
        life.call("begin", TASK, None, "a")
        life.call("begin", TASK, None, "b")
        life.learn(("It barks.", "dog"), pool="a")
        assert (life.predict("?", "a"), life.predict("?", "b")) == ("dog", "")


def test_a_new_process_has_no_instance() -> None:
    with alive(LIST) as life:
        life.predict("?")
        life.harness.end_trial()
        with pytest.raises(HarnessFault, match="begin was not called for pool ''"):
            life.predict("?")


MANY = """
from abc import ABC, abstractmethod
from collections import Counter as learn_and_predict
from helper import Other

class Abstract(ABC):
    @abstractmethod
    def learn(self, example): ...
    @abstractmethod
    def predict(self, question): ...

class Mine(Abstract):
    def __init__(self, model, task): ...
    def learn(self, example): ...
    def predict(self, question): return "mine"
    def state(self): return None
    def restore(self, state): ...

Alias = Mine

class NoHarness:
    def predict(self, question): return "wrong"
"""
HELPER = """
class Other:
    def learn(self, example): ...
    def predict(self, question): return "wrong"
"""


def test_imported_abstract_and_other_classes_are_no_harness() -> None:
    with alive({"harness.py": MANY, "helper.py": HELPER}) as life:
        assert life.call("describe")["class"] == "Mine"
        assert life.predict("?") == "mine"


def test_the_harness_may_be_derived_from_a_class_of_another_file() -> None:
    derived = "from .helper import Base\nclass Mine(Base):\n    pass\n"
    helper = LIST.replace("Lister", "Base")
    with alive({"harness.py": derived, "helper.py": helper}) as life:
        assert life.call("describe")["class"] == "Mine"


UNFINISHED = """
from ..memory_system import MemorySystem


class Half(MemorySystem):
    def predict(self, input):
        return "", {}

    def learn_from_batch(self, batch_results):
        pass
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1", "harness.py defines no harness class"),
        ("def predict(question): return ''", "harness.py defines no harness class"),
        (UNFINISHED, "no harness class.*; Half lacks get_state, set_state"),
        (LIST + LIST.replace("Lister", "Another"), r"2 harness classes \(Another, Lister\)"),
    ],
)
def test_none_or_several_are_refused_by_name(source: str, words: str) -> None:
    with alive(source, None) as life, pytest.raises(HarnessFault, match=words) as refused:
        life.call("describe")
    assert refused.value.kind == "InterfaceError"


FORGETFUL = LIST.replace('return " ".join', "self.seen.append(question); return ' '.join")


def test_predictions_change_nothing_that_is_known() -> None:
    with alive(FORGETFUL) as life:
        life.learn(("It barks.", "dog"))
        assert [life.predict("a"), life.predict("b"), life.predict("a")] == [
            "dog a",
            "dog b",
            "dog a",
        ]
        assert life.call("state") == ["dog"]


def test_learning_goes_on_after_predictions() -> None:
    with alive(FORGETFUL) as life:
        life.learn(("It barks.", "dog"))
        life.predict("a")
        life.learn(("It purrs.", "cat"))
        assert life.call("state") == ["dog", "cat"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('return " ".join(self.seen)', "return 5", "predict must return a string, got int 5"),
        ("return self.seen", "return {1j: 2}", r"state\(\) must return plain JSON"),
        ("return self.seen", "return float('nan')", r"state\(\) must return plain JSON"),
        ('return " ".join', "return ' '.joined", r"AttributeError.*\(harness.py, line 10"),
        ('return " ".join', "self.model(5); ' '.join", r"got int 5 \(harness.py, line 10"),
        ('return " ".join', "self.model.choose('a', []); ' '.join", "choices must be a list of"),
        ('return " ".join', "self.model.choose('a', 'bc'); ' '.join", "choices must be a list of"),
    ],
)
def test_what_breaks_the_interface_is_said_with_its_place(old: str, new: str, words: str) -> None:
    with alive(LIST.replace(old, new)) as life, pytest.raises(HarnessFault, match=words):
        life.predict("?")


def asker(expression: str) -> str:
    return LIST.replace('return " ".join(self.seen)', f"return str({expression})")


@pytest.mark.parametrize(
    ("expression", "request_"),
    [
        ("self.model('a')", {"prompt": "a"}),
        (
            "self.model([{'role': 'user', 'content': 'a'}])",
            {"messages": [{"role": "user", "content": "a"}]},
        ),
        (
            "self.model('a', max_tokens=3, temperature=0.5, stop=['b'], sample=2)",
            {"prompt": "a", "max_tokens": 3, "temperature": 0.5, "stop": ["b"], "sample": 2},
        ),
        ("self.model.choose('a', ['x', 'y', 'x'])", {"prompt": "a", "choices": ["x", "y"]}),
        (
            "self.model.scores('a', ('x', 'y'))",
            {"prompt": "a", "choices": ["x", "y"], "scores": True},
        ),
    ],
)
def test_the_model_is_asked_what_the_harness_asks(
    expression: str, request_: dict[str, Any]
) -> None:
    with alive(asker(expression)) as life:
        life.predict("?")
        assert life.asked == [request_]


def test_the_model_says_what_it_is() -> None:
    facts = "[self.model.window, self.model.gives_scores, self.model.count('a b c')]"
    with alive(asker(facts), window=None, gives_scores=False) as life:
        assert life.predict("?") == "[None, False, 3]"


def test_the_task_is_put_into_words_around_the_question() -> None:
    with alive(asker("self.task.prompt(question) + str(self.task.labels)")) as life:
        assert life.predict("{question} {0}") == "Name it: {question} {0}['cat', 'dog']"
        life.call("begin", {"instructions": "Say.", "labels": None})
        assert life.predict("a") == "Say.\n\naNone"


def test_online_examples_tell_what_was_predicted() -> None:
    told = LIST.replace("example.answer", "[example.prediction, example.correct]")
    with alive(told, OPEN) as life:
        life.learn(("a", "dog"))
        example = {"question": "b", "answer": "dog", "prediction": "cat", "correct": False}
        life.call("learn", example)
        assert life.call("state") == [[None, None], ["cat", False]]
