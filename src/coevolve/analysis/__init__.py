"""Outcome matrices, and replays of protocols on them."""

from coevolve.analysis.aa_check import check_alike
from coevolve.analysis.matrix import Matrix, Series, synthetic_matrix
from coevolve.analysis.matrix_files import matrix_of_run, read_matrices, read_matrix
from coevolve.analysis.replay import Comparison, Entry, Mean, Replay, Row, replay
from coevolve.analysis.replay_search import Plan

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
