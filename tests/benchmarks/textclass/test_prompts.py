"""What candidates are told of a set."""

import json

import pytest

from coevolve.benchmarks.textclass import task_texts as prompts
from coevolve.benchmarks.textclass.task_texts import MARKER, TaskText

WORDS = {
    "uspto": prompts.uspto(),
    "s2d": prompts.s2d(["allergy", "dengue"]),
    "law": prompts.law(),
    "labelled": prompts.labelled("Which one?", ["a", "b"]),
    "open": prompts.open_ended("Say it."),
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_a_template_has_the_question_in_one_place(words: TaskText) -> None:
    assert words.template.count(MARKER) == 1
    strange = "{question} \\1 {0} %s\n"
    assert words.prompt(strange) == words.template.replace(MARKER, "@").replace("@", strange)


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_words_are_plain_json(words: TaskText) -> None:
    assert json.loads(json.dumps(words.to_json())) == words.to_json()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("uspto", ("Retrosynthesis Problem:", '"reasoning"', '"final_answer"', "SMILES")),
        ("s2d", ("## Patient Symptoms", "[DIAGNOSIS]", "[/DIAGNOSIS]", "allergy, dengue")),
        ("law", ("## 案件事实", "[罪名]", "<eoa>", ";")),
        ("labelled", ("Which one?", "a, b")),
    ],
)
def test_the_published_form_of_the_answer_is_asked_for(name: str, parts: tuple[str, ...]) -> None:
    assert all(part in WORDS[name].template for part in parts)


def test_labels_in_capitals_or_with_markers_stay_what_they_are() -> None:
    words = prompts.labelled("INSTRUCTIONS for {question} and LABELS", ["LABELS", "INSTRUCTIONS"])
    assert words.template.startswith("INSTRUCTIONS for (question) and LABELS\n")
    assert "one of these: LABELS, INSTRUCTIONS." in words.template
    assert words.template.count(MARKER) == 1
