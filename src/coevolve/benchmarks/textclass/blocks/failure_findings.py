"""What the failures of a candidate have in common, and which blocks may remedy them."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coevolve.benchmarks.textclass.blocks.text_recipe import SCORED, SLOTS, TextRecipe
from coevolve.proposers.offline.building_blocks import Finding
from coevolve.search.proposal import Standing, View

SHARE = 0.25
"""The least share of failures that makes a finding."""
FEW = 3
"""Added to the number of failures, so that a share of few failures weighs less."""
MOST = 30
"""Failures of a candidate that are read, at most."""
MANY = 12
"""A prompt that contains more labels than this lists all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A task that a candidate failed.

    Args:
        said: Its answer, in plain letters.
        right: The right answer.
        choices: The labels that the model could choose from, in plain letters.
        offered: Whether the right answer was one of them.
        shown: Whether the right answer was in a prompt, beyond a list of all labels.
        similar: Whether most candidates that use similar examples solved the task.
    """

    said: str
    right: str
    choices: frozenset[str]
    offered: bool
    shown: bool
    similar: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to look for in the failures of a recipe.

    Args:
        applies: Whether the rule makes sense for a recipe.
        counts: How many of some failures are of this kind.
        says: The finding in words.
        remedies: Blocks that may help, with what they do in words.
        faith: How likely the remedies are to help, as a factor of the share.
    """

    applies: Callable[[TextRecipe], bool]
    counts: Callable[[Collection[Failure]], int]
    says: str
    remedies: Mapping[tuple[str, str], str]
    faith: float = 1.0


def _labels(failed: Collection[Failure]) -> set[str]:
    """The labels that occur in failures."""
    return {failure.right for failure in failed}.union(*(f.choices for f in failed))


def _outside(failed: Collection[Failure]) -> int:
    """Failures with an answer that is not a known label."""
    labels = _labels(failed)
    return sum(failure.said not in labels for failure in failed)


def _repeated(failed: Collection[Failure]) -> int:
    """Failures with the most common answer; 0 where there are too few to tell."""
    said = Counter(failure.said for failure in failed)
    return max(said.values()) if len(failed) > 3 else 0


def _mixed(failed: Collection[Failure]) -> int:
    """Failures with a pair of labels that was mixed up more than once, either way round."""
    labels = _labels(failed)
    pairs = Counter(frozenset((f.said, f.right)) for f in failed if f.said in labels)
    return sum(count for count in pairs.values() if count > 1)


def _not_shown(failed: Collection[Failure]) -> int:
    return sum(not failure.shown for failure in failed)


def _similar(failed: Collection[Failure]) -> int:
    return sum(failure.similar for failure in failed)


