"""Every part of a protocol can be set by name; a setting without effect is refused."""

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest

from coevolve import Pool, SearchProtocol, Selector, protocol
from coevolve.core.allocation import AdaptiveShare, Share
from coevolve.core.arrays import Floats
from coevolve.core.choice import HighestEstimate
from coevolve.core.designs import SuccessiveDesign
from coevolve.core.estimators import Difference, Hajek, HorvitzThompson, PhaseZeroRule, RawMean
from coevolve.core.joint import Joint
from coevolve.core.protocol_settings import (
    PARTS,
    changed,
    changed_where_fitting,
    setting_types,
    settings_of,
)
from coevolve.core.protocols import protocol_from_json
from coevolve.core.weights import TaskView, VarianceWeights
from coevolve.errors import InputError, UnfitSettingError

POOLS = Pool({f"p{size}": [f"{size}-{i}" for i in range(size)] for size in (30, 50, 51)})


def test_the_settings_of_the_paper() -> None:
    made = protocol(
        "task-coevolve",
        rounding="floor",
        inclusion="monte-carlo",
        repetitions=500,
        threshold=0.1,
        floor=0.2,
        bonus=0.05,
        window=3,
        tie_break="latest",
    )
    assert made.weighting == VarianceWeights(floor=0.2, bonus=0.05, window=3)
    assert made.design == SuccessiveDesign(inclusion="monte-carlo", repetitions=500)
    assert made.estimator == PhaseZeroRule(threshold=0.1)
    assert made.allocation == Share(rounding="floor")
    assert made.choice == HighestEstimate(tie_break="latest")
    assert made.name == "task-coevolve"
    assert protocol_from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("phase-zero", PhaseZeroRule()),
        ("difference", Difference()),
        ("hajek", Hajek()),
        ("horvitz-thompson", HorvitzThompson()),
        ("raw-mean", RawMean()),
        ("pooled-mean", RawMean(together=True)),
        ("joint", Joint()),
    ],
)
def test_estimators_have_plain_names(name: str, estimator: object) -> None:
    assert protocol("task-coevolve", estimator=name).estimator == estimator


def test_adaptive_has_a_first_look_a_reserve_and_a_rounding() -> None:
    made = protocol("adaptive", first_look=0.25, reserve=0.1, rounding="floor", fraction=0.07)
    expected = AdaptiveShare(fraction=0.07, first_look=0.25, reserve=0.1, rounding="floor")
    assert made.allocation == expected
    assert expected.shares(POOLS) == (2, 3, 3)
    old = protocol("adaptive").to_json()
    old["allocation"] = {"part": "AdaptiveShare", "fraction": 0.2, "first": 0.3}
    assert protocol_from_json(old).allocation == AdaptiveShare(first_look=0.3)


def test_another_allocation_keeps_the_fraction() -> None:
    small = protocol("task-coevolve", fraction=0.07)
    made = changed(small, {"allocation": "adaptive", "estimator": "joint"})
    assert made.allocation == AdaptiveShare(fraction=0.07)


@pytest.mark.parametrize("name", ["naive", "task-coevolve", "joint", "adaptive", "cost-aware"])
def test_settings_at_their_own_values_change_nothing(name: str) -> None:
    shown = {key: found.value for key, found in settings_of(protocol(name)).items()}
    unfit = {"weighting"} if name == "naive" else {"repetitions"}
    same = {k: v for k, v in shown.items() if v is not None and k not in unfit}
    assert protocol(name, **same) == protocol(name)


