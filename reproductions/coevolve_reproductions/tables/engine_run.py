"""Runs of the engine: their search, and scores that were recorded apart from it."""

from collections.abc import Iterator
from pathlib import Path

from coevolve.core.outcomes import Told
from coevolve.errors import InputError
from coevolve.runs.evaluation_place import evaluations
from coevolve.runs.session import read_state
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from coevolve.views.export import selector_lines
from coevolve.views.score_table import Split, kind_of
from coevolve.views.spend_parts import spend_parts
from coevolve_reproductions.tables.finished_search import Search

JOURNAL = "run.db"
"""The file that makes a folder a run folder."""


_SPLITS: tuple[Split, ...] = ("validation", "test")


def read_run(folder: Path) -> RunState:
    """The state of a run, with every score on all tasks that belongs to it.

    These are what `rescore` and `evaluate` have recorded in its journal, and evaluations of the
    project with the same files, benchmark and model.

    Raises:
        InputError: The folder has an evaluation, not a run.
    """
    state = read_state(folder)
    if state.evaluation:
        raise InputError(f"{folder} is an evaluation, not a run; name a run folder.")
    own = {known.candidate.address: name for name, known in state.candidates.items()}
    for elsewhere in evaluations_like(folder, state):
        for split in _SPLITS:
            selector = state.test if split == "test" else state.rescored
            for name, told in told_in_full(elsewhere, split, state.trials):
                known = own.get(elsewhere.candidates[name].candidate.address)
                if known is not None and selector is not None and known not in selector.starts:
                    selector.tell_full(known, told)
    return state


def search_of_run(folder: Path, state: RunState | None = None) -> Search:
    """The search of a run folder, with every full-set score that belongs to the run."""
    state = read_run(folder) if state is None else state
    with RunStore.read(folder) as store:
        events = [line.event for line in selector_lines(store)]
        spent = spend_parts(store.events())
    return Search.of_events(events, rescored=state.rescored, spent=spent)


def evaluations_like(folder: Path, state: RunState) -> Iterator[RunState]:
    """The evaluations in the project of a run that its own benchmark and model have scored."""
    if state.fingerprint is None or "project" not in state.config:
        return
    tasks = [one.pool.tasks for one in (state.selector, state.test) if one is not None]
    for found in evaluations((folder / state.config["project"]).resolve()):
        same = [one.pool.tasks for one in (found.selector, found.test) if one is not None]
        if found.fingerprint == state.fingerprint and same == tasks:
            yield found


def told_in_full(state: RunState, split: Split, trials: int) -> Iterator[tuple[str, Told]]:
    """The harnesses that an evaluation has scored on every task, with their outcomes."""
    selector, requested = (
        state.test if split == "test" else state.selector,
        state.requested.get(kind_of(split)),
    )
    if selector is None or requested is None:
        return
    for name in requested.wave.cells:
        group = requested.group(name, selector.pool.tasks, trials)
        if group is not None:
            yield name, requested.wave.told(group)
