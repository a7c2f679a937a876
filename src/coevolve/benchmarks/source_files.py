"""Files of a project that decide scores: a Python file, what it imports, and what it reads.

They are found in the source, without running it: a file that is imported or opened by a name that
the program computes is not found. Files that the program writes, such as logs, are left out.
"""

import ast
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

_OPENING = {"open", "Path", "join", "glob", "iglob", "rglob", "listdir", "scandir", "load_dataset"}
"""Functions whose arguments may name a folder that is read."""
_WRITING = {"write_text", "write_bytes", "touch", "mkdir", "unlink", "rename", "connect"}
"""Methods that change a path, and `connect` of databases."""
_SKIPPED = {"__pycache__", ".git", ".venv", "node_modules"}


def source_files(file: Path, base: Path) -> tuple[list[Path], list[Path]]:
    """A Python file with the modules of the project that it imports, and the data they name.

    Args:
        file: The file.
        base: The project folder; other files are not considered.
    """
    modules: dict[Path, None] = {}
    data: dict[Path, None] = {}
    waiting = [file.resolve()]
    roots = [file.resolve().parent, base.resolve()]
    while waiting:
        path = waiting.pop(0)
        if path in modules:
            continue
        modules[path] = None
        tree = _parsed(path)
        waiting += _imported(tree, path, roots)
        data |= dict.fromkeys(_named(tree, roots))
    return list(modules), [path for path in data if path not in modules]


def files_in(folder: Path) -> Iterator[Path]:
    """The files in a folder and below it, in a fixed order, without caches of programs."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix != ".pyc" and path.is_file():
                yield path


def _parsed(path: Path) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # importing the file reports them
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])  # importing the file reports it


def _imported(tree: ast.Module, path: Path, roots: list[Path]) -> Iterator[Path]:
    """The files of the modules that a module imports from the project."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module(alias.name, roots)
        elif isinstance(node, ast.ImportFrom):
            places = roots if not node.level else [path.parents[node.level - 1]]
            name = node.module or ""
            yield from _module(name, places)
            for alias in node.names:
                yield from _module(f"{name}.{alias.name}".strip("."), places)


def _module(name: str, roots: list[Path]) -> Iterator[Path]:
    """The file of a module and those of the packages around it, if the project has them."""
    parts = [part for part in name.split(".") if part.isidentifier()]
    for root in roots:
        for length in range(1, len(parts) + 1):
            place = root.joinpath(*parts[:length])
            for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                if path.is_file():
                    yield path.resolve()


def _named(tree: ast.Module, roots: list[Path]) -> Iterator[Path]:
    """The files and folders of the project that the texts of a module name."""
    for text, may_be_folder in _texts(tree):
        if not text.strip("./ ") or len(text) > 400 or "\0" in text:
            continue
        for root in roots:
            path = (root / text).resolve()
            inside = path != root and any(path.is_relative_to(place) for place in roots)
            if not inside or any(place.is_relative_to(path) for place in roots):
                continue
            if _is_file(path) or (may_be_folder and path.is_dir()):
                yield path
                break


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the text is no path, such as one that is too long
        return False


def _texts(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Texts that may be paths, and whether they may name a folder."""
    inner, written = set[int](), _written(tree)
    for node in ast.walk(tree):
        if id(node) in written:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if id(node) not in inner:
                operands = _operands(node, inner)
                yield _joined(operands), True
        elif isinstance(node, ast.JoinedStr):
            yield _joined(node.values[:1]).rpartition("/")[0], True
        elif isinstance(node, ast.Call) and _function(node) in _OPENING:
            yield _joined(list(node.args)), True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, False


def _written(tree: ast.Module) -> set[int]:
    """The nodes that are part of a path which the module writes to, itself or by its name."""
    calls = {node: target for node in ast.walk(tree) if (target := _target(node)) is not None}
    targets = list(calls.values())
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None:
            places = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(place, ast.Name) and place.id in names for place in places):
                targets.append(value)
    return {id(part) for target in targets for part in ast.walk(target)} | set(map(id, calls))


def _target(node: ast.AST) -> ast.expr | None:
    """The path that a call writes to, if it does."""
    if not isinstance(node, ast.Call):
        return None
    function, method = _function(node), isinstance(node.func, ast.Attribute)
    path = node.func.value if isinstance(node.func, ast.Attribute) else None
    given = list(node.args)
    if function == "connect" or (function == "open" and not method):
        path, given = (given[0], given[1:]) if given else (None, [])
    if function == "open":
        modes = [*given[:1], *(word.value for word in node.keywords if word.arg == "mode")]
        texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
        return path if any(set("wax+") & set(str(text)) for text in texts) else None
    return path if function in _WRITING else None


def _operands(node: ast.BinOp, inner: set[int]) -> list[ast.expr]:
    """The operands of a path such as `HERE / "data" / name`."""
    found: list[ast.expr] = [node.right]
    left = node.left
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div):
        inner.add(id(left))
        found.insert(0, left.right)
        left = left.left
    return [left, *found]


def _joined(parts: list[ast.expr]) -> str:
    """The first texts in a row as one path."""
    found: list[str] = []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.append(part.value)
        elif found:
            break
    return "/".join(found)


def _function(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))
