"""Questions of tasks by their digests."""

import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from coevolve.search.leaks.shingles import Found
from coevolve.search.leaks.texts import Texts
from coevolve.search.leaks.work import TOKEN, Work

SHORTEST = 8
"""Digits of a digest that tell a question; shorter ones are there by chance."""

_NAMES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2s")
_TOKEN = re.compile(r"(?<![0-9a-zA-Z])(?:0[xX])?([0-9a-fA-F]{8,128})(?![0-9a-zA-Z])")


class Digests:
    """The questions of tasks by their digests."""

    def __init__(self, questions: Mapping[str, str]) -> None:
        self._questions = questions

    def forget(self, known: Iterable[Texts]) -> None:
        """Nothing: what has the digest of a question is no text of its own."""

    def find(self, texts: Texts, work: Work) -> Iterator[Found]:
        """The tasks whose digests, or the first eight or more digits of them, are in a file.

        Each is found where it is first.
        """
        found: set[str] = set()
        line, read = 1, 0
        for match in _TOKEN.finditer(texts.raw):
            if not work.take(1, TOKEN):
                return
            token = match[1].lower()
            for digest, task in self._digests.get(token[:SHORTEST], ()):
                if task not in found and digest.startswith(token):
                    found.add(task)
                    line += texts.raw.count("\n", read, match.start())
                    read = match.start()
                    yield task, line

    @cached_property
    def _digests(self) -> Mapping[str, list[tuple[str, str]]]:
        """Digests with the first tasks that have them, by their beginnings; made when needed."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        asked: set[str] = set()
        for task, question in self._questions.items():
            known = not question.strip() or question in asked
            asked.add(question)
            for digest in () if known else set(_digests(question)):
                found[digest[:SHORTEST]].append((digest, task))
        return found


def _digests(question: str) -> Iterator[str]:
    """Digests of a question as it is, and as programs like to write it before they take one."""
    neat = " ".join(question.split())
    for text in {question, question.strip(), question.lower(), neat, neat.lower()}:
        data = text.encode(errors="ignore")
        for name in _NAMES:
            yield hashlib.new(name, data, usedforsecurity=False).hexdigest()
        for size in (8, 16, 32, 64):
            yield hashlib.blake2b(data, digest_size=size).hexdigest()
        for check in (zlib.crc32(data), zlib.adler32(data)):
            yield from (f"{check:08x}", str(check))
