"""Prepares root folders from packages, or from the files of a container.

The addresses of the packages are read from the apt sources of this machine.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from coevolve.benchmarks.harbor.root_folders import (
    HOST,
    RootFolder,
    building,
    describe,
    host_root,
    roots_folder,
)
from coevolve.errors import InputError

UV = "0.9.5"
"""The version that the verifiers of Terminal-Bench ask for."""

PYTEST = ("pytest==8.4.1", "pytest-json-ctrf==0.3.5")
"""What those verifiers run with `uvx`; kept in the cache of uv, so that they run offline."""

_SUITES = {
    "debian": ("bullseye", "bookworm", "trixie"),
    "ubuntu": ("jammy", "noble"),
}
_PACKAGES = (
    *("ca-certificates", "curl", "git", "iputils-ping", "netbase", "procps", "python3"),
    *("libbz2-1.0", "libexpat1", "liblzma5", "libncursesw6", "libsqlite3-0", "libuuid1"),
    *("python3-pip", "python3-venv", "tmux", "tzdata", "wget", "zlib1g"),
)
_PYTHON_NEEDS = {
    "bullseye": (),
    "bookworm": ("libffi8", "libreadline8", "libssl3"),
    "trixie": ("libffi8", "libreadline8t64", "libssl3t64"),
    "jammy": ("libffi8", "libreadline8", "libssl3"),
    "noble": ("libffi8", "libreadline8t64", "libssl3t64"),
}
"""Packages for a Python that was built on another machine, beside those for every Python."""

_VERIFIER_PYTHON = "3.13"
"""The Python that the verifiers of Terminal-Bench ask for."""

_OWN_PYTHON = {"bookworm": "3.11", "trixie": "3.13"}
"""The Python among the packages of a suite."""

_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_SERVICES = (
    "#!/bin/sh\n# Services are not started when they are installed, as in a container.\nexit 101\n"
)
_APT = (
    'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\n'
    'Acquire::Languages "none";\n'
)

type Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An entry of the apt sources of a machine."""

    address: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    keyring: str = ""


def known_roots() -> list[str]:
    """The roots that can be prepared by name; `python-3.X-` stands for any version."""
    plain = [f"{system}-{suite}" for system, suites in _SUITES.items() for suite in suites]
    return [HOST, *plain, "python-3.X-bookworm", "python-3.X-trixie"]


def prepare_root(
    name: str,
    *,
    mirror: str | None = None,
    keyring: Path | None = None,
    say: Say,
    folder: Path | None = None,
) -> RootFolder:
    """Prepare a root from packages, if it is missing.

    Args:
        name: One of `known_roots`.
        mirror: Address of the packages. Default: from the apt sources of this machine.
        keyring: The keys that sign them. Default: those in `/usr/share/keyrings`.
        say: Called with a message for each step.
        folder: Where roots are kept. Default: the cache.

    Raises:
        InputError: It cannot be prepared; the text says why.
    """
    if name == HOST:
        return host_root(folder)
    found = re.fullmatch(r"(?:(debian|ubuntu)|python-(3\.\d+))-([a-z]+)", name)
    system = (found[1] or "debian") if found else ""
    if found is None or found[3] not in _SUITES[system]:
        raise InputError(f"the root {name!r} is unknown; known: {', '.join(known_roots())}.")
    version, suite = found[2], found[3]
    target = (folder or roots_folder()) / name
    with building(target) as made:
        if made is not None:
            own = version == _OWN_PYTHON.get(suite)
            python = None if version is None or own else _find_python(version)
            sources = _sources_for(system, suite, mirror)
            if keyring is not None:
                sources = [replace(each, keyring=str(keyring.resolve())) for each in sources]
            root = made / "root"
            say(f"{name}: installing packages of {suite}")
            _bootstrap(root, suite, sources[0], (*_PACKAGES, *_PYTHON_NEEDS[suite]))
            _write_settings(root, sources)
            if python is not None:
                say(f"{name}: copying Python {version} from {python}")
                _copy_python(python, version, root)
                _name_python(root, f"python{version}")
            elif own:
                _use_own_python(version, root)
            if version != _VERIFIER_PYTHON and suite != "trixie":
                _add_verifier_python(root, say)
            say(f"{name}: adding uv {UV} and pytest")
            env = _trusted_env()
            _add_tools(root, env)
            describe(made, env=env)
    return RootFolder.read(target)


