"""`coevolve data`: getting and listing the published sets."""

import json
import os
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass.published_sets import KNOWN
from tests.benchmarks.textclass.files import PUBLISHED, needs_published
from tests.cli.projects import coevolve


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "COEVOLVE_CACHE": str(tmp_path / "cache")}


@needs_published
def test_sets_are_got_once_and_then_listed(tmp_path: Path, env: dict[str, str]) -> None:
    kept = tmp_path / "cache" / "data" / "textclass"
    done = coevolve("data", "get", "law", "s2d", "--from", PUBLISHED, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"law: fetched from {PUBLISHED}, in {kept / 'law'}"
    again = coevolve("data", "get", "law", "--json", env=env)
    assert json.loads(again.stdout) == [
        {"set": "law", "folder": str(kept / "law"), "origin": None}
    ]
    listed = json.loads(coevolve("data", "list", "--json", env=env).stdout)
    here = {row["set"]: row["here"] for row in listed}
    assert here == {"uspto": False, "s2d": True, "law": True, "service-desk": True}


def test_the_list_says_how_to_get_what_is_missing(env: dict[str, str]) -> None:
    shown = coevolve("data", "list", env=env).stdout
    for known in KNOWN.values():
        assert known.title in shown
    assert "service-desk" in shown
    assert shown.endswith("Get the others with: coevolve data get uspto s2d law\n")
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_without_network_the_error_says_how_from_helps(env: dict[str, str]) -> None:
    nowhere = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:1")
    done = coevolve("data", "get", "law", env={**env, **nowhere})
    assert done.returncode == 2
    assert "cannot fetch https://" in done.stderr
    assert "--from FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("get", "laws"), "there is no data set 'laws'"),
        (("get", "service-desk"), "is included in coevolve"),
        (("get", "law", "--from", "/does/not/exist"), "there is no folder /does/not/exist"),
        (("get",), "Missing argument"),
    ],
)
def test_a_mistake_exits_with_2(
    env: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    done = coevolve("data", *arguments, env=env)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
