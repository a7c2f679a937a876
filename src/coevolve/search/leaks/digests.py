"""Questions of tasks by their digests."""

import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from coevolve.search.leaks.shingles import Found
from coevolve.search.leaks.texts import Texts

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

    def find(self, texts: Texts) -> Iterator[Found]:
        """The tasks whose digests, or the first eight or more digits of them, are in a file."""
        for match in _TOKEN.finditer(texts.raw):
            token = match[1].lower()
            for digest, task in self._digests.get(token[:SHORTEST], ()):
                if digest.startswith(token):
                    yield task, texts.raw.count("\n", 0, match.start()) + 1

    @cached_property
    def _digests(self) -> Mapping[str, list[tuple[str, str]]]:
        """Digests with their tasks, by what they begin with; made when first asked for."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for task, question in self._questions.items():
            for digest in set(_digests(question)) if question.strip() else ():
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
