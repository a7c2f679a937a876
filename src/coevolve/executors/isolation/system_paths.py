"""The paths of this machine that a sandbox shows, and the folders that it hides in them.

The programs of the system and installed packages are visible inside. This package may be among
them, and it includes data sets with their answers.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from coevolve.errors import StopRun

RUNNER = Path(__file__).with_name("runner.py")
RUNNER_FILES = (RUNNER, RUNNER.with_name("host_requests.py"))

_PACKAGE = RUNNER.resolve().parents[2]
_INSTALLED = "python*/*-packages"
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_USR = (*_MERGED, "libexec", "share")
_LOCAL = ("bin", "lib", "lib64")
_STORES = ("/nix/store", "/gnu/store")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_ETC_NETWORK = (
    *("resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf", "services", "protocols"),
    *("ssl", "pki", "ca-certificates", "ca-certificates.conf", "passwd", "group"),
)
_OF_PREFIX = ("lib", "lib64")


def interpreter() -> Path:
    """The Python that this environment is based on."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return Path(base).resolve()


def site_packages() -> list[str]:
    """Folders with the installed packages of this environment."""
    roots = {str(root) for root in (*_prefixes(), Path("/usr"))}
    found = []
    for entry in sys.path:
        path = os.path.realpath(entry)
        installed = path.endswith(("site-packages", "dist-packages"))
        if installed and any(path.startswith(root + "/") for root in roots):
            found.append(path)
    return found


def environment(home: str) -> dict[str, str]:
    """The whole environment of a sandboxed program.

    Numeric libraries would start one thread per processor and exceed the process limit. With a
    fixed hash seed, the order of a set is the same in every worker.
    """
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    found = {
        "PATH": f"{interpreter().parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": home,
        "TMPDIR": home,
        "USER": "candidate",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(threads, "1"),
    }
    if "LD_LIBRARY_PATH" in os.environ:  # some builds of Python need it to find their library
        found["LD_LIBRARY_PATH"] = str(interpreter().parent.parent / "lib")
    return found


def links() -> Iterator[tuple[str, str]]:
    """Top-level folders that are links on this system, with their targets."""
    for name in _MERGED:
        path = f"/{name}"
        if os.path.islink(path):  # noqa: PTH114
            yield os.readlink(path), path  # noqa: PTH115


def system_paths(*, network: bool) -> list[Path]:
    """Files and folders that programs need to read: never a home, never a project.

    /usr is not included as a whole, because /usr/src and /usr/local may contain projects.
    """
    top = [Path("/") / name for name in _MERGED if not (Path("/") / name).is_symlink()]
    usr = [Path("/usr") / name for name in _USR]
    local = [Path("/usr/local") / name for name in _LOCAL]
    stores = [Path(name) for name in _STORES]
    etc = [Path("/etc") / name for name in (*_ETC, *(_ETC_NETWORK if network else ()))]
    python = [prefix / name for prefix in _prefixes() for name in _OF_PREFIX]
    python.append(interpreter().parent)
    return _outermost([p for p in (*top, *usr, *local, *stores, *python) if p.is_dir()]) + [
        path for path in etc if path.exists()
    ]


def _prefixes() -> list[Path]:
    names = {sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix}
    return sorted({Path(name).resolve() for name in names})


def _outermost(paths: list[Path]) -> list[Path]:
    """The folders without those inside another, each once."""
    kept: list[Path] = []
    for path in sorted({path.resolve() for path in paths}):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept


def masked(shown: Sequence[Path], hidden: Sequence[Path] = ()) -> list[Path]:
    """The visible folders to hide: this package, its cache, and further ones.

    Args:
        shown: Files and folders that are visible inside, with everything in them.
        hidden: Folders that must not be visible.

    Raises:
        StopRun: A folder cannot be hidden, because this Python is inside it.
    """
    found: list[Path] = []
    for folder in (*_ours(shown), *(path.resolve() for path in hidden)):
        visible = any(folder.is_relative_to(path) for path in shown)
        if not (visible and folder.is_dir()) or any(map(folder.is_relative_to, found)):
            continue
        if any(part.is_relative_to(folder) for part in _needed()):
            raise StopRun(
                f"{folder} cannot be hidden from candidates, because the Python that runs them is "
                "inside it; move the project to its own folder."
            )
        found = [*(path for path in found if not path.is_relative_to(folder)), folder]
    return found


def caches() -> list[Path]:
    """The folders where data sets and answers of models may be cached."""
    base = os.environ.get("XDG_CACHE_HOME")
    own = os.environ.get("COEVOLVE_CACHE")
    places = [
        own,
        base and os.path.join(base, "coevolve"),  # noqa: PTH118
        "~/.cache/coevolve",
    ]
    return [Path(os.path.expanduser(place)).resolve() for place in places if place]  # noqa: PTH111


def _ours(shown: Sequence[Path]) -> Iterator[Path]:
    """This package wherever it is installed, its sources, and its caches."""
    yield _PACKAGE
    if (_PACKAGE.parents[1] / "pyproject.toml").is_file():
        yield _PACKAGE.parents[1]
    for site in (*map(Path, site_packages()), *(s for p in shown for s in p.glob(_INSTALLED))):
        yield (site / _PACKAGE.name).resolve()
    yield from caches()


def _needed() -> Iterator[Path]:
    yield from (interpreter(), Path(os.__file__).resolve(), *map(Path, site_packages()))
