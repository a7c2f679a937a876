"""Rows of a JSONL file: questions with their answers."""

import json
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question and the right answer to it."""

    question: str
    answer: str


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, which must be there and readable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}.") from error


def read_rows(data: bytes, path: Path, answer: str = "answer") -> tuple[Row, ...]:
    """The rows of a file's bytes; a damaged line is named.

    Args:
        data: The bytes.
        path: The file, for messages.
        answer: The field of the right answer.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from error
    # Other breaks that splitlines knows may stand within a text.
    lines = enumerate(text.split("\n"), start=1)
    rows = tuple(_row(line, f"{path}, line {n}", answer) for n, line in lines if line.strip())
    if not rows:
        raise ConfigError(f"{path} has no rows.")
    return rows


def _row(line: str, where: str, answer: str) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON ({error}). Each line must be one object.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: must be an object, got a {type(value).__name__}.")
    for field in ("question", answer):
        got = value.get(field)
        if not isinstance(got, str) or not got.strip():
            have = "nothing" if field not in value else repr(got)[:80]
            raise ConfigError(f"{where}: {field!r} must be a text that is not empty, got {have}.")
    return Row(question=value["question"], answer=value[answer])
