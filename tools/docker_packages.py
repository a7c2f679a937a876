"""Debian's packages of an engine, unpacked into the cache; nothing is installed.

The addresses are those of the machine's own apt sources. Compose comes from a later suite than
bookworm, which has an older one; it needs the C library only.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from coevolve.benchmarks.harbor.root_preparation import apt_sources

PACKAGES = ("docker.io", "iptables", "debootstrap", "tini")
COMPOSE = "docker-compose"
COMPOSE_SUITE = "trixie"

type Say = Callable[[str], None]


class EngineError(Exception):
    """An engine cannot be made or started."""


def own_suite() -> str:
    """The name of this machine's suite of Debian.

    Raises:
        EngineError: This is not Debian.
    """
    release = dict(
        line.partition("=")[::2] for line in Path("/etc/os-release").read_text().splitlines()
    )
    suite = release.get("VERSION_CODENAME", "").strip('"')
    if release.get("ID", "").strip('"') != "debian" or not suite:
        raise EngineError("the engine is made of Debian's packages, and this is not Debian")
    return suite


def sources_list(suite: str) -> str:
    """The machine's apt sources, for another suite."""
    own = own_suite()
    lines = [
        f"deb {f'[signed-by={source.keyring}] ' if source.keyring else ''}"
        f"{source.address} {name.replace(own, suite)} main\n"
        for source in apt_sources()
        for name in source.suites
        if name in (own, f"{own}-updates", f"{own}-security")
    ]
    if not lines:
        raise EngineError(f"the apt sources of this machine do not name {own}")
    return "".join(lines)


def unpacked_programs(cache: Path, say: Say) -> Path:
    """The folder with the programs of the engine, made once.

    Raises:
        EngineError: A package cannot be downloaded.
    """
    key = hashlib.sha256(repr((PACKAGES, COMPOSE, own_suite())).encode()).hexdigest()[:12]
    target = cache / f"programs-{key}"
    if target.exists():
        return target
    work = cache / f"programs-{key}-{os.getpid()}.part"
    try:
        say("downloading packages")
        own = _Apt(work / "own", sources_list(own_suite()))
        own.call("--download-only", "--no-install-recommends", "install", *PACKAGES)
        later = _Apt(work / "later", sources_list(COMPOSE_SUITE))
        later.call("download", COMPOSE)
        for package in sorted(work.rglob("*.deb")):
            _run("dpkg-deb", "-x", str(package), str(work / "root"))
        if not target.exists():
            (work / "root").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


class _Apt:
    """apt-get with lists and archives of its own."""

    def __init__(self, folder: Path, sources: str) -> None:
        self._folder = folder
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True)
        (folder / "sources.list").write_text(sources)
        self.call("update")

    def call(self, *arguments: str) -> None:
        options = {
            "Dir::State::lists": self._folder / "lists",
            "Dir::Cache::archives": self._folder / "archives",
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "Dir::Etc::sourcelist": self._folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "APT::Sandbox::User": "root",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        _run("apt-get", "-qq", "-y", *words, *arguments, folder=self._folder)


def _run(*argv: str, folder: Path | None = None) -> None:
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd=folder, env=variables
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-800:]
        raise EngineError(f"{argv[0]} failed with status {done.returncode}: {said}")