_SAY = "similar examples get a vote"
_MORE = "similar examples get more weight"
_OTHERS = "Other candidates that use similar examples are right where {name} is wrong, on {share}"
RULES = (
    Rule(
        applies=lambda recipe: recipe.ask == "free",
        counts=_outside,
        says="{name} answers outside the labels on {share}",
        remedies={
            ("ask", "choose"): "the answer must be one of the labels",
            ("ask", "standardised"): "labels are compared by their scores",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.ask in ("choose", "scores"),
        counts=_repeated,
        says="{name} gives the same answer on {share}",
        remedies={
            ("ask", "standardised"): "each label is measured on its own scale",
            ("ask", "calibrated"): "labels lose the score they get after any question",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.shortlist != "all",
        counts=lambda failed: sum(not failure.offered for failure in failed),
        says="The shortlist of {name} lacks the right label on {share}",
        remedies={
            ("shortlist", "12"): "it is made longer",
            ("shortlist", "all"): "all labels stay in",
            ("like", "pieces"): "pieces of words are compared for it",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.shows,
        counts=_not_shown,
        says="The examples of {name} lack the right label on {share}",
        remedies={
            ("select", "quota"): "each of them has another label",
            ("count", "8"): "more of them are shown",
            ("like", "fused"): "two rankings are fused to find them",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.shows,
        counts=lambda failed: sum(failure.shown for failure in failed),
        says="{name} sees an example of the right label and answers otherwise on {share}",
        remedies={
            ("trust", "2"): _MORE,
            ("order", "nearest-last"): "the nearest comes last",
            ("ask", "calibrated"): "labels lose the score they get after any question",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.searches and recipe.ask in SCORED,
        counts=_not_shown,
        says="The examples of {name} lead away from the right label on {share}",
        remedies={("select", "none"): "no examples are shown"},
    ),
    Rule(
        applies=lambda recipe: recipe.ask in SCORED and recipe.trust == "none",
        counts=_similar,
        says=_OTHERS,
        remedies={("trust", "2"): _SAY, ("trust", "1"): _SAY},
    ),
    Rule(
        applies=lambda recipe: recipe.trust in ("0.5", "1"),
        counts=_similar,
        says=_OTHERS,
        remedies={("trust", "2"): _MORE, ("trust", "4"): _MORE},
    ),
    Rule(
        applies=lambda recipe: not recipe.compares,
        counts=_similar,
        says=_OTHERS,
        remedies={("select", "nearest"): "the nearest are shown", ("shortlist", "6"): _SAY},
    ),
    Rule(
        applies=lambda recipe: recipe.notes == "none",
        counts=_mixed,
        says="{name} mixes up the same labels on {share}",
        remedies={
            ("notes", "keywords"): "key words tell them apart",
            ("notes", "mistakes"): "the prompt warns of them",
        },
        faith=0.3,
    ),
)


def findings(
    view: View, standing: Standing, recipes: Mapping[str, TextRecipe]
) -> tuple[Finding, ...]:
    """What the failures of a candidate have in common, the most common first."""
    failed, name = _failures(view, standing, recipes), standing.candidate.name
    recipe = recipes[name]
    made = []
    for rule in RULES if len(failed) > 1 else ():
        if not rule.applies(recipe):
            continue
        counted = rule.counts(failed)
        remedies = {change: why for change, why in rule.remedies.items() if _more(recipe, *change)}
        if counted > 1 and counted / len(failed) >= SHARE and remedies:
            share = f"{counted} of its {len(failed)} failures"
            weight = rule.faith * counted / (len(failed) + FEW)
            says = rule.says.format(name=name, share=share)
            made.append(Finding(says=says, weight=weight, remedies=remedies))
    return tuple(sorted(made, key=lambda finding: -finding.weight))


@lru_cache(maxsize=50_000)
def _more(recipe: TextRecipe, slot: str, block: str) -> bool:
    """Whether a block changes a recipe; a count or weight must rise."""
    if slot in ("count", "trust") and recipe.has(slot):
        blocks = SLOTS[slot]
        return blocks.index(block) > blocks.index(getattr(recipe, slot))
    return recipe.given(slot, block) != recipe


def _failures(view: View, standing: Standing, recipes: Mapping[str, TextRecipe]) -> list[Failure]:
    """The failures of a candidate whose traces can be read."""
    failed = [task for task in view.tasks if standing.outcomes.get(task) == 0.0]
    failed = failed[:: -(-len(failed) // MOST) or 1]  # spread over all sets
    names = {name for name, recipe in recipes.items() if recipe.compares}
    guided = [other for other in view.standings if other.candidate.name in names]
    traces = ((task, _trace(view, standing.candidate.name, task)) for task in failed)
    return [
        _failure(trace, similar=_solved(task, guided))
        for task, trace in traces
        if trace is not None
    ]


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
        shown=any(_shown(right, _plain(prompt), choices) for prompt in prompts),
        similar=similar,
    )


def _shown(right: str, prompt: str, choices: frozenset[str]) -> bool:
    """Whether a prompt shows the right answer other than in a list of all labels."""
    listed = min(prompt.count(choice) for choice in choices) if len(choices) > MANY else 0
    return prompt.count(right) > listed


def _trace(view: View, name: str, task: str) -> dict[str, Any] | None:
    """The trace of a trial with a wrong answer; None if it cannot be read."""
    text = view.trace(name, task)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    trace = found.get("trace") if isinstance(found, dict) else None  # beside the printed output
    if not isinstance(trace, dict):
        return None
    return trace if all(isinstance(trace.get(key), str) for key in ("answer", "gold")) else None


def _solved(task: str, standings: Sequence[Standing]) -> bool:
    scores = [standing.outcomes.get(task) for standing in standings]
    told = [score for score in scores if isinstance(score, float)]
    return bool(told) and sum(told) > len(told) / 2


def _plain(text: object) -> str:
    return " ".join(str(text).casefold().split()).strip(".!? ")
