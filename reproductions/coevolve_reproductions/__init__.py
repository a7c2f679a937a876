"""What reproduces the paper: rival protocols, its tables, and a family of twelve harnesses.

The engine does not import this package. Entry points in `pyproject.toml` make the protocols and
the harnesses available by name; `coevolve analyse` and `coevolve table` load the tables when they
run.
"""

from pathlib import Path

FAMILY = Path(__file__).parent / "family"
"""Twelve harnesses for text classification, one folder each."""
