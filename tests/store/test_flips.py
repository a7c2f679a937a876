"""Whatever bits are flipped and wherever a file is cut: no harm, or noticed and repaired."""

import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coevolve.errors import DamageError
from coevolve.store import RunStore, repair
from tests.effort import effort
from tests.store.helpers import COUNT, copied, flip, kept, noted, outcome, texts


def check_salvage(folder: Path, wanted: list[str], *, hidden: int = 0) -> None:
    """A run opens with all it had, or says it is damaged and can be repaired to a prefix."""
    found = outcome(folder)
    if isinstance(found, DamageError):
        assert "coevolve doctor --repair" in str(found)
        repaired = repair(folder)
        assert repaired.kept >= found.intact
        assert repaired.backup is not None
        assert repaired.lost is None or repaired.lost == len(wanted) - repaired.kept
        with RunStore.open(folder) as run:
            found = texts(list(run.events()))
        assert len(found) == repaired.kept
        assert found == wanted[: len(found)]
    else:
        assert found == wanted[: len(found)]
        assert len(found) >= len(wanted) - hidden
    with RunStore.open(folder) as run:
        run.append(noted("continues"))
    assert kept(folder) == [*found, "continues"]


@settings(max_examples=effort(25, 100), deadline=None)
@given(part=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@example(part=0.029841715199653954, bit=7)  # in the schema, which then is not UTF-8
def test_a_flipped_bit_anywhere_does_no_harm_or_is_noticed(
    closed: Path, part: float, bit: int
) -> None:
    folder = copied(closed)
    path = folder / "run.db"
    flip(path, int(part * path.stat().st_size), bit)
    check_salvage(folder, kept(closed))
    shutil.rmtree(folder)


@pytest.mark.parametrize("place", range(100))
def test_a_flipped_bit_in_the_first_bytes_does_no_harm_or_is_noticed(
    closed: Path, place: int
) -> None:
    for bit in effort((5 * (place % 2),), (0, 5)):
        folder = copied(closed)
        flip(folder / "run.db", place, bit)
        check_salvage(folder, kept(closed))


@settings(max_examples=effort(15, 60), deadline=None)
@given(part=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_in_the_log_hides_the_last_transaction_at_most(
    killed: Path, part: float, bit: int
) -> None:
    folder = copied(killed)
    path = folder / "run.db-wal"
    flip(path, int(part * path.stat().st_size), bit)
    check_salvage(folder, [f"{n} ".ljust(100, "x") for n in range(COUNT)], hidden=1)
    shutil.rmtree(folder)


@settings(max_examples=effort(15, 60), deadline=None)
@given(part=st.floats(0, 1))
def test_a_truncated_journal_keeps_what_is_left_of_it(closed: Path, part: float) -> None:
    folder = copied(closed)
    path = folder / "run.db"
    with path.open("r+b") as file:
        file.truncate(int(part * path.stat().st_size))
    check_salvage(folder, kept(closed))
    shutil.rmtree(folder)
