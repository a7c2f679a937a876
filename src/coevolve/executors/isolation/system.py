"""The parts of this machine that a sandbox needs: the system's programs and this Python."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

RUNNER = Path(__file__).with_name("runner.py")

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
    """The Python under this environment, which needs no configuration of it."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return Path(base).resolve()


def site_packages() -> list[str]:
    """Folders of installed packages of this environment, as the runner should see them."""
    roots = {str(root) for root in (*_prefixes(), Path("/usr"))}
    found = []
    for entry in sys.path:
        path = os.path.realpath(entry)
        installed = path.endswith(("site-packages", "dist-packages"))
        if installed and any(path.startswith(root + "/") for root in roots):
            found.append(path)
    return found


def environment(home: str) -> dict[str, str]:
    """All that a sandboxed program finds in its environment.

    Numeric libraries would start one thread for each processor, past the limit on processes.
    With a fixed hash seed the order of a set is the same in every worker.
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
    if "LD_LIBRARY_PATH" in os.environ:  # some builds of Python do not find their library alone
        found["LD_LIBRARY_PATH"] = str(interpreter().parent.parent / "lib")
    return found


def links() -> Iterator[tuple[str, str]]:
    """Top-level folders that are links on this system, with what they point to."""
    for name in _MERGED:
        path = f"/{name}"
        if os.path.islink(path):  # noqa: PTH114
            yield os.readlink(path), path  # noqa: PTH115


def system_paths(*, network: bool) -> list[Path]:
    """Files and folders every program may need to read: never a home, never a project.

    /usr is not taken whole: people keep projects in /usr/src and below /usr/local.
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
    """The folders without those that lie in another, each once."""
    kept: list[Path] = []
    for path in sorted({path.resolve() for path in paths}):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept
