"""Evaluators: how each set extracts, normalises and compares an answer.

All of them read the answer with `final_answer` first. They do not understand chemistry or law: a
SMILES written in another way is wrong, and so is 盗窃罪 for 盗窃.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_FENCE = "```"
_OBJECT = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
"""Braces with at most one further level of braces between them."""


def final_answer(text: str) -> str:
    """The `final_answer` of a JSON object in an answer, or else the whole answer.

    A code fence at the beginning is removed first. The object is the whole text, or the first
    braces in it.

    >>> final_answer('{"reasoning": "It is wet.", "final_answer": "rain"}')
    'rain'
    >>> final_answer("rain")
    'rain'
    """
    if not text:
        return ""
    bare = _unfenced(text.strip())
    found = _field(bare)
    if found is None and (braces := _OBJECT.search(bare)):
        found = _field(braces.group())
    return text if found is None else found


def _field(text: str) -> str | None:
    """The field of a text that is a JSON object; None otherwise."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "final_answer" not in value:
        return None
    return str(value["final_answer"])


def _unfenced(text: str) -> str:
    """The contents of the fence at the beginning, or of the first one marked json."""
    if not text.startswith(_FENCE):
        return text
    lines = [line.strip() for line in text.splitlines()]
    marked = next((n for n, line in enumerate(lines) if line.startswith(f"{_FENCE}json")), None)
    if marked is not None and (inside := _until_fence(text.splitlines()[marked + 1 :])):
        return "\n".join(inside)
    parts = text.split(_FENCE)
    if len(parts) < 3:
        return text
    return parts[1].removeprefix("json").strip()


def _until_fence(lines: list[str]) -> list[str]:
    """The lines before the first closing fence."""
    ends = (n for n, line in enumerate(lines) if line.strip().startswith(_FENCE))
    return lines[: next(ends, len(lines))]


_OPEN = re.compile(r"\[DIAGNOSIS\]", re.IGNORECASE)
_CLOSE = re.compile(r"\[/DIAGNOSIS\]", re.IGNORECASE)
_ANNOUNCED = re.compile(r"(?:diagnosis|conclusion)[:：]\s*([^\n]+)", re.IGNORECASE)
_CHARGES, _END = "[罪名]", "<eoa>"
CHARGE_PREFIX = "罪名:"
"""The answers in the Law files begin with it; it does not belong to the label."""
_SEPARATORS = (";", "；", ",", "，", "、")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of an answer.

    Args:
        correct: Whether it scores 1 or 0.
        answer: The part of the answer that was compared.
        metrics: Further measures by name, for the record only.
    """

    correct: bool
    answer: str
    metrics: Mapping[str, float] = field(default_factory=dict)


Evaluator = Callable[[str, str], Verdict]
"""A function of an answer and the right answer."""


def evaluate_label(answer: str, gold: str) -> Verdict:
    """Equality of two labels, ignoring case, spaces and final punctuation.

    >>> evaluate_label(" Password  Reset.", "password reset").correct
    True
    """
    read = _label(final_answer(answer))
    return Verdict(correct=read == _label(gold), answer=read)


def evaluate_uspto(answer: str, gold: str) -> Verdict:
    """Equality of two sets of reactants: SMILES with dots between, in any order and case.

    >>> evaluate_uspto('{"final_answer": "CC(=O)O . cco"}', "CCO.CC(=O)O").correct
    True
    """
    given, right = _reactants(final_answer(answer)), _reactants(gold)
    either = given | right
    jaccard = len(given & right) / len(either) if either else 1.0
    return Verdict(
        correct=given == right, answer=".".join(sorted(given)), metrics={"jaccard": jaccard}
    )


def evaluate_s2d(answer: str, gold: str) -> Verdict:
    """Equality of two diagnoses, the given one between tags or after "diagnosis:".

    >>> evaluate_s2d("It itches. [DIAGNOSIS]Chicken  Pox.[/DIAGNOSIS]", "chicken pox").correct
    True
    """
    read = _diagnosis(_announced(final_answer(answer)))
    return Verdict(correct=read == _diagnosis(gold), answer=read)


def evaluate_law(answer: str, gold: str) -> Verdict:
    """Equality of two sets of charges.

    >>> evaluate_law("[罪名]诈骗;盗窃<eoa>", "盗窃;诈骗").correct
    True
    """
    given, right = _charges(answer), _charges(gold)
    hit, more, less = len(given & right), len(given - right), len(right - given)
    precision = hit / (hit + more) if given else 0.0
    recall = hit / (hit + less) if right else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hit else 0.0
    return Verdict(
        correct=given == right,
        answer=";".join(sorted(given)),
        metrics={
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "tp": hit,
            "fp": more,
            "fn": less,
        },
    )


def _label(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(" .,;:!?。！？")


def _reactants(smiles: str) -> set[str]:
    return {part.strip().lower() for part in smiles.split(".") if part.strip()}


def _announced(text: str) -> str:
    """The diagnosis that a text names, or else the whole text."""
    opening = _OPEN.search(text)
    if opening and (closing := _CLOSE.search(text, opening.end())):
        return text[opening.end() : closing.start()]
    line = _ANNOUNCED.search(text)
    return line[1] if line else text


def _diagnosis(text: str) -> str:
    return re.sub(r"\s+", " ", text.lower().strip()).rstrip(".!?")


def _charges(answer: str) -> set[str]:
    """The charges in an answer, split at the first kind of separator that occurs in it."""
    text = _stated(final_answer(answer).strip())
    text = re.sub(f"{_END}.*", "", text).strip()
    for separator in _SEPARATORS:
        if separator in text:
            return {part.strip() for part in text.split(separator) if part.strip()}
    return {text} if text else set()


def _stated(text: str) -> str:
    """The text between a mark and its end on the same line, or else after the last prefix."""
    place = text.find(_CHARGES)
    while place >= 0:
        start = place + len(_CHARGES)
        line_end = text.find("\n", start)
        last = len(text) if line_end < 0 else line_end
        end = text.find(_END, start, last)
        if end >= 0 or line_end < 0:
            return text[start : end if end >= 0 else last]
        place = text.find(_CHARGES, last)
    return text.rpartition(CHARGE_PREFIX)[2]
