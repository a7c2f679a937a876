"""Questions of tasks in texts: quoted at length, or standing alone."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from coevolve.search.leaks.shingles import ENOUGH, LENGTH, SHARED, Found, probes, shingles
from coevolve.search.leaks.streams import Stream, squeezed, weight
from coevolve.search.leaks.texts import Texts
from coevolve.search.leaks.work import Work

NEAR = 64
"""Letters within which the distinctive shingles of a quotation lie."""
WHOLE = 12
"""Weight from which on a text that stands alone is recognised as a question, or a line of one."""
BEGINNING = 24
"""Weight from which on it is recognised as the beginning of one."""

_LOOK = 20_000
"""What it costs to look around a shingle."""
_KEY = re.compile(r"^\s*\w[\w ]{0,20}[:：]\s*")


class Questions:
    """The questions of tasks, to be found by what no other text has."""

    def __init__(self, questions: Mapping[str, str]) -> None:
        self._tasks: dict[str, str] = {}  # by squeezed question: the first task that asks it
        for task, question in questions.items():
            if text := squeezed(question):
                self._tasks.setdefault(text, task)
        self._shingles = _indexed(self._tasks)
        self._wholes = _standing_alone(questions)
        self._beginnings = sorted(text for text in self._tasks if weight(text) >= BEGINNING)
        self._known: list[str] = []

    def forget(self, known: Iterable[Texts]) -> None:
        """Leave out what these texts have in common with the questions."""
        for texts in known:
            for stream in texts.streams:
                for shingle in shingles(stream.text):
                    self._shingles.pop(shingle, None)
            for unit in texts.squeezed_units:
                self._wholes.pop(unit.text, None)
                self._known.append(unit.text)
        self._known.sort()

    def find(self, texts: Texts, work: Work) -> Iterator[Found]:
        """The tasks whose questions are in a file."""
        for unit in texts.squeezed_units:
            task = self._wholes.get(unit.text) or self._begun(unit.text)
            if task is not None:
                yield task, unit.line
        for stream in texts.streams:
            yield from self._quoted(stream, work)

    def _quoted(self, stream: Stream, work: Work) -> Iterator[Found]:
        found: set[str] = set()
        for position, shingle in probes(stream.text, self._shingles):
            for question in self._shingles[shingle]:
                if question in found:
                    continue
                if not work.take(1, _LOOK):
                    return
                if self._dense(stream.text, position, question):
                    found.add(question)
                    yield self._tasks[question], stream.line(position)

    def _dense(self, text: str, position: int, question: str) -> bool:
        """Whether enough of a question lies around a position."""
        around = text[max(0, position - NEAR // 2) : position + NEAR // 2 + LENGTH]
        near = {s for s in shingles(around) if question in self._shingles.get(s, ())}
        return len(near) >= ENOUGH

    def _begun(self, text: str) -> str | None:
        """The task whose question begins with a text, and no known text does."""
        if 2 * len(text) < BEGINNING or not 0 < _count(self._beginnings, text) <= SHARED:
            return None
        if weight(text) < BEGINNING or _count(self._known, text):
            return None
        return self._tasks[self._beginnings[bisect_left(self._beginnings, text)]]


def _indexed(questions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Questions by their shingles, without those that are boilerplate."""
    index: dict[str, tuple[str, ...]] = {}
    for question in questions:
        for shingle in set(shingles(question)):
            index[shingle] = (*index.get(shingle, ()), question)[: SHARED + 1]
    return {shingle: found for shingle, found in index.items() if len(found) <= SHARED}


def _standing_alone(questions: Mapping[str, str]) -> dict[str, str]:
    """What is a question as a literal of its own: all of it, or a line that no other has."""
    owners: dict[str, str] = {}
    count: Counter[str] = Counter()
    for task, question in questions.items():
        lines = question.splitlines()
        parts = {squeezed(p) for line in lines for p in (line, _KEY.sub("", line))}
        for part in parts | {squeezed(question)}:
            if weight(part) >= WHOLE:
                owners.setdefault(part, task)
                count[part] += 1
    return {part: task for part, task in owners.items() if count[part] <= SHARED}


def _count(ordered: list[str], beginning: str) -> int:
    """How many of some sorted texts begin like this; no more than are of interest."""
    first = bisect_left(ordered, beginning)
    return sum(text.startswith(beginning) for text in ordered[first : first + SHARED + 1])
