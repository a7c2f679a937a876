"""The space of a table is closed under everything the offline proposer does."""

from pathlib import Path

import numpy as np
import pytest

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.errors import InputError
from coevolve.proposers.offline.building_blocks import RecipeSpace
from coevolve.proposers.offline.restricted_blocks import RestrictedBlocks
from coevolve.tables.table_space import STAGES, STARTS, TableSpace, key_of, prompts_of


@pytest.mark.parametrize("stage", [1, 2, 3, 4, 5])
def test_moves_and_crossings_stay_within_a_stage(stage: int) -> None:
    space = TableSpace()
    recipes = set(space.recipes(stage))
    moves, generator = RecipeSpace(space.blocks(stage)), np.random.default_rng(stage)
    listed = sorted(recipes, key=key_of)
    for _ in range(6):
        one, other = (listed[n] for n in generator.integers(len(listed), size=2))
        assert recipes.issuperset(moves.neighbours(one, generator, doubles=30))
        assert recipes.issuperset(moves.crossings(one, other, generator, count=20))
        assert recipes.issuperset(moves.wide(one, generator, count=30))
        assert moves.drawn(generator) in recipes
    assert recipes.issuperset(moves.seeds.values())


def test_every_harness_is_named_once_and_stages_contain_each_other() -> None:
    rows = list(TableSpace().rows())
    keys = [row.key for row in rows]
    assert len(set(keys)) == len(keys)
    assert keys[:3] == list(STARTS)
    assert [row.stage for row in rows] == sorted(row.stage for row in rows)
    with pytest.raises(InputError, match="must contain the one before"):
        TableSpace([STAGES[1], STAGES[0]])
    with pytest.raises(InputError, match="stages 1 to 5"):
        TableSpace().blocks(6)


def test_harnesses_with_the_same_prompts_write_the_same_prompt_code() -> None:
    space = TableSpace()
    blocks = space.blocks(5)
    sources: dict[tuple[str, ...], set[str]] = {}
    for recipe in space.recipes(5):
        source = blocks.render(recipe, "The same.")["harness.py"].decode()
        method = source.partition("def prompt(")[2].partition("\n\n    def ")[0]
        constants = [n for n in source.splitlines() if n.startswith(("EXAMPLE", "ASKED", "COUNT"))]
        sources.setdefault(prompts_of(recipe), set()).add(repr((method, constants)))
    assert all(len(found) == 1 for found in sources.values())


def test_blocks_that_are_left_out_are_refused_by_name() -> None:
    whole = TextBlocks()
    with pytest.raises(InputError, match=r"no slot 'selects'.*'select'"):
        RestrictedBlocks(whole, {"selects": ["none"]})
    with pytest.raises(InputError, match="no block 'closest'"):
        RestrictedBlocks(whole, {"select": ["closest"]})
    with pytest.raises(InputError, match="every seed"):
        RestrictedBlocks(whole, {"ask": ["free"]})
    with pytest.raises(InputError, match="at least one block"):
        RestrictedBlocks(whole, {"ask": []})


def test_a_space_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    lines = [f"{slot} = {list(blocks)!r}".replace("'", '"') for slot, blocks in STAGES[0].items()]
    file.write_text("\n".join(["characters = 2000", "[[stages]]", *lines]))
    space = TableSpace.read(file)
    assert space.characters == 2000
    assert space.recipes(1) == TableSpace(STAGES[:1]).recipes(1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stage = []", r"'stage' is not a key of a space.*'stages'"),
        ("characters = 10", "at least 1000, got 10"),
        ("stages = 3", "must map slots to lists"),
        ('[[stages]]\nlike = "bm25"', "must map slots to lists"),
        ('[[stages]]\nlikes = ["bm25"]', "no slot 'likes'"),
        ('[[stages]]\nask = ["free"]', "every seed"),
        ("", "at least one stage"),
        ("[[", "cannot be read"),
    ],
)
def test_a_wrong_space_is_refused_with_its_file(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "space.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=says) as found:
        TableSpace.read(file)
    assert str(file) in str(found.value)
