"""The texts of a set: instructions, labels, and the full text of a question.

These texts are sent into the sandbox. They rephrase the published prompts of the three sets, with
the same tags around the answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MARKER = "{question}"
"""The place of the question in a template."""

RETROSYNTHESIS = "Given a product and the type of its last reaction, name the reactants as SMILES."
DIAGNOSIS = "Name the disease that best explains the symptoms a patient describes."
CHARGES = "阅读案件事实，判断被告人触犯的罪名。"
LABEL = "Say which label fits the text."

RETROSYNTHESIS_TEMPLATE = """\
You are an experienced organic chemist who plans syntheses backwards, from the product.

Retrosynthesis Problem:
{question}

How to go about it:
- Look for the functional groups of the product.
- Let the reaction type tell you which bond was made or which group was changed.
- Take the product apart step by step.
- Settle on the precursors that a chemist would most likely have used.
- Write the reactants as SMILES, with a dot (.) between two of them.
- Leave out atom-map numbers.

Answer with one JSON object that has two keys: "reasoning", in fewer than 200 words, and
"final_answer", the SMILES of the reactants and nothing else. For example:
{"reasoning": "The ester comes from ...", "final_answer": "CCO.CC(=O)O"}"""

DIAGNOSIS_TEMPLATE = """\
You are an experienced diagnostician. A patient describes symptoms; find the diagnosis.

It is one of these: LABELS.

Think it through step by step, and end with the diagnosis between tags:
[DIAGNOSIS]name of the diagnosis[/DIAGNOSIS]

For example: The thirst and the weight loss ... [DIAGNOSIS]diabetes[/DIAGNOSIS]

## Patient Symptoms
{question}"""

CHARGES_TEMPLATE = """\
你是一名审理刑事案件的法官。请根据下面的案件事实先作分析，再认定罪名，并把罪名写在[罪名]和<eoa>之间。

写法举例：
- 只有一个罪名：[罪名]盗窃<eoa>
- 有几个罪名，用分号隔开：[罪名]盗窃;诈骗<eoa>

## 案件事实
{question}"""

LABEL_TEMPLATE = """\
INSTRUCTIONS

The label is one of these: LABELS.
The answer is the label alone.

Text: {question}
Label:"""

OPEN_TEMPLATE = """\
INSTRUCTIONS

{question}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskText:
    """The texts of a set.

    Args:
        instructions: What is asked for, in a sentence or two.
        labels: All possible answers, or None where they are not known.
        template: The full text of a task, with the question at `MARKER`.

    >>> labelled("Which animal is it?", ["cat", "dog"]).prompt("It barks.").splitlines()[-2:]
    ['Text: It barks.', 'Label:']
    """

    instructions: str
    labels: tuple[str, ...] | None
    template: str

    def prompt(self, question: str) -> str:
        """The full text of the task for one question."""
        return self.template.replace(MARKER, question, 1)

    def to_json(self) -> dict[str, Any]:
        """The argument of the frame in the sandbox; it has no question and no answer."""
        return {
            "instructions": self.instructions,
            "labels": None if self.labels is None else list(self.labels),
            "template": self.template,
        }


def labelled(instructions: str, labels: Sequence[str]) -> TaskText:
    """The texts of a set with known labels."""
    template = LABEL_TEMPLATE.replace("LABELS", ", ".join(labels))
    return TaskText(
        instructions=instructions,
        labels=tuple(labels),
        template=_inserted(template, instructions),
    )


def open_ended(instructions: str) -> TaskText:
    """The texts of a set with open answers."""
    template = _inserted(OPEN_TEMPLATE, instructions)
    return TaskText(instructions=instructions, labels=None, template=template)


def uspto() -> TaskText:
    """The texts of the USPTO set."""
    return TaskText(instructions=RETROSYNTHESIS, labels=None, template=RETROSYNTHESIS_TEMPLATE)


def s2d(labels: Sequence[str]) -> TaskText:
    """The texts of the Symptom2Disease set."""
    template = DIAGNOSIS_TEMPLATE.replace("LABELS", ", ".join(labels))
    return TaskText(instructions=DIAGNOSIS, labels=tuple(labels), template=template)


def law() -> TaskText:
    """The texts of the Law set."""
    return TaskText(instructions=CHARGES, labels=None, template=CHARGES_TEMPLATE)


def _inserted(template: str, instructions: str) -> str:
    """The template with the instructions, in which a marker is replaced."""
    return template.replace("INSTRUCTIONS", instructions.replace(MARKER, "(question)"), 1)
