"""Views for tests of proposers."""

from collections.abc import Mapping

from coevolve.core.outcomes import Missing
from coevolve.search.candidate import Candidate, Files
from coevolve.search.proposal import Standing, View


def view(
    *,
    round: int = 1,
    seed: int = 0,
    candidates: Mapping[str, Files] | None = None,
    outcomes: Mapping[str, Mapping[str, float | Missing]] | None = None,
    parent: str = "",
) -> View:
    """What a proposer sees when these candidates are known."""
    given = candidates or {}
    made = {name: Candidate.of(files, name=name) for name, files in given.items()}
    contents = {
        address: given[name][path]
        for name, candidate in made.items()
        for path, address in candidate.files.items()
    }
    standings = tuple(
        Standing(
            candidate=candidate,
            status="evaluated",
            reason="",
            estimate=None,
            outcomes=(outcomes or {}).get(name, {}),
        )
        for name, candidate in made.items()
    )
    return View(
        round=round,
        seed=seed,
        tasks=(),
        standings=standings,
        best=None,
        parent=parent,
        read=contents.__getitem__,
        trace=lambda candidate, task: None,
    )
