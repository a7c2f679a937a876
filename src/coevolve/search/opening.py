"""Opening a run: its first event."""

from collections.abc import Mapping
from typing import Any

from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError
from coevolve.search.accepting import clean
from coevolve.search.candidate import Candidate, Files
from coevolve.search.parts import Journal
from coevolve.search.settings import SCHEMA, Settings

LEAST_STARTS = 2


def open_run(
    journal: Journal,
    *,
    name: str,
    settings: Settings,
    selector: Selector,
    starts: Mapping[str, Files],
    test: Pool | None = None,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Record the first event of a run.

    Args:
        journal: A journal without any event.
        name: Name of the run.
        settings: How it searches.
        selector: A new selector over the validation tasks.
        starts: Files of the starting harnesses by name, two or more.
        test: The sealed test tasks, scored once at the end, if there are any.
        config: The configuration the run was started with, as plain JSON.
    """
    if len(starts) < LEAST_STARTS:
        raise ConfigError(
            f"a search needs two or more starting harnesses, got {len(starts)}: Phase 0 learns "
            "from them which tasks tell harnesses apart."
        )
    _check_budget(settings, selector, len(starts), test)
    candidates = []
    for start, files in starts.items():
        if clean(start) != start:
            raise ConfigError(f"a starting harness cannot be called {start!r}; use letters, -.")
        candidates.append(Candidate.of(files, name=start))
        for content in files.values():
            journal.put(content, durable=True)
    body = {
        "schema": SCHEMA,
        "name": name,
        "settings": settings.to_json(),
        "selector": selector.events[0],
        "starts": [candidate.to_json() for candidate in candidates],
        "test": None if test is None else test.to_json(),
        "config": dict(config or {}),
    }
    journal.append([("opened", body)])


def _check_budget(settings: Settings, selector: Selector, starts: int, test: Pool | None) -> None:
    """Refuse a cap on trials that cannot even pay for Phase 0 and the test."""
    trials = selector.events[0]["trials"]
    needed = starts * len(selector.pool) * trials
    needed += 0 if test is None else (starts + 1) * len(test) * trials
    cap = settings.budget.trials
    if cap is not None and cap < needed:
        raise ConfigError(
            f"a budget of {cap:,} trials is too small: Phase 0 and the sealed test alone take "
            f"{needed:,}."
        )
