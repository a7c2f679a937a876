"""Names to plugs: built in, installed as an entry point, or `package.module:name`.

Benchmarks, proposers, executors, models and protocols are all found here, in this order:

1. a built-in name, from the table `PLUGS` of the family's package;
2. a name that an installed distribution declares as an entry point of the group
   `coevolve.benchmarks`, `coevolve.proposers`, `coevolve.executors`, `coevolve.models` or
   `coevolve.protocols`;
3. `package.module:name`, where the project folder comes first on the import path.
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args
from zlib import crc32

from coevolve.errors import ConfigError, nearest

Family = Literal["benchmarks", "proposers", "executors", "models", "protocols"]
FAMILIES: tuple[Family, ...] = get_args(Family)
REFERENCE = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")
"""What `package.module:name` looks like."""
_TABLES = {family: f"coevolve.{family}" for family in FAMILIES} | {
    "protocols": "coevolve.core.protocols"
}


def find(family: Family, name: str, *, folder: Path | None = None) -> Any:
    """The plug of a family with this name.

    Args:
        family: What is looked for.
        name: A built-in name, the name of an entry point, or `package.module:name`.
        folder: The project folder, from which modules are imported first.

    Raises:
        ConfigError: There is no such plug, or importing it failed.

    >>> find("protocols", "full").name
    'full'
    """
    built_in = _built_in(family)
    if name in built_in:
        return _resolved(built_in[name])
    installed = _installed(family)
    if name in installed:
        try:
            return installed[name].load()
        except Exception as error:
            raise ConfigError(
                f"the entry point {name!r} of coevolve.{family} "
                f"({installed[name].value}) failed to load: {type(error).__name__}: {error}"
            ) from error
    if REFERENCE.match(name):
        return load_reference(name, folder=folder)
    known = names(family)
    raise ConfigError(
        f"unknown {family.removesuffix('s')} {name!r}; use one of {', '.join(known)}, or "
        f"package.module:name.{nearest(name, known)}"
    )


def names(family: Family) -> tuple[str, ...]:
    """Every name that can be found without a module path: built-in ones first.

    >>> "adaptive" in names("protocols")
    True
    """
    built_in = _built_in(family)
    return (*built_in, *sorted(set(_installed(family)) - set(built_in)))


def load_reference(reference: str, *, folder: Path | None = None) -> Any:
    """The object that `package.module:name` refers to.

    Raises:
        ConfigError: The module cannot be imported, or has no such name.
    """
    if not REFERENCE.match(reference):
        raise ConfigError(f"{reference!r} is not of the form package.module:name.")
    path, name = reference.split(":")
    with _importing_from(folder):
        try:
            found: Any = importlib.import_module(path)
        except Exception as error:
            raise ConfigError(
                f"{reference!r} cannot be imported: {type(error).__name__}: {error}"
            ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{path} has no {name!r}.{nearest(part, vars(found))}")
        found = getattr(found, part)
    return found


def load_module(path: Path) -> ModuleType:
    """The module in a Python file; the file may import what lies beside it.

    Raises:
        ConfigError: There is no such file, or importing it failed; the message has the line.
    """
    path = path.resolve()
    name = f"coevolve_user_{path.stem}_{crc32(str(path).encode()):08x}"
    spec = spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    with _importing_from(path.parent):
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise ConfigError(f"{path} cannot be loaded: {_located(error, path)}") from error
    return module


def load_function(path: Path, name: str) -> Callable[..., Any]:
    """A function of a Python file.

    Raises:
        ConfigError: The file cannot be loaded or has no such function.
    """
    module = load_module(path)
    found = getattr(module, name, None)
    if not callable(found):
        known = [key for key, value in vars(module).items() if callable(value)]
        raise ConfigError(f"{path} defines no function {name!r}.{nearest(name, known)}")
    return found  # type: ignore[no-any-return]


def _built_in(family: Family) -> Mapping[str, Any]:
    found: Mapping[str, Any] = importlib.import_module(_TABLES[family]).PLUGS
    return found


@cache
def _installed(family: Family) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"coevolve.{family}")}


def _resolved(found: Any) -> Any:
    return load_reference(found) if isinstance(found, str) else found


@contextmanager
def _importing_from(folder: Path | None) -> Iterator[None]:
    """Import from a folder first, if one is given."""
    if folder is None:
        yield
        return
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _located(error: Exception, path: Path) -> str:
    """The error, and the last line of the file it went through."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"
