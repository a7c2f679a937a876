"""Names to plugs: built in, installed as an entry point, or `package.module:name`.

Benchmarks, proposers, executors, models and protocols are all found here, in this order:

1. a built-in name, from the table `PLUGS` of the family's package;
2. a name that an installed distribution declares as an entry point of the group
   `coevolve.benchmarks`, `coevolve.proposers`, `coevolve.executors`, `coevolve.models` or
   `coevolve.protocols`;
3. `package.module:name`, where the project folder comes first on the import path.

A plug is a settings class (`coevolve.settings.Table`) that builds it, a function or class that
returns it, or, for protocols, the `SearchProtocol` itself.
"""

import importlib
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args
from zlib import crc32

from coevolve.errors import CoevolveError, ConfigError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Family = Literal["benchmarks", "proposers", "executors", "models", "protocols"]
FAMILIES: tuple[Family, ...] = get_args(Family)
REFERENCE = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")
"""The form `package.module:name`."""
ANY = "*"
"""In a family's table: the plug for all other names."""
_USER = "coevolve_user_"
_OURS = str(Path(__file__).parent)
_INSTALLED = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
_FIXED = sys.stdlib_module_names | {"coevolve", "numpy", "scipy"}
_TABLES = {family: f"coevolve.{family}" for family in FAMILIES} | {
    "protocols": "coevolve.core.protocols"
}


def find(family: Family, name: str, *, folder: Path | None = None) -> Any:
    """The plug of a family with this name.

    Args:
        family: The family of the plug.
        name: A built-in name, the name of an entry point, or `package.module:name`.
        folder: The project folder, from which modules are imported first.

    Raises:
        ConfigError: There is no such plug, or importing it failed.

    >>> find("protocols", "full").name
    'full'
    """
    built_in = _built_in(family)
    if name in built_in:
        found = built_in[name]
        return load_reference(found) if isinstance(found, str) else found
    installed = _installed(family)
    if name in installed:
        try:
            return installed[name].load()
        except Exception as error:
            raise ConfigError(
                f"the entry point {name!r} of coevolve.{family} "
                f"({installed[name].value}) failed to load: {described(error, folder)}"
            ) from error
    if REFERENCE.match(name):
        return load_reference(name, folder=folder)
    if ANY in built_in:
        return load_reference(built_in[ANY])
    known = names(family)
    raise ConfigError(
        f"unknown {family.removesuffix('s')} {name!r}; use {'one of ' if len(known) > 1 else ''}"
        f"{', '.join(known)}, or package.module:name.{nearest(name, known)}"
    )


def reference(family: Family, name: str) -> str:
    """The plug of a name as `package.module:name`, for another process to find it.

    >>> reference("benchmarks", "my_module:make")
    'my_module:make'
    """
    built_in, installed = _built_in(family), _installed(family)
    if name in built_in:
        return str(built_in[name])
    if name in installed:
        return f"{installed[name].module}:{installed[name].attr}"
    return name


def make(
    family: Family,
    name: str,
    *given: Any,
    arguments: Mapping[str, Any],
    members: Sequence[str],
    folder: Path | None = None,
) -> Any:
    """Call the function or class of a name, and return its result.

    Args:
        family: The family of the plug.
        name: As for `find`.
        given: Its first arguments.
        arguments: Its keyword arguments.
        members: The attributes and methods that the returned object must have.
        folder: The project folder.

    Raises:
        ConfigError: It cannot be found, raised an error, or returned something else; the message
            names the place.
    """
    factory, what = find(family, name, folder=folder), f"the {family.removesuffix('s')} {name!r}"
    try:
        made = factory(*given, **arguments)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{what} cannot be built: {described(error, folder)}") from error
    if lacking := [member for member in members if not hasattr(made, member)]:
        raise ConfigError(
            f"{what} returned an object of type {type(made).__name__}, which has no "
            f"{', '.join(lacking)}; see 'Plugs of your own' in docs/configuration.md."
        )
    return made


def names(family: Family) -> tuple[str, ...]:
    """Every name that can be found without a module path, built-in names first.

    >>> "adaptive" in names("protocols")
    True
    """
    built_in = _built_in(family)
    return (
        *(name for name in built_in if name != ANY),
        *sorted(set(_installed(family)) - set(built_in)),
    )


