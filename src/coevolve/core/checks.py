"""Checks of what users pass to a selector."""

from collections.abc import Iterable

from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.errors import InputError


def check_settings(pool: Pool, seed: int, trials: int, draw_per: str, confidence: float) -> None:
    """Refuse settings of a selector that make no sense."""
    if not isinstance(pool, Pool):
        raise InputError(f"pool must be a Pool, got {type(pool).__name__}; try Pool(tasks).")
    for name, value, least in (("seed", seed, 0), ("trials", trials, 1)):
        if not is_whole(value, least=least):
            raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if draw_per not in ("round", "candidate"):
        raise InputError(f"draw_per must be 'round' or 'candidate', got {draw_per!r}.")
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence!r}.")


def check_names(given: Iterable[str] | None) -> list[str]:
    """The names of new candidates in their order, or none."""
    if given is None:
        return []
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | set | frozenset):
        raise InputError(f"ask takes a list of candidates, in order, got {given!r}.")
    names = list(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"candidates are named by non-empty strings, got {name!r}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"candidate {twice!r} is asked for twice in one round.")
    return [str(name) for name in names]