def import_root(
    name: str, source: Path, *, env: Mapping[str, str], folder: Path | None = None
) -> RootFolder:
    """Create a root from an archive that `docker export` wrote, or from a folder.

    Raises:
        InputError: The source has no root in it, or the name is taken.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise InputError(
            f"{name!r} is not a valid name for a root; use lower-case letters, digits, . _ and -."
        )
    if not source.exists():
        raise InputError(f"there is no file or folder {source}.")
    target = (folder or roots_folder()) / name
    with building(target) as made:
        if made is None:
            raise InputError(f"the root {name!r} exists already; remove {target} first.")
        root = made / "root"
        root.mkdir(mode=0o755)
        unpack = (
            *("tar", "-x", "-p", "--numeric-owner", "--xattrs", "--xattrs-include=*"),
            *("--exclude=dev/*", "--exclude=./dev/*", "-C", str(root)),
        )
        if source.is_dir():
            pack = ("tar", "-c", "--xattrs", "--one-file-system", "-C", str(source), ".")
            with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
                done = subprocess.run(
                    (*unpack, "-f", "-"), stdin=packing.stdout, capture_output=True, check=False
                )
        else:
            done = subprocess.run((*unpack, "-f", source), capture_output=True, check=False)
        if done.returncode or not (root / "bin").exists():
            message = done.stderr.decode(errors="replace").strip()[:300] or "it has no bin"
            raise InputError(f"{source} cannot be used as a root: {message}")
        describe(made, env=env)
    return RootFolder.read(target)


def apt_sources(folder: Path = Path("/etc/apt")) -> Iterator[Source]:
    """The entries of the apt sources, of both formats."""
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    for file in files:
        if file.suffix == ".list" and file.exists():
            yield from _one_line_sources(file.read_text())
        elif file.suffix == ".sources":
            yield from _block_sources(file.read_text())


def _one_line_sources(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if found:
            options = dict(word.partition("=")[::2] for word in (found[1] or "").split())
            yield Source(
                address=found[2],
                suites=(found[3],),
                components=tuple(found[4].split()),
                keyring=options.get("signed-by", ""),
            )


def _block_sources(text: str) -> Iterator[Source]:
    for block in re.split(r"\n\s*\n", text):
        rows = (line.partition(":") for line in block.splitlines() if line[:1] not in "# \t")
        fields = {name.strip().lower(): value.strip() for name, _, value in rows}
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes") != "no":
            for address in fields.get("uris", "").split():
                yield Source(
                    address=address,
                    suites=tuple(fields.get("suites", "").split()),
                    components=tuple(fields.get("components", "").split()),
                    keyring=fields.get("signed-by", ""),
                )


def _sources_for(system: str, suite: str, mirror: str | None) -> list[Source]:
    """Sources for a suite: those of this machine with the name of the suite exchanged."""
    keyring = f"/usr/share/keyrings/{system}-archive-keyring.gpg"
    components = ("main",) if system == "debian" else ("main", "universe")
    if mirror is not None:
        return [
            Source(address=mirror, suites=(name,), components=components, keyring=keyring)
            for name in (suite, f"{suite}-updates", f"{suite}-security")[
                : 2 + (system == "ubuntu")
            ]
        ]
    release = dict(
        line.partition("=")[::2] for line in Path("/etc/os-release").read_text().splitlines()
    )
    own = release.get("VERSION_CODENAME", "").strip('"')
    if release.get("ID", "").strip('"') != system or not own:
        raise InputError(
            f"this machine has no apt sources for {system}; give the address with --mirror URL."
        )
    found = [
        Source(
            address=source.address,
            suites=(name.replace(own, suite),),
            components=components,
            keyring=source.keyring if source.keyring.startswith("/") else keyring,
        )
        for source in apt_sources()
        for name in source.suites
        if name in (own, f"{own}-updates", f"{own}-security")
    ]
    found.sort(key=lambda source: len(source.suites[0]))
    if not found or found[0].suites != (suite,):
        raise InputError(
            f"the apt sources of this machine do not name {own}; give the address of the packages "
            "with --mirror URL."
        )
    return found


def _bootstrap(root: Path, suite: str, source: Source, packages: tuple[str, ...]) -> None:
    if not Path(source.keyring).is_file():
        raise InputError(
            f"the keyring {source.keyring} that signs the packages of {suite} is missing; install "
            "the package that has it, or give it with --keyring FILE."
        )
    common = (
        *("--variant=minbase", f"--include={','.join(packages)}"),
        *(f"--components={','.join(source.components)}", "--keyring", source.keyring),
    )
    if tool := shutil.which("debootstrap"):
        # An older debootstrap knows a newer suite under the name of its first relative.
        scripts = Path("/usr/share/debootstrap/scripts")
        relative = scripts / ("gutsy" if "universe" in source.components else "sid")
        script = () if (scripts / suite).exists() else (str(relative),)
        _run(tool, "--force-check-gpg", *common, suite, str(root), source.address, *script)
    elif tool := shutil.which("mmdebstrap"):
        _run(tool, "--mode=root", *common, suite, str(root), source.address)
    else:
        raise InputError("debootstrap is missing; run: apt-get install debootstrap.")


def _run(*argv: str, env: Mapping[str, str] | None = None) -> None:
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
    done = subprocess.run(argv, capture_output=True, check=False, env=variables)
    if done.returncode:
        text = (done.stdout + done.stderr).decode(errors="replace").strip()[-800:]
        raise InputError(f"{argv[0]} failed with status {done.returncode}: {text}")


def _write_settings(root: Path, sources: list[Source]) -> None:
    """Write what the images of a container engine have beside the packages."""
    lines = []
    for source in sources:
        keyring = Path("/usr/share/keyrings", Path(source.keyring).name)
        place = root / str(keyring).lstrip("/")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.keyring, place)
        row = f"{source.address} {source.suites[0]} {' '.join(source.components)}"
        lines.append(f"deb [signed-by={keyring}] {row}\n")
    for path in (root / "etc/apt/sources.list.d").glob("*"):
        path.unlink()
    (root / "etc/apt/sources.list").write_text("".join(lines))
    (root / "etc/apt/apt.conf.d/docker-clean").write_text(_APT)
    (root / "etc/dpkg/dpkg.cfg.d/docker-apt-speedup").write_text("force-unsafe-io\n")
    services = root / "usr/sbin/policy-rc.d"
    services.write_text(_SERVICES)
    services.chmod(0o755)
    bundle = root / _BUNDLE.lstrip("/")
    if Path(_BUNDLE).exists() and bundle.exists():
        shutil.copy(_BUNDLE, bundle)  # the certificates that this machine trusts
    for pattern in ("var/cache/apt/archives/*.deb", "var/lib/apt/lists/*_*", "var/log/*.log"):
        for path in root.glob(pattern):
            path.unlink()
    (root / "etc/machine-id").unlink(missing_ok=True)


def _trusted_env() -> dict[str, str]:
    """Variables of this machine that name its certificates, which are in the root, too."""
    return {name: value for name, value in os.environ.items() if value == _BUNDLE}


def _find_python(version: str) -> Path:
    """The folder of a Python on this machine, to copy into `/usr/local`."""
    ask = "import sys; print(sys.base_prefix, '%d.%d' % sys.version_info[:2])"
    pyenv = Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}")
    managed = (
        Path("~/.local/share/uv/python")
        .expanduser()
        .glob(f"cpython-{version}.*/bin/python{version}")
    )
    on_path = shutil.which(f"python{version}")
    for program in (sys.executable, on_path, *sorted(pyenv), *sorted(managed)):
        if program is None:
            continue
        done = subprocess.run(
            (str(program), "-I", "-c", ask), capture_output=True, text=True, check=False
        )
        prefix, _, found = done.stdout.strip().rpartition(" ")
        if found == version and prefix not in ("/usr", ""):
            return Path(prefix)
    raise InputError(
        f"there is no Python {version} on this machine to copy into the root; install one, for "
        f"example with: uv python install {version}"
    )


def _copy_python(prefix: Path, version: str, root: Path) -> None:
    local = root / "usr/local"
    library = f"python{version}"
    left_out = shutil.ignore_patterns("__pycache__", "test", "tests", "*.a", "idle_test")
    shutil.copytree(
        prefix / "lib" / library,
        local / "lib" / library,
        symlinks=True,
        ignore=left_out,
        dirs_exist_ok=True,
    )
    packages = local / "lib" / library / "site-packages"
    for path in packages.iterdir():
        if not re.match(r"(pip|setuptools|wheel|_distutils_hack|distutils-precedence)", path.name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for file in (prefix / "lib").glob(f"libpython{version}*.so*"):
        shutil.copy2(file, local / "lib" / file.name, follow_symlinks=False)
    headers = prefix / "include" / library
    if headers.is_dir():
        shutil.copytree(headers, local / "include" / library, dirs_exist_ok=True)
    shutil.copy2(prefix / "bin" / library, local / "bin" / library)
    _run("chroot", str(root), "/sbin/ldconfig")


def _add_verifier_python(root: Path, say: Say) -> None:
    """Add the Python that verifiers need, if this machine has it; otherwise report that."""
    try:
        _copy_python(_find_python(_VERIFIER_PYTHON), _VERIFIER_PYTHON, root)
        program = f"/usr/local/bin/python{_VERIFIER_PYTHON}"
        _run("chroot", str(root), program, "-c", "import ssl, sqlite3, ctypes")
    except InputError as error:
        say(f"no Python {_VERIFIER_PYTHON} for verifiers (`uvx -p {_VERIFIER_PYTHON}`): {error}")
        (root / f"usr/local/bin/python{_VERIFIER_PYTHON}").unlink(missing_ok=True)


def _use_own_python(version: str, root: Path) -> None:
    """Offer the Python of the packages as an image of Python does: pip may install into it."""
    (root / "usr/local/bin" / f"python{version}").symlink_to(f"/usr/bin/python{version}")
    _name_python(root, f"python{version}")
    (root / "usr/lib" / f"python{version}" / "EXTERNALLY-MANAGED").unlink(missing_ok=True)


def _name_python(root: Path, program: str) -> None:
    folder = root / "usr/local/bin"
    for name in ("python3", "python"):
        (folder / name).symlink_to(program)
    for name in ("pip", "pip3"):
        (folder / name).write_text(f'#!/bin/sh\nexec /usr/local/bin/{program} -m pip "$@"\n')
        (folder / name).chmod(0o755)


def _add_tools(root: Path, env: Mapping[str, str]) -> None:
    """Put uv on the PATH, and what verifiers run with it into its cache."""
    with tempfile.TemporaryDirectory() as folder:
        for tool in (
            (sys.executable, "-m", "pip"),
            ("uv", "pip"),
            (str(Path(".tools/bin/uv").resolve()), "pip"),
            ("pip3",),
        ):
            if (
                shutil.which(tool[0])
                and not subprocess.run(
                    (*tool, "install", "--no-deps", "--target", folder, f"uv=={UV}"),
                    capture_output=True,
                    check=False,
                ).returncode
            ):
                break
        else:
            raise InputError(f"uv {UV} could not be installed; it needs pip or uv, and a network.")
        for name in ("uv", "uvx"):
            shutil.copy2(Path(folder, "bin", name), root / "usr/local/bin" / name)
    # What uv's own installer writes, and test scripts read after it.
    script = root / "root/.local/bin/env"
    script.parent.mkdir(parents=True)
    script.write_text('export PATH="$HOME/.local/bin:$PATH"\n')
    inside = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", **env}
    resolver = root / "etc/resolv.conf"
    shutil.copy("/etc/resolv.conf", resolver)
    pytest = [word for package in PYTEST for word in ("--with", package)]
    try:
        spaces = ("unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc")
        words = ("env", "-i", *(f"{name}={value}" for name, value in inside.items()))
        _run(*spaces, "chroot", str(root), *words, "uvx", *pytest, "pytest", "--version")
    finally:
        resolver.unlink()
