"""`bin/coevolve` of a workspace."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from coevolve.proposers.workspace.query.questions import answer, usage
from coevolve.proposers.workspace.query.source import QueryError, find, in_workspace

USAGE_ERROR = 2


def main(program: Path, words: Sequence[str]) -> int:
    """Answer a query, in the workspace of the program or of the current folder."""
    asked = words[1:] if words[:1] == ["query"] else words
    if not asked or {"-h", "--help"} & set(asked):
        return _say(sys.stdout.fileno(), usage())
    folder = find(program.resolve().parent) or find(Path.cwd())
    if folder is None:
        return _refuse("this is no workspace: history.json is missing.")
    try:
        return _say(sys.stdout.fileno(), answer(in_workspace(folder), asked))
    except QueryError as error:
        return _refuse(str(error))


def _refuse(message: str) -> int:
    _say(sys.stderr.fileno(), f"coevolve: {message}\n")
    return USAGE_ERROR


def _say(stream: int, text: str) -> int:
    """Write UTF-8 whatever the locale is; who stops reading, as `head` does, has read enough."""
    left = text.encode("utf-8", "replace")
    with contextlib.suppress(BrokenPipeError):
        while left:
            left = left[os.write(stream, left) :]
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[0]), sys.argv[1:]))
