"""What the failures of a candidate have in common, and which blocks may mend them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from coevolve.proposers.base import Standing, View
from coevolve.proposers.offline.failures import Failure, failures, mixed, outside, repeated
from coevolve.proposers.offline.recipe import SCORED, SLOTS, Recipe

SHARE = 0.25
"""The share of failures from which on they say something."""
FEW = 3
"""Failures that are added to those there are, so that few of them weigh less."""
NEAR = 2
"""Blocks in which two recipes differ at most that are much alike."""

Mends = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that many failures of a candidate have in common.

    Args:
        says: What it is, in words.
        weight: The share of failures, times the faith in what may help.
        mends: Blocks that may help, with what they do in words.
    """

    says: str
    weight: float
    mends: Mends


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to look for in the failures of a recipe.

    Args:
        applies: Whether it makes sense for a recipe.
        counts: How many of some failures are of the kind.
        says: What to say of them.
        mends: Blocks that may help, with what they do in words.
        faith: How likely they are to help, as a factor of the share.
    """

    applies: Callable[[Recipe], bool]
    counts: Callable[[list[Failure]], int]
    says: str
    mends: Mends
    faith: float = 1.0


SAY = "similar examples get a say of their own"
MORE = "similar examples get more of a say"
RULES = (
    Rule(
        applies=lambda recipe: recipe.ask == "free",
        counts=outside,
        says="{name} answers outside the labels on {share}",
        mends={
            ("ask", "choose"): "the answer is held to the labels",
            ("ask", "standardised"): "labels are compared by their scores",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.ask in ("choose", "scores"),
        counts=repeated,
        says="{name} gives one and the same answer on {share}",
        mends={
            ("ask", "standardised"): "each label is measured on its own scale",
            ("ask", "calibrated"): "labels lose what they get after anything",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.shortlist != "all",
        counts=lambda failed: sum(not failure.offered for failure in failed),
        says="The shortlist of {name} lacks the right label on {share}",
        mends={
            ("shortlist", "12"): "it is made longer",
            ("shortlist", "all"): "all labels are left in",
            ("like", "pieces"): "pieces of words are compared for it",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.shows,
        counts=lambda failed: sum(not failure.shown for failure in failed),
        says="The examples of {name} have not got the right label on {share}",
        mends={
            ("select", "quota"): "each of them has another label",
            ("count", "8"): "more of them are shown",
            ("like", "fused"): "two rankings are fused to find them",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.shows,
        counts=lambda failed: sum(failure.shown for failure in failed),
        says="{name} sees an example of the right label and answers otherwise on {share}",
        mends={
            ("trust", "2"): MORE,
            ("order", "nearest-last"): "the nearest stands last",
            ("ask", "calibrated"): "labels lose what they get after anything",
        },
    ),
    Rule(
        applies=lambda recipe: recipe.searches and recipe.ask in SCORED,
        counts=lambda failed: sum(not failure.shown for failure in failed),
        says="The examples of {name} lead away from the right label on {share}",
        mends={("select", "none"): "the question stands alone"},
    ),
    Rule(
        applies=lambda recipe: recipe.ask in SCORED and recipe.trust == "none",
        counts=lambda failed: sum(failure.similar for failure in failed),
        says="Others that go by similar examples are right where {name} is wrong, on {share}",
        mends={("trust", "2"): SAY, ("trust", "1"): SAY},
    ),
    Rule(
        applies=lambda recipe: recipe.trust in ("0.5", "1"),
        counts=lambda failed: sum(failure.similar for failure in failed),
        says="Others that go by similar examples are right where {name} is wrong, on {share}",
        mends={("trust", "2"): MORE, ("trust", "4"): MORE},
    ),
    Rule(
        applies=lambda recipe: not recipe.compares,
        counts=lambda failed: sum(failure.similar for failure in failed),
        says="Others that go by similar examples are right where {name} is wrong, on {share}",
        mends={("select", "nearest"): "the nearest are shown", ("shortlist", "6"): SAY},
    ),
    Rule(
        applies=lambda recipe: recipe.notes == "none",
        counts=mixed,
        says="{name} takes the same labels for each other on {share}",
        mends={
            ("notes", "keywords"): "key words tell them apart",
            ("notes", "mistakes"): "it is warned of them",
        },
        faith=0.3,
    ),
)


def findings(view: View, standing: Standing, recipe: Recipe) -> tuple[Finding, ...]:
    """What the failures of a candidate have in common, the weightiest first."""
    failed = failures(view, standing)
    made = []
    for rule in RULES if len(failed) > 1 else ():
        if not rule.applies(recipe):
            continue
        counted = rule.counts(failed)
        mends = {
            (slot, block): why
            for (slot, block), why in rule.mends.items()
            if _more(recipe, slot, block)
        }
        if counted > 1 and counted / len(failed) >= SHARE and mends:
            share = f"{counted} of its {len(failed)} failures"
            says = rule.says.format(name=standing.candidate.name, share=share)
            weight = rule.faith * counted / (len(failed) + FEW)
            made.append(Finding(says=says, weight=weight, mends=mends))
    return tuple(sorted(made, key=lambda finding: -finding.weight))


def untried(
    found: Sequence[Finding], recipe: Recipe, taken: Collection[Recipe]
) -> tuple[Finding, ...]:
    """Findings without what was tried for them: there the outcomes have the word.

    A block was tried if a recipe has it that is otherwise much like the one that fails.
    """
    left = []
    for finding in found:
        mends = {
            (slot, block): why
            for (slot, block), why in finding.mends.items()
            if not any(_tries(other, recipe.given(slot, block), slot) for other in taken)
        }
        left.append(replace(finding, mends=mends))
    return tuple(finding for finding in left if finding.mends)


def _tries(other: Recipe, mended: Recipe, slot: str) -> bool:
    same = getattr(other, slot) == getattr(mended, slot)
    return same and len(other.differs(mended)) <= NEAR


def _more(recipe: Recipe, slot: str, block: str) -> bool:
    """Whether a block changes a recipe; of what can be counted, to more of it."""
    if slot in ("count", "trust") and recipe.has(slot):
        blocks = SLOTS[slot]
        return blocks.index(block) > blocks.index(getattr(recipe, slot))
    return recipe.given(slot, block) != recipe
