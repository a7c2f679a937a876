"""Python files of users, loaded from their path."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from coevolve.errors import ConfigError, nearest
from coevolve.search.candidate import address_of


def load_module(path: Path) -> ModuleType:
    """The module a Python file makes; what lies beside it can be imported at its top.

    Raises:
        ConfigError: There is no such file, or it fails; the message has its line.
    """
    path = path.resolve()
    name = f"coevolve_user_{path.stem}_{address_of(str(path).encode())[:8]}"
    spec = spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python file.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be loaded: {_told(error, path)}") from error
    finally:
        sys.path.remove(str(path.parent))
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


def _told(error: Exception, path: Path) -> str:
    """The error and the last line of the file it went through."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    return f"{where}{type(error).__name__}: {error}"
