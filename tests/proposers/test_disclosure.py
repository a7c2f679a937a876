"""What proposers are told of a protocol: its own sentences, and of a baseline nothing else."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coevolve import SearchProtocol, protocol, protocols
from coevolve.core.designs import SuccessiveDesign
from coevolve.core.estimators import Hajek
from coevolve.core.weights import TaskView, UniformWeights
from coevolve.proposers.llm.prompt_context import pack
from coevolve.proposers.llm.prompts import system
from coevolve.proposers.workspace import lay_out
from coevolve.views.history import source_of
from coevolve.views.questions import answer
from tests.proposers.workspace.histories import small

BASELINES = ("full", "naive", "random-resample")
METHOD = re.compile(
    r"estimat|interval|probabilit|weight|±|standard error|inclusion|π|Hájek|anchor|"
    r"tasks on which candidates differ|may be the best",
    re.IGNORECASE,
)


def seen_under(name: str, folder: Path) -> dict[str, str]:
    """Everything that an agent or a model reads, by where it reads it."""
    view = replace(small(), disclosure=protocol(name).disclosure())
    workspace = lay_out(view, folder, count=2)
    pages = {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "bin"
    }
    queries = ("top", "top --json", "show second", "show second --json", "diff first second")
    asked = {query: answer(source_of(view), query.split()) for query in queries}
    prompts = {"system": system(view.disclosure), "context": pack(view, 4_000)}
    return {**pages, **asked, **prompts, "prompt": workspace.prompt}


@pytest.mark.parametrize("name", [known.name for known in protocols()])
def test_every_protocol_brings_its_own_sentences(name: str, tmp_path: Path) -> None:
    told, seen = protocol(name).disclosure(), seen_under(name, tmp_path)
    for place in ("INSTRUCTIONS.md", "system"):
        assert told.draws in seen[place]
        assert told.scores in seen[place]
    assert ("estimates" in seen["SUMMARY.md"].lower()) == told.estimated


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_shows_no_trace_of_the_method(name: str, tmp_path: Path) -> None:
    for place, text in seen_under(name, tmp_path).items():
        assert not METHOD.search(text), (place, METHOD.search(text))


def test_the_sentences_say_what_the_protocol_does() -> None:
    told = {name: protocol(name).disclosure() for name in (*BASELINES, "task-coevolve")}
    assert "every task" in told["full"].draws
    assert "drawn once" in told["naive"].draws
    assert "some of the tasks at random" in told["random-resample"].draws
    assert "mostly tasks on which candidates differ" in told["task-coevolve"].draws
    assert "further tasks" in protocol("adaptive").disclosure().draws
    assert not told["random-resample"].estimated
    each = protocol("naive", design="uniform").disclosure("candidate")
    assert each.draws.startswith("Every candidate gets some of the tasks at random")


class ShortFirst:
    """A weighting of a user."""

    needs_history = needs_model = False
    window = None
    prefers = "mostly short ones"

    def __call__(self, view: TaskView) -> np.ndarray:
        return UniformWeights()(view)


def test_the_sentences_of_a_users_protocol_follow_from_its_parts() -> None:
    mine = SearchProtocol(
        name="mine", weighting=ShortFirst(), design=SuccessiveDesign(), estimator=Hajek()
    )
    assert "some of the tasks, mostly short ones," in mine.disclosure().draws
    assert mine.disclosure().estimated


def test_a_view_without_a_protocol_speaks_of_estimates() -> None:
    assert small().disclosure.estimated