def load_reference(reference: str, *, folder: Path | None = None) -> Any:
    """The object that `package.module:name` refers to.

    Raises:
        ConfigError: The module cannot be imported, or has no such name.
    """
    if not REFERENCE.match(reference):
        raise ConfigError(f"{reference!r} is not of the form package.module:name.")
    path, name = reference.split(":")
    if folder is not None:
        _import_first_from(folder, path)
    try:
        found: Any = importlib.import_module(path)
    except Exception as error:
        raise ConfigError(
            f"{reference!r} cannot be imported: {described(error, folder)}"
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{path} has no {name!r}.{nearest(part, vars(found))}")
        found = getattr(found, part)
    return found


def load_module(path: Path) -> ModuleType:
    """The module in a Python file, which may import other files of its folder.

    Raises:
        ConfigError: There is no such file, or importing it failed; the message has the line.
    """
    path = path.resolve()
    name = f"{_USER}{path.stem}_{crc32(str(path).encode()):08x}"
    spec = spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, place := str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be loaded: {_located(error, path)}") from error
    finally:
        sys.path.remove(place)
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
        raise ConfigError(f"{path} has no function {name!r}.{nearest(name, known)}")
    return found  # type: ignore[no-any-return]


def class_name(kind: type) -> str:
    """Module and name of a class; it does not depend on the folder of its file.

    >>> class_name(Path).endswith(".Path")
    True
    """
    module = kind.__module__
    if module.startswith(_USER):
        module = module.removeprefix(_USER).rpartition("_")[0]
    return f"{module}.{kind.__qualname__}"


def described(error: BaseException, folder: Path | None = None) -> str:
    """An error with its class, and the file and line that raised it."""
    if isinstance(error, SyntaxError):  # its text has only part of the place
        text = f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, CoevolveError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    where = where_raised(error, folder)
    return f"{text} ({where})" if where else text


def where_raised(error: BaseException, folder: Path | None) -> str:
    """The file and line of an error: the last in the project, else the last not of coevolve."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    frame = own_frame(error, folder)
    return f"{frame.filename}, line {frame.lineno}" if frame else ""


def own_frame(error: BaseException, folder: Path | None) -> traceback.FrameSummary | None:
    """The last frame in the project, else the last not of Python or a package, else the last."""
    stack = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and not frame.filename.startswith(_OURS)
    ]
    own = [f for f in stack if folder is not None and Path(f.filename).is_relative_to(folder)]
    users = [f for f in stack if not f.filename.startswith(_INSTALLED)]
    return next(reversed(own or users or stack), None)


def _built_in(family: Family) -> Mapping[str, Any]:
    found: Mapping[str, Any] = importlib.import_module(_TABLES[family]).PLUGS
    return found


@cache
def _installed(family: Family) -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # worker processes start faster without it

    return {entry.name: entry for entry in entry_points(group=f"coevolve.{family}")}


def _import_first_from(folder: Path, module: str) -> None:
    """Put a folder first on the import path, and leave it there: a plug may import later.

    A loaded module of the same name from elsewhere, such as another project, is unloaded.
    """
    folder = folder.resolve()
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    top = module.partition(".")[0]
    here = [folder / f"{top}.py", folder / top / "__init__.py"]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if top in _FIXED or loaded is None or Path(loaded).resolve() in here:
        return
    if any(path.is_file() for path in here):
        for name in [n for n in sys.modules if n == top or n.startswith(f"{top}.")]:
            del sys.modules[name]


def _located(error: Exception, path: Path) -> str:
    """The error, and the last line of the file it went through."""
    if isinstance(error, SyntaxError):
        file = "" if error.filename == str(path) else f"{error.filename}, "
        return f"{file}line {error.lineno}: {type(error).__name__}: {error.msg}"
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    frame = own_frame(error, path.parent)
    inside = frame is not None and frame.filename != str(path)
    raised = f" ({frame.filename}, line {frame.lineno})" if frame and inside else ""
    return f"{where}{type(error).__name__}: {error}{raised}"
