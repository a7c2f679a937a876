"""The weights of the embedded model: where they are, and whether they are what they should be.

The file as published has four-bit weights; the eight-bit ones that the model runs with are made
from it once (`requantise`) and kept beside it. Both are known by their SHA-256.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import ConfigError
from coevolve.models.embedded.requantise import requantise
from coevolve.models.folders import cache_folder

MODEL = "SmolLM2-135M-Instruct"
LICENCE = "Apache-2.0"
WINDOW = 8192
"""Tokens that prompt and answer may have together."""


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
    """Where weights are kept."""
    return cache_folder() / "models"


def find_weights(folder: Path | None = None) -> Path:
    """The weights to run with, checked; made from the published ones where they are not yet.

    Raises:
        ConfigError: They are not here, or damaged beyond making them again.
    """
    folder = folder or models_folder()
    made, published = folder / MADE.name, folder / PUBLISHED.name
    if is_sound(made, MADE):
        return made
    if not published.exists():
        raise ConfigError(
            f"the embedded model is not in {folder}; `coevolve model get` fetches it "
            f"({PUBLISHED.size / 1e6:.0f} MB)."
        )
    if not is_sound(published, PUBLISHED):
        raise ConfigError(
            f"the weights in {published} are damaged: their SHA-256 is not {PUBLISHED.sha256}. "
            "Fetch them again with `coevolve model get`."
        )
    put(folder, MADE, lambda target: requantise(published, target))
    return made


def is_sound(path: Path, weights: Weights) -> bool:
    """Whether a file is there and holds these weights to the bit."""
    try:
        return path.stat().st_size == weights.size and digest(path) == weights.sha256
    except FileNotFoundError:
        return False


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def put(folder: Path, weights: Weights, write: Callable[[Path], None]) -> Path:
    """Have a file of weights written, and put it in its place once it is known to be right.

    Whoever looks sees no file or a whole one, also when several processes do this at once.
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
            f"weights cannot be kept in {folder}: {error}. Make room there, or name another "
            "folder in COEVOLVE_CACHE."
        ) from error
    return folder / weights.name


def _put(part: Path, place: Path, weights: Weights, write: Callable[[Path], None]) -> None:
    write(part)
    if not is_sound(part, weights):
        raise ConfigError(
            f"these are not the weights {weights.name}: their SHA-256 is {digest(part)}, "
            f"not {weights.sha256}."
        )
    part.chmod(0o644)
    part.replace(place)
