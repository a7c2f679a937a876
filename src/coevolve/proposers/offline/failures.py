"""The failures of a candidate, read in its traces and in the outcomes of others."""

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from coevolve.proposers.base import Standing, View
from coevolve.proposers.offline.recipe import Recipe

MOST = 30
"""Failures of a candidate that are looked at."""
MANY = 12
"""Labels: if a prompt has all of so many, it lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A task that a candidate failed.

    Args:
        said: Its answer, in plain letters.
        right: The right one.
        choices: What the model could choose from, in plain letters.
        offered: Whether the right answer was among the choices.
        shown: Whether it was in a prompt, beyond a list of all labels.
        similar: Whether most candidates that go by similar examples solved the task.
    """

    said: str
    right: str
    choices: frozenset[str]
    offered: bool
    shown: bool
    similar: bool


def failures(view: View, standing: Standing) -> list[Failure]:
    """The failures of a candidate whose traces can be read."""
    failed = [task for task in view.tasks if standing.outcomes.get(task) == 0.0]
    failed = failed[:: -(-len(failed) // MOST) or 1]  # of every set, where there are several
    guided = [other for other in view.standings if _goes_by_examples(other)]
    found = []
    for task in failed:
        trace = _trace(view, standing.candidate.name, task)
        if trace is not None:
            found.append(_failure(trace, similar=_solved(task, guided)))
    return found


def known(failed: Collection[Failure]) -> set[str]:
    """The labels that failures tell of."""
    return {failure.right for failure in failed}.union(*(f.choices for f in failed))


def outside(failed: Collection[Failure]) -> int:
    """Failures with an answer that is no known label."""
    labels = known(failed)
    return sum(failure.said not in labels for failure in failed)


def repeated(failed: Collection[Failure]) -> int:
    """Failures with the answer that is given most often; 0 where there are too few to tell."""
    said = Counter(failure.said for failure in failed)
    return max(said.values()) if len(failed) > 3 else 0


def mixed(failed: Collection[Failure]) -> int:
    """Failures with a pair of labels that occurs more than once, either way round."""
    labels = known(failed)
    pairs = Counter(frozenset((f.said, f.right)) for f in failed if f.said in labels)
    return sum(count for count in pairs.values() if count > 1)


def _failure(trace: dict[str, Any], *, similar: bool) -> Failure:
    listed = trace.get("calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    prompts = [call["prompt"] for call in calls if isinstance(call.get("prompt"), str)]
    choices = frozenset(
        _plain(choice)
        for call in calls
        if isinstance(call.get("choices"), list)
        for choice in call["choices"]
    )
    right = _plain(trace["gold"])
    return Failure(
        said=_plain(trace["answer"]),
        right=right,
        choices=choices,
        offered=right in choices,
        shown=any(_shown(trace["gold"], prompt, choices) for prompt in prompts),
        similar=similar,
    )


def _shown(right: str, prompt: str, choices: frozenset[str]) -> bool:
    """Whether a prompt has an example with the right answer; a list of all labels is none."""
    text, answer = _plain(prompt), _plain(right)
    listed = min(text.count(choice) for choice in choices) if len(choices) > MANY else 0
    return text.count(answer) > listed


def _trace(view: View, name: str, task: str) -> dict[str, Any] | None:
    """A trace of a trial that gave a wrong answer; None for any other."""
    text = view.trace(name, task)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    trace = found.get("trace") if isinstance(found, dict) else None  # beside what was printed
    if not isinstance(trace, dict):
        return None
    return trace if all(isinstance(trace.get(key), str) for key in ("answer", "gold")) else None


def _goes_by_examples(standing: Standing) -> bool:
    recipe = Recipe.of(standing.candidate.components)
    return recipe is not None and recipe.compares


def _solved(task: str, standings: list[Standing]) -> bool:
    scores = [standing.outcomes.get(task) for standing in standings]
    told = [score for score in scores if isinstance(score, float)]
    return bool(told) and sum(told) > len(told) / 2


def _plain(text: object) -> str:
    return " ".join(str(text).casefold().split()).strip(".!? ")
