"""Pools refuse what makes no pool and keep the order they were given."""

import json
from typing import Any

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
        ({"tasks": ["a"], "weights": {"all": "3"}}, "must be positive, got 3"),
        ({"tasks": ["a"], "costs": ["x"]}, "costs must be numbers"),
        ({"tasks": "abc"}, "got 'abc'"),
        ({"tasks": ["a", "b", "a"]}, "'a' appears more than once"),
        ({"tasks": ["a", ""]}, "non-empty strings, got ''"),
        ({"tasks": ["a", 3]}, "non-empty strings, got 3"),
        ({"tasks": ["a", "b"], "pools": ["x"]}, "pools has 1 entries, but there are 2 tasks"),
        ({"tasks": ["a"], "pools": [""]}, "pool names must be non-empty strings"),
        ({"tasks": ["a"], "weights": {"al": 1.0}}, "pool 'al'.*Did you mean 'all'"),
        ({"tasks": ["a"], "weights": {"all": 0}}, "'all' must be positive, got 0"),
        ({"tasks": ["a"], "weights": {}}, "'all' must be positive, got None"),
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
        pool.position(7)  # type: ignore[arg-type]
    with pytest.raises(UnknownTaskError):
        pool.position(["a"])  # type: ignore[arg-type]
