"""Why a recipe is proposed, in a sentence."""

from collections.abc import Sequence

from coevolve.proposers.base import Standing
from coevolve.proposers.offline.evidence import FEW, Finding
from coevolve.proposers.offline.known import Tried
from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.surrogate import COLUMNS, Surrogate


def refined(parent: Tried, made: Recipe, found: Sequence[Finding], surrogate: Surrogate) -> str:
    """What changes from a parent, and what speaks for it."""
    slots = [slot for slot in parent.recipe.differs(made) if made.has(slot)]
    for finding in found:
        for slot in slots:
            if why := finding.mends.get((slot, getattr(made, slot))):
                others = [other for other in slots if other != slot]
                return f"{finding.says}, so {why}{_beside(made, others)}."
    changes = changed(parent.recipe, made)
    gain = sum(
        _adds(made, slot, surrogate) - _adds(parent.recipe, slot, surrogate) for slot in slots
    )
    if gain > 0.005:
        points = f"{100 * gain:.0f} point{'' if round(100 * gain) == 1 else 's'}"
        return f"{parent.name} with {changes}: by what blocks were worth so far, {points} better."
    return f"{parent.name} with {changes}: little is known of that, and it may be better."


def crossed(parent: Tried, partner: Tried, made: Recipe) -> str:
    """What is taken from whom, and what speaks for it."""
    solved, failed, _ = makes_up(parent.standing, partner.standing)
    taken = changed(parent.recipe, made)
    if not solved:
        return f"{parent.name} takes over {taken} from {partner.name}, the next best."
    return (
        f"{parent.name} takes over {taken} from {partner.name}, which solves {solved} of the "
        f"{failed} tasks that it fails."
    )


def explored(parent: Tried, made: Recipe, tried: Sequence[Recipe]) -> str:
    """What is new about a recipe."""
    seen = {component for recipe in tried for component in recipe.components}
    new = [component for component in made.components if component not in seen]
    changes = changed(parent.recipe, made)
    if new:
        return f"{parent.name} with {changes}, for nobody has tried {_listed(new)} yet."
    return f"{parent.name} with {changes}, for these were never tried together."


def makes_up(parent: Standing, partner: Standing) -> tuple[int, int, float]:
    """How many tasks a partner solves that the parent fails, of how many, and their share.

    Of few tasks the share is taken for less.
    """
    failed = [
        task
        for task, score in parent.outcomes.items()
        if score == 0.0 and isinstance(partner.outcomes.get(task), float)
    ]
    solved = sum(partner.outcomes[task] == 1.0 for task in failed)
    return solved, len(failed), solved / (len(failed) + FEW)


def changed(parent: Recipe, made: Recipe) -> str:
    """The blocks in which a recipe differs from its parent, in words."""
    return _listed([part for part in made.components if part not in parent.components])


def _adds(recipe: Recipe, slot: str, surrogate: Surrogate) -> float:
    component = f"{slot}:{getattr(recipe, slot)}"
    return surrogate.adds(component) if recipe.has(slot) and component in COLUMNS else 0.0


def _beside(made: Recipe, slots: Sequence[str]) -> str:
    if not slots:
        return ""
    return f", with {_listed([f'{slot}:{getattr(made, slot)}' for slot in slots])}"


def _listed(components: Sequence[str]) -> str:
    """Components in words: `count:8` is "count 8"."""
    if not components:
        return "less"
    words = [component.replace(":", " ") for component in components]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
