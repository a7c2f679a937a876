"""Candidates: snapshots of a folder of files, addressed by their content."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from coevolve.errors import CandidateError, InputError

Files = Mapping[str, bytes]
Kind = Literal["", "exploit", "explore"]

MOST_FILES = 1_000
MOST_BYTES = 20_000_000
MOST_PATH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A harness: the addresses of its files, and where it comes from.

    `files` maps relative paths to addresses of their content. `address` depends on it alone, so
    two candidates with equal files have equal addresses. Starting harnesses are of round 0.

    >>> plain = Candidate.of({"harness.py": b"def answer(q): return q"}, name="plain")
    >>> plain.round, sorted(plain.files), len(plain.address)
    (0, ['harness.py'], 32)
    """

    name: str
    address: str
    files: Mapping[str, str]
    round: int = 0
    parents: tuple[str, ...] = ()
    hypothesis: str = ""
    kind: Kind = ""
    components: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        files: Files,
        *,
        name: str,
        round: int = 0,
        parents: tuple[str, ...] = (),
        hypothesis: str = "",
        kind: Kind = "",
        components: tuple[str, ...] = (),
    ) -> Self:
        """The candidate made of these files."""
        check_files(files, name)
        addresses = {path: address_of(files[path]) for path in sorted(files)}
        return cls(
            name=name,
            address=_tree_address(addresses),
            files=addresses,
            round=round,
            parents=parents,
            hypothesis=hypothesis,
            kind=kind,
            components=components,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "name": self.name,
            "address": self.address,
            "files": dict(self.files),
            "round": self.round,
            "parents": list(self.parents),
            "hypothesis": self.hypothesis,
            "kind": self.kind,
            "components": list(self.components),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The candidate `to_json` described."""
        if data["address"] != _tree_address(data["files"]):
            raise CandidateError(f"the address of {data['name']!r} does not match its files.")
        lists = {name: tuple(data.get(name, ())) for name in ("parents", "components")}
        return cls(**{**data, **lists})


def address_of(data: bytes) -> str:
    """The content address of some bytes.

    >>> address_of(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(data, digest_size=16).hexdigest()


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder by relative path, without caches and hidden files.

    A link is refused, because it may point outside the folder.
    """
    if not folder.is_dir():
        raise CandidateError(f"{folder} is not a folder; a candidate is a folder of files.")
    files: dict[str, bytes] = {}
    total = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(n for n in folders if n != "__pycache__" and not n.startswith("."))
        for name in sorted([*names, *(n for n in folders if (Path(root) / n).is_symlink())]):
            path = Path(root) / name
            if name.startswith(".") or name.endswith(".pyc"):
                continue
            kept = path.relative_to(folder).as_posix()
            if not stat.S_ISREG(path.lstat().st_mode):
                raise CandidateError(f"{kept} in {folder} is not a regular file; remove it.")
            total += path.stat().st_size
            if total > MOST_BYTES or len(files) >= MOST_FILES:
                raise CandidateError(_too_much(str(folder)))
            files[kept] = path.read_bytes()
    check_files(files, folder.name)
    return files


def only_text(files: Files, name: str) -> str:
    """The text of a candidate that has one file.

    >>> only_text({"prompt.txt": b"Answer briefly."}, "brief")
    'Answer briefly.'
    """
    if len(files) != 1:
        listed = ", ".join(list(files)[:5])
        raise InputError(
            f"candidate {name!r} has {len(files)} files ({listed}), not one; use its files "
            "instead of its text."
        )
    return next(iter(files.values())).decode(errors="replace")


def check_files(files: Files, name: str) -> None:
    """Refuse files that cannot be a candidate: none, too many, or paths outside the folder."""
    if not files:
        raise CandidateError(f"candidate {name!r} has no files.")
    if not isinstance(files, Mapping):
        raise CandidateError(
            f"the files of candidate {name!r} must map paths to bytes, got {files!r:.80}."
        )
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
        raise CandidateError(_too_much(f"candidate {name!r}"))
    for path, content in files.items():
        if not _is_path(path):
            raise CandidateError(
                f"candidate {name!r}: {path!r:.300} is not a valid path; use a relative one."
            )
        if not isinstance(content, bytes):
            kind = type(content).__name__
            raise CandidateError(f"candidate {name!r}: {path!r} must be bytes, got {kind}.")
        if any(str(parent) in files for parent in PurePosixPath(path).parents):
            raise CandidateError(f"candidate {name!r}: {path!r} is inside another file.")


def _is_path(path: object) -> bool:
    """Whether it is a relative path that any file system accepts and any terminal shows."""
    if not isinstance(path, str) or not path.isprintable() or "\\" in path:
        return False
    pure = PurePosixPath(path)
    plain = not pure.is_absolute() and ".." not in pure.parts and str(pure) == path != "."
    short = len(path.encode()) <= MOST_PATH and all(len(p.encode()) <= 255 for p in pure.parts)
    return plain and short


def _too_much(what: str) -> str:
    return f"{what} has more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes; remove some."


def _tree_address(addresses: Mapping[str, str]) -> str:
    lines = "".join(f"{addresses[path]} {path}\n" for path in sorted(addresses))
    return address_of(lines.encode())
