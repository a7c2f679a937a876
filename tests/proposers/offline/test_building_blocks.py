"""A benchmark provides its own building blocks."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from coevolve.errors import ConfigError, InputError
from coevolve.proposers.offline import BuildingBlocks, Finding, OfflineProposer, Recipe
from coevolve.proposers.offline.building_blocks import RecipeSpace
from coevolve.runs import RunConfig, build_proposer
from coevolve.search.proposal import Proposal, Standing, View
from tests.cli.projects import coevolve, write_doubling
from tests.proposers.offline.histories import TASKS, History

FILE = """
from coevolve.proposers.offline import BuildingBlocks


class Doubling(BuildingBlocks):
    slots = {"limit": ("50", "104", "106", "300"), "way": ("add", "times")}
    seeds = {"Small numbers are enough.": {"limit": "50"}}

    def render(self, recipe, hypothesis):
        body = {"add": "n + n", "times": "2 * n"}[recipe["way"]]
        source = f"def double(n):\\n    return {body} if n < {recipe['limit']} else 0\\n"
        return {"harness.py": source.encode()}
"""


class Toy(BuildingBlocks):
    """A reader of numbers: how many lines it reads, and how it splits them."""

    slots: ClassVar = {
        "lines": ("none", "1", "2", "4", "8"),
        "split": ("comma", "space"),
        "trim": ("no", "yes"),
    }
    seeds: ClassVar = {"Nothing is enough.": {"lines": "none"}, "One line is.": {"lines": "1"}}

    def render(self, recipe: Recipe, hypothesis: str) -> Mapping[str, bytes]:
        return {"harness.py": f"# {hypothesis}\nRECIPE = {dict(recipe.blocks)}\n".encode()}

    def settle(self, blocks: Mapping[str, str]) -> Mapping[str, str]:
        return {"lines": "none"} if blocks["lines"] == "none" else blocks

    def findings(
        self, view: View, standing: Standing, recipes: Mapping[str, Recipe]
    ) -> Sequence[Finding]:
        name = standing.candidate.name
        assert recipes[name].components == standing.candidate.components
        remedies = {("trim", "yes"): "blanks are trimmed"}
        return [Finding(says=f"{name} reads blanks", weight=0.9, remedies=remedies)]


SPACE = RecipeSpace(Toy())


def truth(recipe: Recipe) -> float:
    lines = {"none": 0.0, "1": 0.1, "2": 0.5, "4": 0.4, "8": 0.2}[recipe["lines"]]
    return lines + 0.1 * (recipe["split"] == "space") + 0.2 * (recipe["trim"] == "yes")


def searched(rounds: int) -> tuple[History, list[Proposal]]:
    proposer, history, made = OfflineProposer(Toy()), History(), list[Proposal]()
    generator = np.random.default_rng(0)
    for _ in range(rounds):
        new = asyncio.run(proposer.propose(history.view(), 2)).proposals
        history.rounds += 1
        for one in new:
            recipe = SPACE.of(one.components)
            assert recipe is not None
            outcomes = {task: float(generator.random() < truth(recipe)) for task in TASKS[:20]}
            history.add(one, truth(recipe), se=0.02, outcomes=outcomes)
        made += new
    return history, made


def test_the_seeds_come_first_and_the_best_recipe_is_found() -> None:
    _, made = searched(5)
    assert [one.hypothesis for one in made[:2]] == list(Toy.seeds)
    assert made[0].name == "none"
    assert made[1].name == "1-comma-no"
    assert b"'lines': '1'" in made[1].files["harness.py"]
    found = [SPACE.of(one.components) for one in made]
    best = {"lines": "2", "split": "space", "trim": "yes"}
    assert SPACE.recipe(best) in found


def test_findings_lead_to_their_remedies() -> None:
    _, made = searched(3)
    (first, *_) = [one for one in made if "trim:yes" in one.components]
    assert first.hypothesis.endswith("reads blanks, so blanks are trimmed.")


def test_a_small_space_is_exhausted_without_repeats() -> None:
    history, made = searched(12)
    assert len({one.components for one in made}) == len(made) == 1 + 4 * 2 * 2
    assert not asyncio.run(OfflineProposer(Toy()).propose(history.view(), 2)).proposals
    alone = OfflineProposer(Toy(), independent=True)
    assert len(asyncio.run(alone.propose(history.view(), 99)).proposals) <= 17


def test_blocks_without_sense_are_refused() -> None:
    class Empty(Toy):
        seeds: ClassVar = {}

    class Wrong(Toy):
        seeds: ClassVar = {"More is more.": {"lines": "9"}}

    with pytest.raises(InputError, match=r"Empty needs at least one slot, .*and one seed"):
        OfflineProposer(Empty())
    with pytest.raises(InputError, match="slot 'lines' has no block '9'"):
        OfflineProposer(Wrong())
    with pytest.raises(InputError, match="3 is not a BuildingBlocks object"):
        OfflineProposer(3)  # type: ignore[arg-type]


def test_a_configuration_names_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "own_blocks_of_test.py").write_text(FILE)
    table = {"kind": "offline", "blocks": "own_blocks_of_test:Doubling"}
    given = {"search": {"rounds": 2}, "benchmark": {"kind": "synthetic"}, "proposer": table}
    made = build_proposer(RunConfig.from_json(given, folder=tmp_path), tmp_path)
    assert isinstance(made, OfflineProposer)
    with pytest.raises(ConfigError, match=r"characters has no effect with proposer.blocks"):
        RunConfig.from_json(given | {"proposer": table | {"characters": 2000}}, folder=tmp_path)


def test_a_run_searches_with_blocks_of_the_project(tmp_path: Path) -> None:
    file = write_doubling(tmp_path)
    (tmp_path / "blocks.py").write_text(FILE)
    text = file.read_text().replace(
        'kind = "function"\nfile = "propose.py"', 'kind = "offline"\nblocks = "blocks:Doubling"'
    )
    file.write_text(text)
    done = coevolve("run", file, "--json")
    assert done.returncode == 0, done.stderr
    named = {row["name"]: row for row in json.loads(done.stdout)["candidates"]}
    assert "50-add" in named
    assert len(named) == 2 + 6


def test_moves_repeat_themselves_and_wide_ones_change_about_a_quarter_of_the_slots() -> None:
    space = RecipeSpace(Toy())
    start = space.drawn(np.random.default_rng(7))
    for move in (space.wide, space.neighbours):
        one, other = (move(start, np.random.default_rng(8)) for _ in range(2))
        assert one == other
        assert start not in one
        assert len(set(one)) == len(one)
    free = [slot for slot in space.slots if start.has(slot)]
    made = [
        next(iter(space.wide(start, np.random.default_rng(n), count=1)), start) for n in range(400)
    ]
    sizes = np.array([len(space.slots[slot]) for slot in free])
    differs = np.mean([[recipe[slot] != start[slot] for slot in free] for recipe in made])
    assert differs == pytest.approx(np.mean((1 - 1 / sizes) / 4), abs=0.05)
