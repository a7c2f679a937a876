"""The proposer as the engine asks it."""

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.errors import InputError
from coevolve.proposers.offline import OfflineProposer
from coevolve.testing import propose_once
from tests.effort import effort
from tests.proposers.offline.histories import SPACE, History, additive, searched

ROOT = Path(__file__).parents[3]
SCRIPT = """
import asyncio, hashlib
from tests.proposers.offline.test_proposer import written
print(written())
"""


def propose(view, count):  # type: ignore[no-untyped-def]
    return asyncio.run(OfflineProposer(TextBlocks()).propose(view, count)).proposals


def written() -> str:
    """A fingerprint of all that a search proposes."""
    digest = hashlib.blake2b()
    history = searched(propose, additive(2), rounds=6, count=2, seed=5)
    for standing in history.standings:
        digest.update(repr(standing.candidate).encode())
    return digest.hexdigest()


def test_it_is_a_proposer() -> None:
    view = History().view()
    made = asyncio.run(propose_once(OfflineProposer(TextBlocks()), view, 3))
    assert len(made.proposals) == 3
    assert not made.notes
    for proposal in made.proposals:
        assert proposal.hypothesis in proposal.files["harness.py"].decode().replace("\n", " ")
        assert SPACE.of(proposal.components) is not None


def test_names_are_short() -> None:
    history = searched(propose, additive(0), rounds=effort(4, 10), count=3, seed=0)
    assert all(len(standing.candidate.name) < 60 for standing in history.standings)


def test_the_same_view_gives_the_same_bytes_in_any_process() -> None:
    found = {written()}
    for seed in effort(("1",), ("1", "2")):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_another_seed_leads_elsewhere() -> None:
    one, other = (
        searched(propose, additive(2), rounds=5, count=2, seed=seed).recipes() for seed in (1, 2)
    )
    assert one[:4] == other[:4]
    assert one[4:] != other[4:]


def test_too_few_characters_are_refused() -> None:
    with pytest.raises(InputError, match="characters must be at least 1,000, got 10"):
        TextBlocks(characters=10)
