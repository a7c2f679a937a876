"""Pools refuse what makes no pool and keep the order they were given."""

import json
from typing import Any

import numpy as np
import pytest

from coevolve import Pool
from coevolve.errors import PoolError, UnknownTaskError


def test_tasks_belong_to_named_pools() -> None:
    pool = Pool(["a", "b", "c", "d"], pools=["x", "y", "x", "y"], costs=[1, 2, 3, 4])
    assert pool.names == ("x", "y")
    assert pool.members("x").tolist() == [0, 2]
    assert pool.members("y").tolist() == [1, 3]
    assert pool.weights.tolist() == [0.5, 0.5]
    assert pool.costs is not None
    assert pool.costs.tolist() == [1, 2, 3, 4]
    assert repr(pool) == "Pool(4 tasks; x: 2, y: 2)"


def test_grouped_and_listed_pools_are_the_same() -> None:
    grouped = Pool.grouped({"x": ["a", "b"], "y": ["c"]}, costs={"a": 1, "b": 2, "c": 3})
    listed = Pool(["a", "b", "c"], pools=["x", "x", "y"], costs=[1, 2, 3])
    assert grouped.to_json() == listed.to_json()


@pytest.mark.parametrize(
    "pool",
    [
        Pool(["a", "b"]),
        Pool(["a", "b", "c"], pools=["x", "y", "x"], weights={"x": 1, "y": 6}, costs=[0.1, 2, 3]),
    ],
)
def test_json_keeps_a_pool_bit_for_bit(pool: Pool) -> None:
    text = json.dumps(pool.to_json())
    assert json.dumps(Pool.from_json(json.loads(text)).to_json()) == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": []}, "at least one task"),
        ({"tasks": None}, "collection of ids, got None"),
        ({"tasks": ["a"], "weights": {"all": "3"}}, "must be positive, got '3'"),
        ({"tasks": ["a"], "costs": ["x"]}, "costs must be numbers"),
        ({"tasks": "abc"}, "got 'abc'"),
        ({"tasks": ["a", "b", "a"]}, "'a' appears more than once"),
        ({"tasks": ["a", ""]}, "must be a non-empty text, .* got ''"),
        ({"tasks": ["a", None]}, "got None"),
        ({"tasks": [1, True]}, "appears more than once"),
        ({"tasks": ["a", float("nan")]}, "got nan"),
        ({"tasks": ["a"], "scale": (1, 1)}, "two different numbers"),
        ({"tasks": ["a"], "scale": (1, 0)}, "the lower first"),
        ({"tasks": ["a"], "scale": 5}, "the lowest and the highest score, got 5"),
        ({"tasks": ["a"], "scale": (0, float("inf"))}, "two different numbers"),
        ({"tasks": ["a"], "scale": (-1e308, 1e308)}, "from -1e15 to 1e15"),
        ({"tasks": ["a"], "weights": [1]}, r"mapping from pool to weight, got \[1\]"),
        ({"tasks": ["a", "b"], "pools": ["x"]}, "pools has 1 entries, but there are 2 tasks"),
        ({"tasks": ["a"], "pools": [""]}, "pool names must be non-empty strings"),
        ({"tasks": ["a"], "weights": {"al": 1.0}}, "pool 'al'.*Did you mean 'all'"),
        ({"tasks": ["a"], "weights": {"all": 0}}, "'all' must be positive, got 0"),
        ({"tasks": ["a"], "weights": {}}, "no entry for pool 'all'; give every pool one"),
        ({"tasks": ["a"], "weights": {"all": float("nan")}}, "must be positive, got nan"),
        ({"tasks": ["a", "b"], "costs": [1.0]}, r"costs has shape \(1,\)"),
        ({"tasks": ["a", "b"], "costs": [1.0, 0.0]}, "task 'b' must be positive, got 0.0"),
    ],
)
def test_what_makes_no_pool_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PoolError, match=message):
        Pool(**arguments)


def test_groups_must_have_tasks_and_costs() -> None:
    with pytest.raises(PoolError, match="pool 'y' has no task"):
        Pool.grouped({"x": ["a"], "y": []})
    with pytest.raises(PoolError, match="no entry for task 'a'"):
        Pool.grouped({"x": ["a"]}, costs={})
    with pytest.raises(PoolError, match="pool 'x' must be a collection of ids, got 'abc'"):
        Pool.grouped({"x": "abc"})
    with pytest.raises(PoolError, match="grouped needs"):
        Pool.grouped(["a"])  # type: ignore[arg-type]
    with pytest.raises(PoolError, match="no pool 'y'"):
        Pool(["a"]).members("y")


