"""Protocols by name, registered ones, and their parts as JSON."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from coevolve import SearchProtocol, protocol, protocols, register
from coevolve.core import protocols as module
from coevolve.core.allocation import Share, WholePool
from coevolve.core.arrays import Floats
from coevolve.core.designs import SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Hajek, PhaseZeroRule, RawMean
from coevolve.core.protocols import protocol_from_json
from coevolve.core.weights import TaskView, UniformWeights, VarianceWeights
from coevolve.errors import EventError, InputError, UnknownProtocolError

from .strategies import BUILT_IN


@dataclass(frozen=True)
class HardFirst:
    """A weighting of a user's own."""

    power: tuple[int, ...] = (2,)
    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view: TaskView) -> Floats:
        return np.asarray((1.1 - view.history.anchors) ** self.power[0])


@pytest.fixture(autouse=True)
def _forget_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLUGS", dict(module.PLUGS))


def test_the_built_in_protocols_are_the_rows_of_the_paper() -> None:
    parts = {p.name: (p.weighting, p.design, p.estimator, p.allocation) for p in protocols()}
    assert parts["full"] == (UniformWeights(), UniformDesign(), Hajek(), WholePool())
    assert parts["naive"] == (UniformWeights(), UniformDesign(redraws=False), RawMean(), Share())
    assert parts["random-resample"] == (UniformWeights(), UniformDesign(), RawMean(), Share())
    estimate = (UniformWeights(), UniformDesign(), PhaseZeroRule(), Share())
    assert parts["random-estimate"] == estimate
    paper = (
        VarianceWeights(floor=0.125, bonus=0.025),
        SuccessiveDesign(),
        PhaseZeroRule(),
        Share(),
    )
    assert parts["task-coevolve"] == paper


@pytest.mark.parametrize(
    ("name", "hint"),
    [("task-coevolv", "Did you mean 'task-coevolve'"), ("xyz", "use one of full, naive")],
)
def test_unknown_names_are_answered_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UnknownProtocolError, match=hint):
        protocol(name)


def test_registering_makes_a_protocol_known_once() -> None:
    mine = SearchProtocol(name="mine", weighting=HardFirst())
    register(mine)
    register(mine)
    assert protocol("mine") is mine
    with pytest.raises(InputError, match="already registered as 'mine'"):
        register(replace(mine, weighting=UniformWeights()))


@pytest.mark.parametrize("name", BUILT_IN)
def test_protocols_survive_json(name: str) -> None:
    assert protocol_from_json(protocol(name).to_json()) == protocol(name)


def test_changed_parts_survive_json() -> None:
    changed = replace(protocol("task-coevolve"), allocation=Share(fraction=0.07, rounding="floor"))
    assert protocol_from_json(changed.to_json()) == changed


def test_a_raw_mean_recorded_before_pools_were_averaged_is_one_of_all_tasks() -> None:
    recorded = protocol("naive").to_json() | {"estimator": {"part": "RawMean"}}
    assert protocol_from_json(recorded).estimator == RawMean(together=True)


def test_parts_of_ones_own_are_found_by_registration_or_passed() -> None:
    mine = SearchProtocol(name="mine", weighting=HardFirst())
    with pytest.raises(EventError, match="HardFirst', which is not a built-in part"):
        protocol_from_json(mine.to_json())
    assert protocol_from_json(mine.to_json(), mine) == mine
    register(mine)
    assert protocol_from_json(mine.to_json()) == mine


def test_a_part_with_a_built_in_name_is_not_taken_for_it() -> None:
    namesake = type("UniformDesign", (UniformDesign,), {})
    mine = SearchProtocol(name="mine", design=namesake())
    with pytest.raises(EventError, match="not a built-in part"):
        protocol_from_json(mine.to_json())


def test_another_protocol_than_the_recorded_one_is_refused() -> None:
    recorded = protocol("task-coevolve").to_json()
    with pytest.raises(EventError, match=r"weighting was .* in the events, but is"):
        protocol_from_json(recorded, replace(protocol("naive"), name="task-coevolve"))
    other = replace(protocol("task-coevolve"), allocation=Share(fraction=0.5))
    assert protocol_from_json(recorded, other) == protocol("task-coevolve")


def test_parts_are_checked_for_what_they_are() -> None:
    with pytest.raises(InputError, match="'uniform' cannot be the weighting"):
        SearchProtocol(name="mine", weighting="uniform")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="register takes a SearchProtocol, got 'x'"):
        register("x")  # type: ignore[arg-type]


def test_parts_must_be_dataclasses() -> None:
    class Plain:
        needs_history, needs_model, window = False, False, None

        def __call__(self, view: TaskView) -> Floats:
            return np.ones(len(view.history.count))

    with pytest.raises(InputError, match="must be a dataclass"):
        SearchProtocol(name="mine", weighting=Plain()).to_json()


def test_parts_must_be_plain_json() -> None:
    mine = SearchProtocol(name="mine", weighting=HardFirst(power=(object(),)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be plain JSON"):
        mine.to_json()


def test_what_needs_phase_zero() -> None:
    needs = {p.name: p.needs_history for p in map(protocol, BUILT_IN)}
    assert needs == {
        "full": False,
        "naive": False,
        "random-resample": False,
        "random-estimate": True,
        "task-coevolve": True,
    }
