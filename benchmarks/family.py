"""The demo's harnesses in full, and how well each protocol would have searched them.

Run as `make bench-family` or `python benchmarks/family.py`; it takes about ten minutes on two
cores. Every harness of the demo is evaluated on the whole validation and test split of the
service-desk set with the embedded model; then the protocols search the recorded outcomes, which
costs no further evaluation.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import record
from textclass import SLOTS, Bench

from coevolve.analysis.matrix import Matrix
from coevolve.analysis.play import play
from coevolve.benchmarks.textclass import TextClassification
