"""The files that are written: each runs, and reads as if a person had written it."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coevolve.benchmarks.textclass.blocks.text_blocks import SEEDS, harness_source
from coevolve.benchmarks.textclass.blocks.text_recipe import SLOTS, TextRecipe
from coevolve.benchmarks.textclass.harness_check import check
from coevolve.benchmarks.textclass.harness_files import frame_source
from coevolve.executors.isolation import Harness, find_isolation
from coevolve.models.model_client import StubModel
from tests.benchmarks.textclass.emitted import CASES, DESK, REACTIONS, lived
from tests.effort import effort

LABELS = ["printer", "password", "laptop"]
WHY = 'The "nearest" harness answers with what is no label on 5 of its 11 failures, C:\\ so ' * 2


def every_block() -> list[TextRecipe]:
    """Recipes that have, among them, every block in several surroundings."""
    grounds = [
        TextRecipe(),
        TextRecipe(select="none", ask="standardised", trust="2"),
        TextRecipe(select="diverse", ask="calibrated", shortlist="6", repeat="orders"),
        TextRecipe(ask="free", notes="mistakes"),
        TextRecipe(select="all", ask="scores", trust="1", notes="keywords"),
    ]
    made = [
        g.given(slot, block)
        for g in grounds[: effort(2, 5)]
        for slot in SLOTS
        for block in SLOTS[slot]
    ]
    return list(dict.fromkeys([*made, *SEEDS.values()]))


def drawn(generator: np.random.Generator) -> TextRecipe:
    return TextRecipe(**{slot: str(generator.choice(b)) for slot, b in SLOTS.items()})


def some(count: int) -> list[TextRecipe]:
    """Every block, and recipes by chance."""
    generator = np.random.default_rng(6)
    return [*every_block(), *(drawn(generator) for _ in range(count))]


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return [harness_source(recipe, hypothesis=WHY) for recipe in some(effort(20, 200))]


def test_every_file_lives_with_labels(sources: list[str]) -> None:
    for source in sources:
        life = lived(source, DESK, labels=LABELS)
        assert life.after == life.restored, source


def test_every_file_lives_with_a_model_that_gives_no_scores(sources: list[str]) -> None:
    for source in sources:
        life = lived(source, DESK, labels=LABELS, scores=False)
        assert life.after == life.restored, source
        assert any("Which is it?" in prompt for prompt in life.prompts)


def test_every_file_lives_without_labels_and_in_chinese(sources: list[str]) -> None:
    for source in sources:
        life = lived(source, CASES, labels=None)
        assert life.after == life.restored, source


def test_where_no_answer_comes_twice_the_model_writes(sources: list[str]) -> None:
    for source in sources:
        life = lived(source, REACTIONS, labels=None, question="CCOC(C)=O")
        assert {life.before[:4], life.after[:4]} == {"stub"}, source


def test_answers_are_labels_where_the_model_is_held_to_them() -> None:
    for recipe in some(effort(0, 100)):
        life = lived(harness_source(recipe, hypothesis=WHY), DESK, labels=LABELS)
        if recipe.ask != "free" or recipe.parse == "closest":
            assert life.before in LABELS
            assert life.after in LABELS


def test_prompts_stay_within_the_characters() -> None:
    long = [(text * 40, answer) for text, answer in DESK] * 3
    for recipe in every_block():
        source = harness_source(recipe, hypothesis=WHY, characters=2000)
        for prompt in lived(source, long, labels=LABELS, question="Toner! " * 200).prompts:
            assert len(prompt) < 3 * 2000, source


def test_more_characters_leave_room_for_more(sources: list[str]) -> None:
    long = [(text * 100, answer) for text, answer in DESK]
    wide, narrow = (
        lived(
            harness_source(TextRecipe(count="6"), hypothesis=WHY, characters=size),
            long,
            labels=LABELS,
        )
        for size in (30_000, 2_000)
    )
    assert max(map(len, wide.prompts)) > 4 * max(map(len, narrow.prompts))


def test_every_file_begins_with_its_hypothesis(sources: list[str]) -> None:
    for source in sources:
        said = ast.get_docstring(ast.parse(source))
        assert said is not None
        assert said.startswith("The 'nearest' harness answers with what")


def test_every_file_uses_all_that_it_defines(sources: list[str]) -> None:
    for source in sources:
        tree = ast.parse(source)
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        used |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _loads(n)}
        used |= {"__init__", "learn", "predict", "state", "restore"}
        kinds = ast.FunctionDef, ast.ClassDef
        made = [node.name for node in ast.walk(tree) if isinstance(node, kinds)]
        constants = [
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        harness = next(node.name for node in tree.body if isinstance(node, ast.ClassDef))
        assert set(made) | set(constants) <= used | {harness}, source
        assert len(made) - made.count("__init__") == len({*made} - {"__init__"}) + _twice(made)


def _twice(names: list[str]) -> int:
    """The likeness of an index and that of the harness have the same name."""
    return max(0, names.count("alike") - 1)


def _loads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def test_every_file_imports_the_standard_library_alone(sources: list[str]) -> None:
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert set(names) <= set(sys.stdlib_module_names)


def test_every_file_is_formatted_and_without_lint(sources: list[str], tmp_path: Path) -> None:
    ruff = shutil.which("ruff", path=Path(sys.executable).parent) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    for number, source in enumerate(sources):
        (tmp_path / f"harness_{number}.py").write_text(source)
    options = ["--isolated", "--line-length", "99", str(tmp_path)]
    for command in (["format", "--diff"], ["check", "--select", "E,F,I,B,UP,SIM,C4,RUF"]):
        done = subprocess.run(
            [ruff, *command, "--no-cache", *options], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[:3000]


@pytest.mark.parametrize("recipe", list(SEEDS.values()), ids=lambda recipe: recipe.ask)
@pytest.mark.parametrize("scores", [True, False])
def test_a_file_passes_the_check_of_the_benchmark(
    recipe: TextRecipe, scores: bool, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "harness.py").write_text(harness_source(recipe, hypothesis=WHY))
    with Harness(tmp_path, isolation=find_isolation(), frame=frame_source()) as harness:
        check(harness, model=StubModel(gives_scores=scores))
