"""Answers of tasks in texts, and their ids."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from coevolve.search.leaks.shingles import ENOUGH, LONG, SHARED, Found, probes, shingles
from coevolve.search.leaks.streams import Stream, squeezed
from coevolve.search.leaks.texts import Texts
from coevolve.search.leaks.work import Work, unbounded

REPEATED = 0.1
"""Share of the answers that may occur twice before they count as labels."""

_LOOK = 400
"""What it costs to compare an answer."""
_ID = re.compile(r"(?=.*\d)(?=.*[^\W\d]).{5,}|(?=.*[-_/:.]).{12,}")


class Answers:
    """The answers of tasks, where they are long and not labels."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        given = {task: text for task, answer in answers.items() if (text := squeezed(answer))}
        count = Counter(given.values())
        labels = sum(count[text] > 1 for text in given.values()) > REPEATED * len(given)
        self._tasks: dict[str, str] = {}  # by squeezed answer
        for task, text in given.items():
            if not labels and len(text) >= LONG and count[text] <= SHARED:
                self._tasks.setdefault(text, task)
        self._probes: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for text in self._tasks:
            for place, shingle in zip(range(ENOUGH), shingles(text), strict=False):
                self._probes[shingle].append((text, place))

    def forget(self, known: Iterable[Texts]) -> None:
        """Leave out the answers that these texts have."""
        for texts in known:
            for stream in texts.streams:
                for answer, _ in list(self._held(stream, unbounded())):
                    self._tasks.pop(answer, None)

    def find(self, texts: Texts, work: Work) -> Iterator[Found]:
        """The tasks whose answers are in a file."""
        for stream in texts.streams:
            for answer, position in self._held(stream, work):
                yield self._tasks[answer], stream.line(position)

    def _held(self, stream: Stream, work: Work) -> Iterator[tuple[str, int]]:
        """The answers in a stream, each where it is first."""
        found: set[str] = set()
        for at, shingle in probes(stream.text, self._probes):
            possible = self._probes[shingle]
            if work.take(len(possible), _LOOK) < len(possible):
                return
            for answer, place in possible:
                whole = at >= place and stream.text.startswith(answer, at - place)
                if whole and answer in self._tasks and answer not in found:
                    found.add(answer)
                    yield answer, at - place


class Ids:
    """Ids of tasks as texts of their own, such as the keys of a table of answers."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._ids = {task for task in tasks if _ID.fullmatch(task)}

    def forget(self, known: Iterable[Texts]) -> None:
        """Leave out the ids that these texts have."""
        for texts in known:
            self._ids -= {unit.text.strip() for unit in texts.units}

    def find(self, texts: Texts, work: Work) -> Iterator[Found]:
        """The tasks whose ids stand in a file by themselves."""
        for unit in texts.units:
            if (text := unit.text.strip()) in self._ids:
                yield text, unit.line
