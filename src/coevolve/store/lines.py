"""Lines of a journal: checking seals on the text itself, and parsing many lines at once.

A line is the text of `core.events.sealed`: JSON that ends with `,"seal":"<16 hex digits>"}`.
Opening a long journal is all about this module, which is why it works on lists of lines.
"""

import json
from hashlib import blake2b

from pydantic_core import from_json

from coevolve.core.events import Event

_TAIL = len(',"seal":"0123456789abcdef"}')


def seal_of(line: bytes) -> bytes:
    """The seal a line ends with."""
    return line[-18:-2]


def are_sealed(lines: list[bytes], before: bytes) -> bool:
    """Whether the seals of lines in a row are right, given the seal before them.

    >>> line = b'{"seed":7,"seq":0,"type":"opened","seal":"e9ec64eab5c758cb"}'
    >>> are_sealed([line], b""), are_sealed([line.replace(b"7", b"8", 1)], b"")
    (True, False)
    """
    seals = [before, *[line[-18:-2] for line in lines]]
    fresh = blake2b(digest_size=8)
    right = []
    for seal, line in zip(seals, lines, strict=False):
        hashed = fresh.copy()
        hashed.update(seal + line[:-_TAIL] + b"}")
        right.append(hashed.hexdigest())
    tails = b"".join([line[-_TAIL:] for line in lines])
    return tails == "".join([f',"seal":"{seal}"}}' for seal in right]).encode()


def good(lines: list[bytes], before: bytes) -> int:
    """How many lines, from the first on, have the right seals."""
    for place, line in enumerate(lines):
        if not are_sealed([line], before):
            return place
        before = seal_of(line)
    return len(lines)


_TYPE = b',"type":"'
_OUTCOMES = (b'outcome"', b'failed"', b'reopened"')
_TOLD = (b'told"',)


def has_type(line: bytes, types: tuple[bytes, ...]) -> bool:
    """Whether the event of a line has one of some types, mostly without parsing it.

    Quotes within text are escaped in JSON, so the last `,"type":"` is a key and never part of a
    text. It is the key of the event itself unless its object ends before the line does. Types
    are given with the quote that ends them.

    >>> has_type(b'{"seq":1,"type":"told","seal":"0123456789abcdef"}', (b'told"',))
    True
    >>> has_type(b'{"seq":1,"type":"noted","x":{"a":1,"type":"told"}}', (b'told"',))
    False
    """
    start = line.rfind(_TYPE)
    if start < 0 or line.find(b"}", start) != len(line) - 1:
        return f'{parsed([line])[0]["type"]}"'.encode(errors="replace") in types
    return line.startswith(types, start + len(_TYPE))


class Skimmer:
    """Leaves out the outcomes that a later line sums up.

    Outcomes are held back until that is known; when they get too many, all of their wave stand.

    >>> skimmer = Skimmer()
    >>> skimmer.standing([b'{"seq":0,"type":"asked"}', b'{"seq":1,"type":"outcome"}'])
    [b'{"seq":0,"type":"asked"}']
    >>> skimmer.standing([b'{"seq":2,"type":"told"}']), skimmer.held
    ([b'{"seq":2,"type":"told"}'], [])
    """

    def __init__(self, most: int = 200_000) -> None:
        self.held: list[bytes] = []
        self._most = most
        self._all = False

    def standing(self, lines: list[bytes]) -> list[bytes]:
        """Those of some lines, and of those held back, that are known to stand."""
        standing, size = [], len(_TYPE)
        for line in lines:
            start = line.rfind(_TYPE)  # what `has_type` does, for most lines without a call
            plain = start > 0 and line.startswith(_OUTCOMES, start + size)
            plain = plain and line.find(b"}", start) == len(line) - 1
            if not self._all and (plain or has_type(line, _OUTCOMES)):
                self.held.append(line)
                continue
            if has_type(line, _TOLD):
                self.held.clear()
                self._all = False
            standing.append(line)
        if len(self.held) > self._most:
            standing += self.held
            self.held.clear()
            self._all = True
        return standing


def parsed(lines: list[bytes]) -> list[Event]:
    """The events of some lines.

    >>> parsed([b'{"seq":0}', b'{"seq":1}'])
    [{'seq': 0}, {'seq': 1}]
    """
    text = b"[%b]" % b",".join(lines)
    try:
        events: list[Event] = from_json(text)
    except ValueError:
        # Twice as slow, and takes what the other parser does not: half a surrogate pair.
        events = json.loads(text)
    return events
