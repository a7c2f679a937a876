"""The query command as one file that runs without this package."""

import io
import zipfile
from pathlib import Path

from coevolve.proposers.view import query

_SHEBANG = b"#!/usr/bin/env python3\n"
_PACKAGE = Path(*query.__name__.split("."))


def program() -> bytes:
    """An executable archive of the package `query`, the same on every call.

    The folders above the package are empty in it, so that nothing else of this package is
    imported where it happens to be installed.

    >>> program()[:22]
    b'#!/usr/bin/env python3'
    """
    sources = {path.name: path.read_bytes() for path in Path(query.__path__[0]).glob("*.py")}
    files = {(parent / "__init__.py").as_posix(): b"" for parent in _PACKAGE.parents[:-1]}
    files |= {(_PACKAGE / name).as_posix(): source for name, source in sources.items()}
    files["__main__.py"] = sources["__main__.py"]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(files):
            archive.writestr(zipfile.ZipInfo(path), files[path])  # of 1980, whenever it is made
    return _SHEBANG + packed.getvalue()
