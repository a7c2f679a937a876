"""The published sets, where they are beside the repository, and small sets of our own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "textclass"

needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published sets are not in ../shared/data/textclass"
)

ANIMALS = {
    "train": [("It barks.", "dog"), ("It purrs.", "cat"), ("It growls.", "dog")],
    "val": [("It meows.", "cat"), ("It fetches sticks.", "dog"), ("It hunts mice.", "cat")],
    "test": [("It wags its tail.", "dog"), ("It climbs curtains.", "cat")],
}


def write_set(folder: Path, splits: Mapping[str, Sequence[tuple[str, str]]] = ANIMALS) -> Path:
    """A set of questions and answers as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        lines = (json.dumps({"question": q, "answer": a}) for q, a in rows)
        (folder / f"{split}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder
