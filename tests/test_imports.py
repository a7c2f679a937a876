"""Imports go one way, and importing the package stays light."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import coevolve

SOURCE = Path(coevolve.__file__).parent
LAYERS = (
    {"errors"},
    {"registry", "findings", "formatting", "redaction", "service_words"},
    {"settings"},
    {"core"},
    {"past_results"},
    {"search"},
    {"store", "views", "executors", "models"},
    {"figures"},
    {"reports"},
    {"proposers"},
    {"benchmarks"},
    {"testing"},
    {"runs"},
    {"analysis", "dashboard", "integrations", "tables"},
    {"cli"},
    {"__main__"},
)
RANK = {folder: rank for rank, layer in enumerate(LAYERS) for folder in layer}
CORE_MAY_USE = {"coevolve", "numpy", "scipy", "threadpoolctl"}


def imports(path: Path) -> Iterator[str]:
    """Modules a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield str(node.module)
            if node.module == "coevolve":
                names = {alias.name for alias in node.names} & {p.stem for p in SOURCE.iterdir()}
                yield from (f"coevolve.{name}" for name in names)


def folder(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_folder_has_a_place_in_the_order() -> None:
    folders = {folder(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert folders <= RANK.keys()


def test_imports_go_one_way() -> None:
    for path in SOURCE.rglob("*.py"):
        own = RANK.get(folder(path), len(LAYERS))
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "coevolve" and len(parts) > 1:
                same = parts[1] == folder(path)
                assert same or RANK[parts[1]] < own, f"{path} imports {name}"


def test_the_core_uses_arithmetic_only() -> None:
    allowed = CORE_MAY_USE | sys.stdlib_module_names
    outside = {"os", "io", "pathlib", "subprocess", "socket", "time", "datetime", "random"}
    for path in (SOURCE / "core").rglob("*.py"):
        for name in imports(path):
            top = name.split(".")[0]
            assert top in allowed, f"{path} imports {name}"
            assert top not in outside, f"{path} imports {name}: no I/O, no clock in the core"


def test_importing_the_package_loads_numpy_and_nothing_heavier() -> None:
    code = "import json, sys; before = set(sys.modules); import coevolve; " + (
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    third_party = {name.split(".")[0] for name in json.loads(out)} - sys.stdlib_module_names
    loaded = {name for name in third_party if not name.startswith(("_", "cython"))}
    assert loaded == {"coevolve", "numpy"}


def test_public_names_are_sorted_and_explained_by_example() -> None:
    assert coevolve.__all__ == sorted(coevolve.__all__)
    for name in coevolve.__all__:
        text = getattr(coevolve, name).__doc__
        assert text, name
        assert name == "CoevolveError" or ">>>" in text, f"{name} has no example"


def test_the_layout_in_contributing_is_that_of_the_tree() -> None:
    root = Path(__file__).parents[1]
    text = (root / "CONTRIBUTING.md").read_text()
    picture = re.findall(r"^  ([\w.]+)/? +\S", text.partition("```text\n")[2], flags=re.M)
    drawn = {name.removesuffix(".py") for name in picture}
    there = {folder(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert drawn == there
    above = [RANK[name.removesuffix(".py")] for name in picture]
    assert above == sorted(above), "the picture is in the order of imports"
    for path in re.findall(r"`((?:src|tests|docs|reproductions|benchmarks)/[\w./-]+)`", text):
        assert (root / path).exists(), path
