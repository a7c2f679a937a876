"""File names for candidates and tasks, whatever they are called."""

import re
from collections.abc import Iterable

from coevolve.search.candidate import address_of

_LONGEST = 60


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A file name for each name: the name itself where that is safe, unique in any case.

    A name that had to be changed, or differs from another in nothing but capitals, ends with a
    digest of itself, so that a task keeps its file name from round to round.

    >>> file_names(["law-007", "two days", "../.."])
    {'law-007': 'law-007', 'two days': 'two-days-5f193fa7', '../..': 'x-e58db3d6'}
    """
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        file = _plain(name)
        if file != name or file.casefold() in taken:
            file = _digested(file, name, taken)
        taken.add(file.casefold())
        made[name] = file
    return made


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")[:_LONGEST].rstrip("-.")


def _digested(file: str, name: str, taken: set[str]) -> str:
    digest = address_of(name.encode(errors="surrogatepass"))
    lengths = range(8, len(digest) + 1)  # longer only where somebody chose a name to collide
    return next(
        made for n in lengths if (made := f"{file or 'x'}-{digest[:n]}").casefold() not in taken
    )