def test_every_scalar_field_of_a_built_in_part_is_a_setting() -> None:
    named = {"redraws", "together"}  # the names of the parts stand for them
    all_fields = {f.name for known in PARTS.values() for p in known.values() for f in fields(p)}
    assert all_fields - named == setting_types().keys() - PARTS.keys()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("naive", {"floor": 0.1}, "floor has no effect on protocol 'naive': it needs weighting ="),
        ("naive", {"weighting": "variance"}, "its draws are uniform; it needs design ="),
        ("random-resample", {"threshold": 0.1}, "it needs estimator = 'phase-zero'"),
        ("task-coevolve", {"repetitions": 9}, "it needs inclusion = 'monte-carlo'"),
        ("task-coevolve", {"reserve": 0.1}, "it needs allocation = 'adaptive'"),
        ("full", {"rounding": "floor"}, "it needs allocation = 'share' or allocation = 'adaptiv"),
        ("full", {"estimator": "raw-mean"}, "every candidate is evaluated on every task"),
        ("halving", {"tie_break": "latest"}, "it needs choice = 'highest-estimate'"),
        (
            "item-information",
            {"steps": 9},
            "its estimator and its allocation both have this field",
        ),
    ],
)
def test_a_setting_without_effect_is_refused(
    name: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(UnfitSettingError) as error:
        protocol(name, **settings)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounding": "up"}, "rounding must be 'ceil' or 'floor', got 'up'"),
        ({"floor": "high"}, "floor must be a number, got 'high'"),
        ({"floor": True}, "floor must be a number, got True"),
        ({"floor": float("nan")}, "floor must be a number, got nan"),
        ({"floor": -1}, "floor must be at least 0, got -1"),
        ({"window": 1.5}, "window must be a whole number, got 1.5"),
        ({"estimator": "best"}, "estimator must be 'phase-zero', 'difference', 'hajek'"),
        ({"roundin": "floor"}, "Did you mean 'rounding'?"),
    ],
)
def test_wrong_values_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        protocol("task-coevolve", **settings)
    assert message in str(error.value)


def test_a_protocol_that_draws_by_a_model_keeps_one() -> None:
    with pytest.raises(InputError, match="draws by a joint model; use one as the estimator"):
        protocol("adaptive", estimator="hajek")


def test_settings_of_several_protocols_apply_where_they_fit() -> None:
    rules = [protocol(name) for name in ("naive", "task-coevolve", "full")]
    made = changed_where_fitting(rules, {"rounding": "floor", "floor": 0.2})
    assert [rule.allocation for rule in made[:2]] == [Share(rounding="floor")] * 2
    assert made[1].weighting == VarianceWeights(floor=0.2)
    assert made[2] == rules[2]
    with pytest.raises(UnfitSettingError, match="reserve has no effect on naive, task-coevolve"):
        changed_where_fitting(rules[:2], {"reserve": 0.1})
    with pytest.raises(InputError, match="unknown setting 'flor'"):
        changed_where_fitting(rules, {"flor": 0.1})


@dataclass(frozen=True)
class Hardest:
    """Weights of a user.

    Args:
        power: How much harder tasks
            are preferred.
    """

    power: float = 2.0
    shapes: tuple[int, ...] = ()
    needs_history: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view: TaskView) -> Floats:
        return np.asarray((1.1 - view.history.anchors) ** self.power)


def test_a_users_part_brings_the_settings_of_its_fields() -> None:
    mine = SearchProtocol(name="mine", weighting=Hardest(), design=SuccessiveDesign())
    made = changed(mine, {"power": 3.0, "rounding": "floor"})
    assert made == replace(mine, weighting=Hardest(power=3.0), allocation=Share(rounding="floor"))
    found = settings_of(mine)
    assert found["power"].meaning == "How much harder tasks are preferred."
    assert found["weighting"].value == "Hardest"
    assert "shapes" not in found


def test_a_selector_takes_a_protocol_with_settings() -> None:
    rule = protocol("random-resample", rounding="floor")
    selector = Selector(POOLS, protocol=rule, fraction=0.07)
    (assignment,) = selector.ask(["c"])
    assert [len(design.tasks) for design in assignment.designs] == [2, 3, 3]
    assert Selector.from_events(selector.events).protocol == selector.protocol
