"""Keys are replaced in everything that is shown or kept.

A key is found whole and in part: any 12 characters of it in a row, forwards or backwards, plain or
in base64, each also with percent or JSON escapes. A key that was changed in any other way, such as
letter by letter, is not found.
"""

import base64
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

HIDDEN = "[hidden]"
_PART = 12
_PART_BASE64 = 15
"""Characters of base64 that 12 characters of a key determine, wherever they begin."""
_SHORTEST = 8
"""Characters of a key whose base64 is searched; that of a shorter one may occur by chance."""
_LONGEST_ESCAPE = 6
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})|\\(?:u00|x)([0-9A-Fa-f]{2})|\\([\"\\/])")


class Redaction:
    """Replaces secrets.

    Args:
        secrets: The secrets; empty ones are left out.

    >>> Redaction(["sk-0123456789abcdef"]).text("it starts with sk-0123456789a, you know")
    'it starts with [hidden], you know'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret.encode(errors="replace") for secret in secrets if secret}
        forms = {form for secret in known for form in _forms(secret)}
        self._searches = [_Search.of(form, least) for form, least in sorted(forms)]
        self.longest = max((_LONGEST_ESCAPE * len(form) for form, _ in forms), default=0)
        """The most bytes that a secret takes."""

    def text(self, text: str) -> str:
        """A text without the secrets."""
        data = text.encode(errors="surrogatepass")
        clean = self.data(data)
        return text if clean == data else clean.decode(errors="replace")

    def data(self, data: bytes) -> bytes:
        """Bytes without the secrets."""
        spans = self._spans(data)
        if not spans:
            return data
        ends = [(0, 0), *spans, (len(data), len(data))]
        return HIDDEN.encode().join(data[before[1] : after[0]] for before, after in pairwise(ends))

    def finds(self, data: bytes) -> bool:
        """Whether there is a secret in some bytes."""
        return bool(self._spans(data))

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        """Where secrets begin and end, in order and without overlap."""
        if not self._searches:
            return []
        found = [span for search in self._searches for span in search.spans(data)]
        plain = _ESCAPE.sub(_unescaped, data)
        if plain != data and (more := [s for one in self._searches for s in one.spans(plain)]):
            places = _places(data)
            found += [(places[start], places[end]) for start, end in more]
        joined: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if joined and start < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined


class _Search(NamedTuple):
    """A search for parts of a text; every part of `least` bytes contains one of `anchors`."""

    form: bytes
    least: int
    anchors: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, form: bytes, least: int) -> "_Search":
        size = (least + 1) // 2
        anchors = tuple(range(0, len(form) - size + 1, least - size + 1))
        return cls(form, least, anchors, size)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where parts begin and end."""
        for anchor in self.anchors:
            piece = self.form[anchor : anchor + self.size]
            at = data.find(piece)
            while at >= 0:
                start, end = self._extended(data, anchor, at)
                if end - start >= self.least:
                    yield start, end
                at = data.find(piece, max(at + 1, end - self.size + 1))

    def _extended(self, data: bytes, anchor: int, at: int) -> tuple[int, int]:
        """The longest part around an anchor."""
        before = _common(data[max(0, at - anchor) : at][::-1], self.form[:anchor][::-1])
        rest = self.form[anchor:]
        return at - before, at + _common(data[at : at + len(rest)], rest)


def _common(first: bytes, second: bytes) -> int:
    """The length of the common beginning."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _forms(secret: bytes) -> Iterator[tuple[bytes, int]]:
    """A secret as it may be written, with the length of a part that must not be shown."""
    for form in (secret, secret[::-1]):
        yield form, min(_PART, len(form))
    if len(secret) < _SHORTEST:
        return
    for shift in range(3):  # the bytes before it, modulo 3
        coded = base64.b64encode(bytes(shift) + secret)
        form = coded[-(-8 * shift // 6) : 8 * (shift + len(secret)) // 6]
        for written in {form, form.translate(bytes.maketrans(b"+/", b"-_"))}:
            yield written, min(_PART_BASE64, len(written))


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1] or found[2]
    return found[3] if code is None else bytes([int(code, 16)])


def _places(data: bytes) -> "array[int]":
    """The place in `data` of each byte without escapes, and of the end."""
    places, at = array("Q"), 0
    for escape in _ESCAPE.finditer(data):
        places.extend(range(at, escape.start() + 1))
        at = escape.end()
    places.extend(range(at, len(data) + 1))
    return places
