"""A table is filled once, in stages, from few prompts, by the harnesses as they are written."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from coevolve.benchmarks.textclass.data_sets import DataSet, load_set
from coevolve.errors import InputError
from coevolve.models.batched.token_trees import NONE, label_tree, packs
from coevolve.models.embedded.scoring import choose, tree
from coevolve.tables.harness_runs import HarnessRuns
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.label_answers import AnswerStore, LabelModel, SpeltLabels
from coevolve.tables.table_filler import Speller, TableFiller, labels_of
from coevolve.tables.table_space import STAGES, TableSpace
from tests.command import coevolve
from tests.effort import effort
from tests.tables.invented_model import InventedScorer, InventedSpeller

SERVICE_DESK = load_set("service-desk")
DATA = replace(
    SERVICE_DESK,
    train=SERVICE_DESK.train[:40],
    val=SERVICE_DESK.val[:6],
    test=SERVICE_DESK.test[:4],
)
SMALL = (
    {**STAGES[0], "like": ("bm25",), "format": ("keywords",), "shortlist": ("all", "6")},
    {
        **STAGES[1],
        "like": ("bm25", "pieces"),
        "format": ("keywords", "question"),
        "shortlist": ("all", "6"),
        "trust": ("none", "1"),
        "ask": (*STAGES[0]["ask"], "free"),
        "parse": ("first", "closest"),
    },
)
SMALL = ({**SMALL[0], "trust": ("none", "1")}, SMALL[1])


def filler(folder: Path, families: int = 1, workers: int = 1, data: DataSet = DATA) -> TableFiller:
    return TableFiller(
        data,
        TableSpace(SMALL),
        folder,
        speller=cast("Speller", InventedSpeller()),
        families=families,
        workers=workers,
    )


def filled(
    folder: Path, stage: int, families: int = 1, workers: int = 1, data: DataSet = DATA
) -> InventedScorer:
    scorer, made = InventedScorer(), filler(folder, families, workers, data)
    made.fill(scorer, lambda progress: None, stage)  # type: ignore[arg-type]
    made.save(folder / "table.npz", f"coevolve fill table.npz --stage {stage}")
    made.close()
    return scorer


def test_a_filler_that_was_stopped_continues_and_the_order_does_not_matter(tmp_path: Path) -> None:
    first = filled(tmp_path / "one", 1)
    table = HarnessTable.read(tmp_path / "one" / "table.npz")
    assert table.facts.stage == 1
    assert filled(tmp_path / "one", 1).asked == 0
    rest = filled(tmp_path / "one", 2)
    table = HarnessTable.read(tmp_path / "one" / "table.npz")
    whole = filled(tmp_path / "two", 2, families=100, workers=2)
    again = HarnessTable.read(tmp_path / "two" / "table.npz")
    assert first.asked + rest.asked == whole.asked
    assert list(table.keys) == [row.key for row in TableSpace(SMALL).rows()]
    for name in ("answers", "correct", "tokens", "offered", "shown", "gold"):
        assert np.array_equal(getattr(table, name), getattr(again, name)), name
    assert table.facts.source["weights"]
    assert 0 < table.correct.mean() < 1


def test_rows_of_other_tasks_are_not_used_again(tmp_path: Path) -> None:
    filled(tmp_path / "one", 1)
    turned = replace(DATA, val=DATA.val[::-1])
    made = filler(tmp_path / "one", data=turned)
    assert not made.finished.keys()
    with pytest.raises(InputError, match="is a table of other tasks"):
        made.check(tmp_path / "one" / "table.npz")
    made.close()
    (tmp_path / "one" / "table.npz").unlink()
    filled(tmp_path / "one", 1, data=turned)
    filled(tmp_path / "two", 1, data=turned)
    one, two = (HarnessTable.read(tmp_path / name / "table.npz") for name in ("one", "two"))
    assert np.array_equal(one.answers, two.answers)


def test_a_table_is_not_replaced_by_a_smaller_one(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    made = filler(tmp_path)
    made.check(tmp_path / "table.npz")
    made.close()
    other = filler(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"table.npz has 2 stages, but the work folder .* has 0"):
        other.check(tmp_path / "table.npz")
    other.close()


def test_a_table_names_everything_that_computed_it(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    made = filler(tmp_path)
    made.finished.note({"torch": "2", "device": "cuda"})
    made.save(tmp_path / "table.npz", "coevolve fill table.npz --stage 1")
    made.close()
    source = HarnessTable.read(tmp_path / "table.npz").facts.source
    assert (source["torch"], source["device"]) == ("none, 2", "invented, cuda")
    assert source["command"] == "coevolve fill table.npz --stage 1"


def test_a_work_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file; name a folder"):
        filler(tmp_path / "file")
    for name in ("rows", "answers"):
        file = tmp_path / f"service-desk-{name}.db"
        file.write_text("no database, but some text")
        with pytest.raises(InputError, match=rf"{name}.db cannot be used \(.*remove it"):
            filler(tmp_path)
        file.unlink()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["table.txt"], "a table is an .npz file, got table.txt"),
        (["nowhere/table.npz"], "there is no folder nowhere"),
        (["table.npz", "--count", "--save-only"], "remove it or --save-only"),
        (["table.npz", "--stage", "9"], "there are stages 1 to 5, got 9"),
        (["table.npz", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["table.npz", "--set", "nothing"], "nothing"),
        (["table.npz", "--space", "none.toml"], "the space none.toml cannot be read"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(
    given: list[str], said: str, tmp_path: Path
) -> None:
    done = coevolve("fill", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_table_is_counted_without_a_model_and_saved_when_a_stage_is_whole(
    tmp_path: Path,
) -> None:
    made = filler(tmp_path)
    requests, tokens = made.requests(2)
    with pytest.raises(InputError, match="no stage is finished"):
        made.save(tmp_path / "table.npz", "")
    made.close()
    assert filled(tmp_path, 2).asked == requests
    assert tokens > 10 * requests


def test_similarities_that_are_remembered_change_no_answer(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    made = filler(tmp_path)
    rows = [row for row in TableSpace(SMALL).rows() if row.recipe and row.stage == 2]
    for row in rows[:: len(rows) // effort(3, 20)]:
        model = LabelModel(made._store, made._spelt)
        files, _ = made.files(row)
        alone = HarnessRuns(DATA, made.labels, model).evaluated(files)
        assert alone is not None
        kept = made.finished.get(row.key)
        assert np.array_equal(alone.answers, kept.answers)
        assert np.array_equal(alone.tokens_in, kept.tokens_in)
    made.close()


class Values:
    """Log-probabilities by path, as the server of the embedded model would pick from them."""

    def __init__(self, values: Mapping[tuple[int, ...], float]) -> None:
        self._values = values

    async def pick(
        self, path: Sequence[int], allowed: Sequence[int], *, temperature: float, seed: int
    ) -> int:
        return max(allowed, key=lambda token: self._values[(*path, token)])


def test_a_choice_of_some_labels_is_that_of_the_embedded_model(tmp_path: Path) -> None:
    labels = {"a": (1,), "a b": (1, 2), "a b c": (1, 2, 3), "a d": (1, 4), "e f": (5, 6)}
    spelt, generator = SpeltLabels(labels, ends=(8, 9)), np.random.default_rng(0)
    paths: dict[tuple[int, ...], int] = {(): NONE}
    for number, (token, parent) in enumerate(spelt.tree.steps):
        before = next(path for path, node in paths.items() if node == parent)
        paths[(*before, token)] = number
    for _ in range(effort(60, 500)):
        values = generator.normal(size=len(spelt.tree.wanted)).astype(np.float32)
        found = dict(zip(spelt.tree.wanted, values.tolist(), strict=True))
        by_path: dict[tuple[int, ...], float] = {
            (*path, token): value
            for path, number in paths.items()
            for (node, token), value in found.items()
            if node == number
        }
        some = [label for label in labels if generator.random() < 0.6] or ["a"]
        root = tree({label: labels[label] for label in some})
        picked = choose(root, [], Values(by_path), ends=(8, 9), temperature=0.0, seed=0)
        assert spelt.chosen(values, some) == asyncio.run(picked)
        sums = {
            label: sum(by_path[tokens[: n + 1]] for n in range(len(tokens)))
            for label, tokens in labels.items()
        }
        assert spelt.scores(values) == pytest.approx(sums)


def test_packs_hold_every_prompt_with_its_labels_and_share_beginnings() -> None:
    generator = np.random.default_rng(1)
    prompts = [[1, 2, *generator.integers(3, 5, size=generator.integers(1, 9))] for _ in range(40)]
    labels = label_tree([(7, 8), (7, 9), (6,)], ends=(0,))
    seen, nodes = set(), 0
    for pack in packs(prompts, [labels] * len(prompts), room=40):
        nodes += len(pack.tokens)
        wanted = iter(pack.wanted)
        for number in pack.prompts:
            seen.add(number)
            for node, token in labels.wanted:
                place, asked = next(wanted)
                path = []
                while place != NONE:
                    path.append(pack.tokens[place])
                    place = pack.parents[place]
                label = [] if node == NONE else [labels.steps[node][0]]
                assert path[::-1] == [*prompts[number], *label]
                assert asked == token
    assert seen == set(range(len(prompts)))
    assert nodes < sum(map(len, prompts)) + len(prompts) * len(labels.steps)


def test_what_the_model_writes_is_the_answer_of_harnesses_that_let_it_write(
    tmp_path: Path,
) -> None:
    filled(tmp_path, 2)
    table = HarnessTable.read(tmp_path / "table.npz")
    free = [row for key, row in table.keys.items() if "ask:free parse:first" in key]
    assert (table.answers[free] == 255).all()  # "w3 w7" names no label
    assert not table.offered[free].any()
    written = [key for key in table.keys if "ask:free parse:closest" in key]
    assert written
    assert (table.answers[[table.keys[key] for key in written]] < 255).all()


def test_a_harness_of_a_table_must_repeat_its_answers(tmp_path: Path) -> None:
    model = LabelModel(AnswerStore(tmp_path / "answers.db", "m"), {})
    with pytest.raises(InputError, match="cannot sample"):
        model("So", max_tokens=3, temperature=0.7)
    with pytest.raises(InputError, match="must limit"):
        model("So")
    assert model("So", max_tokens=3, stop=["!"]) == ""
    assert model.incomplete
    model._store.close()


def test_without_a_list_of_labels_the_answers_of_examples_are_the_labels() -> None:
    bare = replace(DATA, words=replace(DATA.words, labels=None))
    assert labels_of(bare) == tuple(dict.fromkeys(row.answer for row in DATA.train))
    with pytest.raises(InputError, match="has 1 labels"):
        labels_of(replace(bare, train=bare.train[:1]))


def test_answers_are_kept_by_hash_and_not_as_text(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    stored = (tmp_path / "service-desk-answers.db").read_bytes()
    question = DATA.val[0].question
    assert question.encode() not in stored
    store = AnswerStore(tmp_path / "service-desk-answers.db", "another model")
    assert store.get(question) is None
    store.close()
