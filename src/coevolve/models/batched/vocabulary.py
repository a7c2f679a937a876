"""The tokens of a model as text, from the vocabulary in its GGUF file."""

import io
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from coevolve.models.embedded.gguf import ARRAY, STRING, Entry, WeightsError, read_header

_TOKENS, _KINDS = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_CONTROL = 3
"""The kind of tokens that mark something and have no text."""


class Vocabulary:
    r"""The bytes of every token.

    Args:
        pieces: The bytes of the tokens, by number; none for tokens that mark something.

    >>> Vocabulary([b"so", b" be", b"\nit", b""]).cut([0, 1, 2, 0], ["\n"])
    ('so be', 3)
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = tuple(pieces)

    @classmethod
    def read(cls, weights: Path) -> Self:
        """The vocabulary of a GGUF file whose tokens are written as those of GPT-2.

        Raises:
            WeightsError: The file has no such vocabulary.
        """
        with weights.open("rb") as file:
            facts = read_header(file).facts
        if _TOKENS not in facts or _KINDS not in facts:
            raise WeightsError(f"{weights} has no vocabulary ({_TOKENS}).")
        of_letter = {chr(letter): byte for byte, letter in _letters()}
        kinds = _numbers(facts[_KINDS])
        return cls(
            [
                b"" if kind == _CONTROL else bytes(of_letter[letter] for letter in token)
                for token, kind in zip(_texts(facts[_TOKENS]), kinds, strict=True)
            ]
        )

    def ending(self, stop: str) -> list[int]:
        """The tokens that contain a text."""
        wanted = stop.encode()
        return [token for token, piece in enumerate(self._pieces) if wanted in piece]

    def cut(self, tokens: Sequence[int], stops: Sequence[str]) -> tuple[str, int]:
        """What tokens say before the first of some texts, and the number of tokens up to it."""
        wanted = [stop.encode() for stop in stops]
        said = b""
        for number, token in enumerate(tokens, 1):
            said += self._pieces[token]
            places = [place for stop in wanted if (place := said.find(stop)) >= 0]
            if places:
                return said[: min(places)].decode(errors="replace"), number
        return said.decode(errors="replace"), len(tokens)


def _letters() -> Iterator[tuple[int, int]]:
    """The letter that stands for each byte in the vocabulary: itself if it can be printed."""
    other = 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            yield byte, byte
        else:
            yield byte, other
            other += 1


def _array(entry: Entry) -> tuple[io.BytesIO, int, int]:
    raw = io.BytesIO(entry.raw)
    if entry.kind != ARRAY:
        raise WeightsError(f"the vocabulary of a GGUF file must be a list, not {entry.kind}.")
    kind, count = struct.unpack("<IQ", raw.read(12))
    return raw, kind, count


def _texts(entry: Entry) -> Iterator[str]:
    raw, kind, count = _array(entry)
    if kind != STRING:
        raise WeightsError(f"the tokens of a GGUF file must be texts, not of type {kind}.")
    for _ in range(count):
        (length,) = struct.unpack("<Q", raw.read(8))
        yield raw.read(length).decode()


def _numbers(entry: Entry) -> list[int]:
    raw, _, count = _array(entry)
    return list(struct.unpack(f"<{count}i", raw.read(4 * count)))
