"""Replay of protocols on outcome matrices, and what comes out of it."""

from coevolve.analysis.aa import check_alike
from coevolve.analysis.jobs import Row
from coevolve.analysis.matrix import Matrix
from coevolve.analysis.means import Comparison, Mean
from coevolve.analysis.plan import Plan
from coevolve.analysis.reading import read_matrices, read_matrix
from coevolve.analysis.replay import Replay, replay
from coevolve.analysis.run import matrix_of_run
from coevolve.analysis.series import Series
from coevolve.analysis.summary import Entry
from coevolve.analysis.synthetic import synthetic_matrix

__all__ = [
    "Comparison",
    "Entry",
    "Matrix",
    "Mean",
    "Plan",
    "Replay",
    "Row",
    "Series",
    "check_alike",
    "matrix_of_run",
    "read_matrices",
    "read_matrix",
    "replay",
    "synthetic_matrix",
]