def test_pools_and_costs_may_be_given_by_task() -> None:
    by_task = Pool(["a", "b"], pools={"b": "y", "a": "x"}, costs={"b": 2.0, "a": 1.0})
    assert by_task.to_json() == Pool(["a", "b"], pools=["x", "y"], costs=[1, 2]).to_json()
    with pytest.raises(PoolError, match="pools has no entry for task 'b'"):
        Pool(["a", "b"], pools={"a": "x"})


def test_unknown_tasks_are_named_with_the_nearest() -> None:
    pool = Pool(["sort-list", "parse-json"])
    with pytest.raises(UnknownTaskError, match=r"'sort-lst'.*Did you mean 'sort-list'"):
        pool.position("sort-lst")
    with pytest.raises(UnknownTaskError, match="'nope'"):
        pool.positions(["sort-list", "nope"])
    with pytest.raises(UnknownTaskError, match="7"):
        pool.position(7)
    with pytest.raises(UnknownTaskError):
        pool.position(["a"])


def test_a_mapping_of_lists_is_a_mapping_of_pools() -> None:
    pool = Pool({"even": ["2", "4"], "odd": ("1",)}, weights={"even": 3, "odd": 1})
    assert pool.tasks == ("2", "4", "1")
    assert pool.names == ("even", "odd")
    assert (
        pool.to_json()
        == Pool.grouped(
            {"even": ["2", "4"], "odd": ["1"]}, weights={"even": 3, "odd": 1}
        ).to_json()
    )
    assert Pool({"a": {"question": 1}, "b": {"question": 2}}).tasks == ("a", "b")
    assert Pool({"a": "text", "b": "text"}).names == ("all",)
    with pytest.raises(PoolError, match="pool 'odd' has no task"):
        Pool({"even": ["2"], "odd": []})


IDS: list[Any] = ["text", 7, -0.5, True, ("math", 7), (("a", 1), 2.5, False), 10**30]


def test_ids_of_any_json_type_come_back_as_they_were() -> None:
    pool = Pool(IDS)
    again = Pool.from_json(json.loads(json.dumps(pool.to_json())))
    assert again.tasks == pool.tasks == tuple(IDS)
    assert list(map(type, again.tasks)) == list(map(type, pool.tasks))
    assert again.positions([["math", 7], True]).tolist() == [4, 3]
    assert Pool([["math", 7], np.int64(3)]).tasks == (("math", 7), 3)


def test_a_pool_can_grow() -> None:
    pool = Pool({"x": ["a", "b"], "y": ["c"]}, costs={"a": 1, "b": 2, "c": 3}, scale=(0, 5))
    more = pool.grown({"y": ["d"], "x": ["e"]}, costs={"d": 4, "e": 5})
    assert more.tasks == ("a", "b", "c", "d", "e")
    assert more.labels == ["x", "x", "y", "y", "x"]
    assert more.costs is not None
    assert more.costs.tolist() == [1, 2, 3, 4, 5]
    assert (more.scale, more.weights.tolist()) == ((0, 5), [0.5, 0.5])
    assert Pool(["a"]).grown(["b"], pools=["new"]).weights.tolist() == [0.5, 0.5]


def test_what_cannot_be_added_is_refused() -> None:
    pool = Pool({"x": ["a", "b"], "y": ["c"]}, weights={"x": 3, "y": 1})
    with pytest.raises(PoolError, match="'a' is already in the pool"):
        pool.grown({"x": ["a"]})
    with pytest.raises(PoolError, match="say which pool"):
        pool.grown(["d"])
    with pytest.raises(PoolError, match=r"'z' is new .* give the weights of all pools"):
        pool.grown({"z": ["d"]})
    with pytest.raises(PoolError, match="need costs if, and only if"):
        pool.grown({"x": ["d"]}, costs={"d": 1})
    assert pool.grown({"z": ["d"]}, weights={"x": 2, "y": 1, "z": 1}).weights.tolist() == [
        0.5,
        0.25,
        0.25,
    ]
