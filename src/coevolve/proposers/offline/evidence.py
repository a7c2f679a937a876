"""What the failures of a candidate say about its blocks."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coevolve.proposers.base import Standing, View
from coevolve.proposers.offline.recipe import SCORED, Recipe

MOST = 24
"""Failures of a candidate that are looked at."""
SHARE = 1 / 3
"""The share of failures from which on they say something."""

Blocks = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that many failures of a candidate have in common.

    Args:
        says: What it is, in words.
        share: The share of failures.
        mends: Blocks that may help, with what they do in words.
    """

    says: str
    share: float
    mends: Mapping[tuple[str, str], str]


def findings(view: View, standing: Standing, recipe: Recipe) -> tuple[Finding, ...]:
    """What the failures of a candidate have in common, the most frequent first."""
    traces = failures(view, standing)
    if len(traces) < 2:
        return ()
    name, looked = standing.candidate.name, len(traces)
    made = []
    for counted, says, mends in _read(recipe, traces):
        useful = {block: why for block, why in mends.items() if _changes(recipe, *block)}
        if counted >= 2 and counted / looked >= SHARE and useful:
            said = says.format(name=name, share=f"{counted} of its {looked} failures")
            made.append(Finding(says=said, share=counted / looked, mends=useful))
    return tuple(sorted(made, key=lambda finding: -finding.share))


def failures(view: View, standing: Standing) -> list[dict[str, Any]]:
    """Traces of the trials that a candidate failed, as far as they can be read."""
    name = standing.candidate.name
    failed = [task for task in view.tasks if standing.outcomes.get(task) == 0.0]
    found = (_trace(view, name, task) for task in failed[:MOST])
    return [trace for trace in found if trace is not None]


def _trace(view: View, name: str, task: str) -> dict[str, Any] | None:
    """A trace of text classification; None for any other."""
    text = view.trace(name, task)
    if text is None:
        return None
    try:
        trace = json.loads(text)
    except ValueError:
        return None
    known = isinstance(trace, dict) and isinstance(trace.get("gold"), str)
    return trace if known and isinstance(trace.get("answer"), str) else None


def _changes(recipe: Recipe, slot: str, block: str) -> bool:
    return recipe.given(slot, block) != recipe


def _read(
    recipe: Recipe, traces: list[dict[str, Any]]
) -> Iterable[tuple[int, str, dict[tuple[str, str], str]]]:
    """Counts of failures of a kind, what to say of them, and what may help."""
    said = Counter(_plain(trace["answer"]) for trace in traces)
    golds = {_plain(trace["gold"]) for trace in traces}
    labels = golds | {
        _plain(c) for trace in traces for call in _calls(trace) for c in _choices(call)
    }
    if recipe.ask == "free":
        outside = sum(count for answer, count in said.items() if answer not in labels)
        yield (
            outside,
            "{name} answers outside the labels on {share}",
            {
                ("ask", "choose"): "the answer is held to the labels",
                ("ask", "standardised"): "labels are compared by their scores",
            },
        )
    else:
        yield (
            said.most_common(1)[0][1] if len(traces) > 3 else 0,
            "{name} gives one and the same answer on {share}",
            {
                ("ask", "standardised"): "each label is measured on its own scale",
                ("ask", "calibrated"): "labels that are likely after anything lose that",
            },
        )
    if recipe.shortlist != "all":
        yield (
            sum(not _offered(trace) for trace in traces),
            "the shortlist of {name} lacks the right label on {share}",
            {
                ("shortlist", "12"): "it is made longer",
                ("shortlist", "all"): "all labels are left in",
                ("like", "fused"): "two rankings are fused for it",
                ("like", "pieces"): "pieces of words are compared for it",
            },
        )
    if recipe.shows:
        shown = sum(_shown(trace) for trace in traces)
        yield (
            len(traces) - shown,
            "the examples of {name} have not got the right label on {share}",
            {
                ("select", "quota"): "each of them has another label",
                ("count", "8"): "more of them are shown",
                ("like", "fused"): "two rankings are fused to find them",
                ("like", "pieces"): "pieces of words are compared to find them",
            },
        )
        yield (
            shown,
            "{name} answers otherwise with an example of the right label before it on {share}",
            _weighing(recipe) | {("order", "nearest-last"): "the nearest stands last"},
        )
    yield (
        _mixed(traces),
        "{name} takes the same labels for each other on {share}",
        {
            ("notes", "keywords"): "key words tell them apart",
            ("notes", "mistakes"): "it is warned of them",
            **_weighing(recipe),
        },
    )


def _weighing(recipe: Recipe) -> dict[tuple[str, str], str]:
    """How similar examples get a say of their own."""
    if recipe.ask not in SCORED:
        return {("ask", "standardised"): "labels are compared by their scores"}
    return {
        ("trust", weight): "similar examples get a say of their own"
        for weight in ("1", "2")
        if recipe.trust in ("none", "0.5") or weight > recipe.trust
    }


def _calls(trace: dict[str, Any]) -> list[dict[str, Any]]:
    calls = trace.get("calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _choices(call: dict[str, Any]) -> list[str]:
    choices = call.get("choices")
    return [c for c in choices if isinstance(c, str)] if isinstance(choices, list) else []


def _offered(trace: dict[str, Any]) -> bool:
    """Whether the right label was among the choices."""
    return any(trace["gold"] in _choices(call) for call in _calls(trace))


def _shown(trace: dict[str, Any]) -> bool:
    """Whether the right label was in a prompt."""
    prompts = (call.get("prompt") for call in _calls(trace))
    return any(isinstance(prompt, str) and trace["gold"] in prompt for prompt in prompts)


def _mixed(traces: list[dict[str, Any]]) -> int:
    """Failures whose pair of labels occurs more than once, either way round."""
    pairs = Counter(
        tuple(sorted((_plain(trace["answer"]), _plain(trace["gold"])))) for trace in traces
    )
    return sum(count for count in pairs.values() if count > 1)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".!? ")
