"""The scan of a candidate's files for tasks it should not know."""

import hashlib
import re
import zlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from coevolve.search.candidate import Files
from coevolve.search.leaks.file_texts import (
    TOKEN,
    Stream,
    Texts,
    Work,
    names_of,
    squeezed,
    texts_of,
    unbounded,
    weight,
)

What = Literal["question", "answer", "id", "unread"]

UNREAD = "could not be searched to its end"

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What a task asks, and its answer; "" where there is none.

    An answer that is a label, one of a few that many tasks share, is no secret.

    >>> Secret(text="Which metal is liquid at room temperature?", answer="mercury").answer
    'mercury'
    """

    text: str
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A task in the files of a candidate, never with the text itself; or a file too large to tell.

    In words it does not say which task of the sealed test it is, since proposers read why
    a candidate was refused.

    Args:
        path: The file; only the beginning, if the task is in the name of the file.
        line: Where in it the first trace of the task was found, from 1; 0 if it is in its name.
        task: The task's id; "" for what was not read.
        what: Its "question", its "answer", or its "id" as a text of its own. "unread" is a file
            that takes too much work to search, so that it may have any task in it.
        sealed: Whether it is a task of the sealed test.

    >>> print(Leak(path="harness.py", line=7, task="s2d-003", what="question"))
    harness.py, line 7: has the question of task 's2d-003'
    >>> print(Leak(path="data/Which me...", line=0, task="s2d-003", what="question"))
    data/Which me...: the name of the file has the question of task 's2d-003'
    >>> print(Leak(path="data.json", line=1, task="", what="unread"))
    data.json: could not be searched to its end
    """

    path: str
    line: int
    task: str
    what: What
    sealed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "path": self.path,
            "line": self.line,
            "task": self.task,
            "what": self.what,
            "sealed": self.sealed,
        }

    def __str__(self) -> str:
        if self.what == "unread":
            return f"{self.path}: {UNREAD}"
        task = "a task of the sealed test" if self.sealed else f"task {self.task!r}"
        where = f", line {self.line}:" if self.line else ": the name of the file"
        return f"{self.path}{where} has the {self.what} of {task}"


def summary(leaks: Sequence[Leak]) -> str:
    """Some leaks in one line, the first few of them in full.

    >>> summary([])
    ''
    """
    more = f"; and {len(leaks) - _SHOWN} more" if len(leaks) > _SHOWN else ""
    return "; ".join(map(str, leaks[:_SHOWN])) + more


Found = tuple[str, int]
"""A task, and the line in which it was found."""

LENGTH = 16
"""Letters of a shingle."""
ENOUGH = 8
"""Shingles that make a quotation."""
LONG = LENGTH + ENOUGH - 1
"""Letters in a row that have so many shingles."""
SHARED = 2
"""Texts that may have a shingle in common; what more of them have is boilerplate."""


def shingles(text: str) -> Iterator[str]:
    """The runs of `LENGTH` letters in a squeezed text."""
    return (text[start : start + LENGTH] for start in range(len(text) - LENGTH + 1))


def probes(text: str, index: Container[str]) -> list[tuple[int, str]]:
    """Some of the shingles that an index knows, with where they are.

    Every `ENOUGH`-th shingle is looked up, which meets every quotation of `LONG` letters once.

    >>> probes("a" * LENGTH + "b" * LENGTH, {"b" * LENGTH})
    [(16, 'bbbbbbbbbbbbbbbb')]
    """
    starts = range(0, len(text) - LENGTH + 1, ENOUGH)
    return [(at, text[at : at + LENGTH]) for at in starts if text[at : at + LENGTH] in index]


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


REPEATED = 0.1
"""Share of the answers that may occur twice before they count as labels."""

_ANSWERS_LOOK = 400
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
            if work.take(len(possible), _ANSWERS_LOOK) < len(possible):
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


_NONE: Mapping[str, Secret] = {}
_BEGINNING = 12
"""Signs shown of the name of a file that is a leak; no question is told by so few."""


class LeakScan:
    """Looks for the questions, answers and ids of tasks in the files of candidates.

    Questions are looked for whole, by their beginning, by some two dozen letters in a row that
    are in no more than two of them, and by common digests; in the text of a file, in its string
    literals, and in what these have encoded or packed. Case, spaces, punctuation, quotes, line
    breaks and escapes make no difference. Answers are looked for only if they are long and not
    labels; ids only as texts of their own. The names of the files are searched as well. Whoever
    takes more trouble to hide a question than this, for example by taking it apart letter by
    letter, is not found.

    The work for one candidate is bounded, and always ends at the same place. A file of which
    something was left out is reported as "unread".

    Args:
        secrets: What each task of the pool asks, and its answer, by the id of the task.
        sealed: The same for the sealed test.
        known: Files that candidates may quote: starting harnesses, training examples.

    >>> scan = LeakScan({"q-17": Secret(text="Which metal is liquid at room temperature?")})
    >>> cheat = b"def answer(q): return 'mercury' if q.startswith('Which metal is liquid at roo')"
    >>> print(*scan.scan({"harness.py": cheat}))
    harness.py, line 1: has the question of task 'q-17'
    """

    def __init__(
        self,
        secrets: Mapping[str, Secret],
        *,
        sealed: Mapping[str, Secret] = _NONE,
        known: Iterable[Files] = (),
    ) -> None:
        tasks = {**secrets, **sealed}
        questions = {task: secret.text for task, secret in tasks.items()}
        answers = {task: secret.answer for task, secret in tasks.items()}
        self._sealed = frozenset(sealed)
        self._looks: tuple[tuple[What, Questions | Digests | Answers | Ids], ...] = (
            ("question", Questions(questions)),
            ("question", Digests(questions)),
            ("answer", Answers(answers)),
            ("id", Ids(tasks)),
        )
        files = [file for given in known for file in given.items()]
        quotable = [texts_of(path, data, unbounded()) for path, data in files]
        quotable += [names_of(path, unbounded()) for path, _ in files]
        for _, look in self._looks:
            look.forget(quotable)

    def scan(self, files: Files) -> tuple[Leak, ...]:
        """The leaks in some files, each task once for each way it leaks from a file.

        Small files are read first, so that a large one does not use up the work for them.
        """
        leaks: set[Leak] = set()
        work = Work()
        for path in sorted(files, key=lambda path: (len(files[path]), path)):
            work.short = False
            named = self._found(names_of(path, work), work)
            shown = _shortened(path) if named else path
            for task, what in named:
                leaks.add(self._leak(shown, 0, task, what))
            for (task, what), line in self._found(texts_of(path, files[path], work), work).items():
                leaks.add(self._leak(shown, line, task, what))
            if work.short:
                leaks.add(Leak(path=shown, line=1, task="", what="unread"))
        return tuple(sorted(leaks, key=_order))

    def _found(self, texts: Texts, work: Work) -> dict[tuple[str, What], int]:
        """What leaks from some texts, and the first lines where it does."""
        found: dict[tuple[str, What], int] = {}
        for what, look in self._looks:
            for task, line in look.find(texts, work):
                found[task, what] = min(line, found.get((task, what), line))
        return found

    def _leak(self, path: str, line: int, task: str, what: What) -> Leak:
        return Leak(path=path, line=line, task=task, what=what, sealed=task in self._sealed)


def _shortened(path: str) -> str:
    return path if len(path) <= _BEGINNING else f"{path[:_BEGINNING]}..."


def _order(leak: Leak) -> tuple[bool, str, int, str, str]:
    """Tasks before what was not read."""
    return leak.what == "unread", leak.path, leak.line, leak.task, leak.what
