"""The projections of a run that other programs read."""

from pathlib import Path

import numpy as np

from coevolve.analysis.matrix_files import read_matrix
from coevolve.search.journal import MemoryJournal
from coevolve.views.export import write_events, write_matrix
from tests.search.stubs import go_on, opened


def test_the_matrix_and_the_events_have_the_same_cost_of_a_trial(tmp_path: Path) -> None:
    journal = MemoryJournal()
    opened(journal, trials=2, rounds=1)
    go_on(journal)
    write_matrix(journal, tmp_path / "a.npz")
    write_events(journal, tmp_path / "b.jsonl")
    costs = [read_matrix(tmp_path / name).series[0].costs for name in ("a.npz", "b.jsonl")]
    assert costs[0] is not None
    assert costs[1] is not None
    np.testing.assert_allclose(costs[0], costs[1])
    np.testing.assert_allclose(costs[0][~np.isnan(costs[0])], 0.01)
