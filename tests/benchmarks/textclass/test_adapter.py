"""A candidate written for Meta-Harness's `MemorySystem` runs as it is."""

import json

import pytest

from coevolve.benchmarks.textclass.inside.text_classification.memory_system import (
    extract_json_field,
)
from coevolve.executors.isolation import HarnessFault
from tests.benchmarks.textclass.lives import TASK, alive

SYSTEM = """
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..llm import LLMCallable
from ..memory_system import MemorySystem, extract_json_field


class Candidate(MemorySystem):
    def __init__(self, llm: LLMCallable):
        super().__init__(llm)
        self.seen: list[dict[str, Any]] = []

    def predict(self, input: str) -> tuple[str, dict[str, Any]]:
        with ThreadPoolExecutor(max_workers=3) as pool:
            answers = list(pool.map(self.call_llm, [input, input + "!"]))
        self.call_llm(input)
        return extract_json_field(answers[0], "final_answer"), self.get_last_prompt_info()

    def learn_from_batch(self, batch_results: list[dict[str, Any]]) -> None:
        self.seen += batch_results

    def get_state(self) -> str:
        return json.dumps({"seen": self.seen})

    def set_state(self, state: str) -> None:
        self.seen = json.loads(state)["seen"]
"""


def test_it_sees_the_whole_task_and_gives_the_field_of_its_answer() -> None:
    with alive(SYSTEM, answer=lambda request: '{"final_answer": "dog"}') as life:
        assert life.call("describe") == {"class": "Candidate", "interface": "memory-system"}
        assert life.predict("It barks.") == "dog"
        assert set(life.prompts) == {"Name it: It barks.", "Name it: It barks.!"}


def test_absolute_imports_work_too() -> None:
    absolute = SYSTEM.replace("from ..", "from text_classification.")
    with alive(absolute) as life:
        assert life.predict("It barks.") == ""


def test_offline_the_right_answer_counts_as_predicted() -> None:
    with alive(SYSTEM) as life:
        life.learn(("It barks.", "dog"))
        assert json.loads(life.call("state"))["seen"] == [
            {
                "input": "Name it: It barks.",
                "prediction": "dog",
                "ground_truth": "dog",
                "was_correct": True,
                "raw_question": "It barks.",
            }
        ]


def test_online_it_learns_what_it_said_with_its_metadata() -> None:
    with alive(SYSTEM) as life:
        life.predict("It barks.")
        said = {"question": "It barks.", "answer": "dog", "prediction": "cat", "correct": False}
        life.call("learn", said)
        [seen] = json.loads(life.call("state"))["seen"]
        assert (seen["prediction"], seen["was_correct"]) == ("cat", False)
        assert seen["metadata"]["prompt_len"] == len("Name it: It barks.")


def test_its_state_is_a_text_that_restores_it() -> None:
    with alive(SYSTEM) as life:
        life.learn(("It barks.", "dog"))
        state = life.call("state")
        assert isinstance(state, str)
        life.call("begin", TASK, state, "again")
        assert life.call("state", "again") == state


def test_a_class_derived_from_an_imported_system_is_the_one_that_is_found() -> None:
    derived = """
from .fewshot_memory import FewShotMemory

class Last(FewShotMemory):
    def predict(self, input):
        return self.examples[-1]["target"], {}
"""
    with alive(derived) as life:
        assert life.call("describe") == {"class": "Last", "interface": "memory-system"}
        life.learn(("It barks.", "dog"))
        assert life.predict("?") == "dog"


def test_the_two_published_starting_systems_are_there_to_derive_from() -> None:
    source = """
from text_classification.agents.fewshot_all import FewShotAll
from text_classification.agents.no_memory import NoMemory

class Both(FewShotAll):
    def predict(self, input):
        return NoMemory(self.call_llm).predict(input)[0] + super().predict(input)[0], {}
"""
    with alive(source, answer=lambda request: '{"final_answer": "dog"}') as life:
        life.learn(("It barks.", "dog"), ("It purrs.", "cat"))
        assert life.predict("It meows.") == "dogdog"
        zero_shot, few_shot = life.prompts
        assert "It barks." not in zero_shot
        assert "Q: It barks.\nA: dog" in few_shot
        assert life.predict("It meows.") == "dogdog"
        assert life.prompts[2:] == [zero_shot, few_shot]


def test_a_file_of_the_candidate_comes_before_a_stand_in() -> None:
    own = SYSTEM.replace("class Candidate", "class FewShotMemory")
    derived = "from .fewshot_memory import FewShotMemory\nclass Mine(FewShotMemory):\n    pass\n"
    with alive({"harness.py": derived, "fewshot_memory.py": own}) as life:
        assert json.loads(life.call("state")) == {"seen": []}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"final_answer"), self.get_last_prompt_info()', '"final_answer")', "answer, metadata"),
        ('json.dumps({"seen": self.seen})', "self.seen", "get_state must return a string"),
        ("from ..llm", "from ..model", "ModuleNotFoundError.*harness.py, line 6"),
    ],
)
def test_what_breaks_its_interface_is_said(old: str, new: str, words: str) -> None:
    with pytest.raises(HarnessFault, match=words), alive(SYSTEM.replace(old, new)) as life:
        life.predict("?")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"final_answer": "dog"}', "dog"),
        ('{"final_answer": 5}', "5"),
        ('Well.\n```json\n{"final_answer": "dog"}\n```\nDone.', "dog"),
        ('So: {"a": {"b": "}"}, "final_answer": "dog",} and {"final_answer": "cat"}', "dog"),
        ('{"other": 1} {"final_answer": "dog"}', "none"),
        ('"final_answer": "cat" no, "final_answer": "dog', "cat"),
        ('{"final_answer": "dog" "reasoning"}', "dog"),
        ("dog", "none"),
        ("[1]", "none"),
        ("", "none"),
    ],
)
def test_a_field_is_found_in_what_models_write(text: str, value: str) -> None:
    assert extract_json_field(text, "final_answer", "none") == value
