"""The page on configuration lists every key there is, and no other."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from coevolve.runs.config import RunConfig
from coevolve.runs.plugs import BENCHMARKS, PROPOSERS

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
SECTIONS = dict(re.findall(r"^## `\[(\w+)\]`\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S))
KINDS = {"benchmark": BENCHMARKS, "proposer": PROPOSERS}


def keys(table: str) -> set[str]:
    if table in KINDS:
        return {key for model in KINDS[table].values() for key in model.model_fields}
    annotation = RunConfig.model_fields[table].annotation
    found = [m for m in (annotation, *get_args(annotation)) if isinstance(m, type)]
    model = next(m for m in found if issubclass(m, BaseModel))
    return set(model.model_fields)


@pytest.mark.parametrize("table", list(RunConfig.model_fields))
def test_every_key_is_listed(table: str) -> None:
    listed = set(re.findall(r"`(\w+)`", SECTIONS[table]))
    assert keys(table) <= listed | {"kind"}
    rows = set(re.findall(r"^\| `(\w+)` \|", SECTIONS[table], flags=re.M))
    assert rows <= keys(table), "it lists keys that are not there"
