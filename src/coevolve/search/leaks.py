"""The leak scan: questions, answers and ids of tasks in the files of a candidate."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from coevolve.search.candidate import Files
from coevolve.search.leak_texts import (
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

UNREAD = "could not be searched in full; it is too large, or not text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The question of a task, and its answer; "" where there is none.

    An answer that is a label, one of a few that many tasks share, is not secret.

    >>> Secret(text="Which metal is liquid at room temperature?", answer="mercury").answer
    'mercury'
    """

    text: str
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A place in the files of a candidate that reveals a task, or a file that was not searched.

    The message never contains the text of the task. It does not name a task of the sealed test,
    because proposers read why a candidate was refused.

    Args:
        path: The file. If its name reveals the task, only the beginning of the name.
        line: The first line that reveals the task, from 1; 0 for the name of the file.
        task: The id of the task; "" for a file that was not searched.
        what: The "question", the "answer", or the "id" as a whole string. "unread" is a file
            that is too large to search, or not text, so it may contain any task.
        sealed: Whether it is a task of the sealed test.

    >>> print(Leak(path="harness.py", line=7, task="s2d-003", what="question"))
    harness.py, line 7: has the question of task 's2d-003'
    >>> print(Leak(path="data/Which me...", line=0, task="s2d-003", what="question"))
    data/Which me...: the name of the file has the question of task 's2d-003'
    >>> print(Leak(path="data.gz", line=1, task="", what="unread"))
    data.gz: could not be searched in full; it is too large, or not text
    """

    path: str
    line: int
    task: str
    what: What
    sealed: bool = False

    def __str__(self) -> str:
        if self.what == "unread":
            return f"{self.path}: {UNREAD}"
        task = "a task of the sealed test" if self.sealed else f"task {self.task!r}"
        where = f", line {self.line}:" if self.line else ": the name of the file"
        return f"{self.path}{where} has the {self.what} of {task}"


Found = tuple[str, int]
"""A task and the line that reveals it."""

LENGTH = 16
"""Letters of a shingle."""
ENOUGH = 8
"""Shingles that make a quotation."""
LONG = LENGTH + ENOUGH - 1
"""Letters in a row that have so many shingles."""
SHARED = 2
"""Texts that may have a shingle in common; a shingle of more of them is boilerplate."""
NEAR = 64
"""Letters that contain the distinctive shingles of a quotation."""
WHOLE = 12
"""The least weight of a text that is recognized as a whole question, or a line of one."""
BEGINNING = 24
"""The least weight of a text that is recognized as the beginning of a question."""
REPEATED = 0.1
"""The largest share of answers that occur twice; if more do, the answers are labels."""

_QUESTION_PRICE, _ANSWER_PRICE = 20_000, 400
"""The work of comparing a text with one question, and with one answer."""
_KEY = re.compile(r"^\s*\w[\w ]{0,20}[:：]\s*")
_ID = re.compile(r"(?=.*\d)(?=.*[^\W\d]).{5,}|(?=.*[-_/:.]).{12,}")
_NAME = 12
"""Characters shown of a file name that is a leak; so few identify no question."""
_NONE: Mapping[str, Secret] = {}


def shingles(text: str) -> Iterator[str]:
    """The runs of `LENGTH` letters in a squeezed text."""
    return (text[start : start + LENGTH] for start in range(len(text) - LENGTH + 1))


def probes(text: str, index: Container[str]) -> list[tuple[int, str]]:
    """Shingles of a text that are in an index, with their positions.

    Only every `ENOUGH`-th shingle is looked up; that is one of every quotation of `LONG` letters.

    >>> probes("a" * LENGTH + "b" * LENGTH, {"b" * LENGTH})
    [(16, 'bbbbbbbbbbbbbbbb')]
    """
    starts = range(0, len(text) - LENGTH + 1, ENOUGH)
    return [(at, text[at : at + LENGTH]) for at in starts if text[at : at + LENGTH] in index]


class Questions:
    """Finds the questions of tasks by shingles that no other text has."""

    def __init__(self, questions: Mapping[str, str]) -> None:
        self._tasks: dict[str, str] = {}  # by squeezed question: the first task that asks it
        for task, question in questions.items():
            if text := squeezed(question):
                self._tasks.setdefault(text, task)
        self._shingles = _indexed(self._tasks)
        self._wholes = _wholes(questions)
        self._beginnings = sorted(text for text in self._tasks if weight(text) >= BEGINNING)
        self._known: list[str] = []

    def forget(self, known: Iterable[Texts]) -> None:
        """Ignore from now on what these texts and the questions have in common."""
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
                if not work.pay(_QUESTION_PRICE):
                    return
                if self._dense(stream.text, position, question):
                    found.add(question)
                    yield self._tasks[question], stream.line(position)

    def _dense(self, text: str, position: int, question: str) -> bool:
        """Whether enough shingles of a question are around a position."""
        around = text[max(0, position - NEAR // 2) : position + NEAR // 2 + LENGTH]
        near = {s for s in shingles(around) if question in self._shingles.get(s, ())}
        return len(near) >= ENOUGH

    def _begun(self, text: str) -> str | None:
        """The task whose question begins with a text, unless a known text does too."""
        if 2 * len(text) < BEGINNING or not 0 < _count(self._beginnings, text) <= SHARED:
            return None
        if weight(text) < BEGINNING or _count(self._known, text):
            return None
        return self._tasks[self._beginnings[bisect_left(self._beginnings, text)]]


def _indexed(questions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Questions by their shingles, without boilerplate."""
    index: dict[str, tuple[str, ...]] = {}
    for question in questions:
        for shingle in set(shingles(question)):
            index[shingle] = (*index.get(shingle, ()), question)[: SHARED + 1]
    return {shingle: found for shingle, found in index.items() if len(found) <= SHARED}


def _wholes(questions: Mapping[str, str]) -> dict[str, str]:
    """Tasks by the whole strings that reveal them: the question, or a line that only it has."""
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
    """How many of some sorted texts begin like this, counted up to `SHARED` + 1."""
    first = bisect_left(ordered, beginning)
    return sum(text.startswith(beginning) for text in ordered[first : first + SHARED + 1])


class Answers:
    """Finds the answers of tasks, if they are long and not labels."""

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
        """Ignore from now on the answers in these texts."""
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
        """The answers in a stream, each with its first position."""
        found: set[str] = set()
        for at, shingle in probes(stream.text, self._probes):
            possible = self._probes[shingle]
            if not work.pay(len(possible) * _ANSWER_PRICE):
                return
            for answer, place in possible:
                whole = at >= place and stream.text.startswith(answer, at - place)
                if whole and answer in self._tasks and answer not in found:
                    found.add(answer)
                    yield answer, at - place


class Ids:
    """Finds the ids of tasks as whole strings, such as the keys of a table of answers."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._ids = {task for task in tasks if _ID.fullmatch(task)}

    def forget(self, known: Iterable[Texts]) -> None:
        """Ignore from now on the ids in these texts."""
        for texts in known:
            self._ids -= {unit.text.strip() for unit in texts.units}

    def find(self, texts: Texts, work: Work) -> Iterator[Found]:
        """The tasks whose ids are in a file."""
        for unit in texts.units:
            if (text := unit.text.strip()) in self._ids:
                yield text, unit.line


class LeakScan:
    """Searches the files of candidates for the questions, answers and ids of tasks.

    A question is found whole, by its beginning, or by two dozen letters in a row that at most two
    questions have. The scan reads the text of a file, its string literals, these backwards, and
    texts in them encoded in base64 or hexadecimal, compressed by zlib or gzip or not. Case,
    spaces, punctuation, quotes, line breaks and escapes make no difference. An answer is found if
    it is long and not a label, an id only as a whole string. The names of the files are searched
    too. A question that is hidden with more effort, for example letter by letter, in an
    archive or by a hash, is not found.

    The work for one candidate is bounded, and always ends at the same place. A file that was not
    searched in full is reported as "unread", and so is one that is not text.

    Args:
        secrets: The question and the answer of each task of the pool, by the id of the task.
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
        self._sealed = frozenset(sealed)
        self._looks: tuple[tuple[What, Questions | Answers | Ids], ...] = (
            ("question", Questions({task: secret.text for task, secret in tasks.items()})),
            ("answer", Answers({task: secret.answer for task, secret in tasks.items()})),
            ("id", Ids(tasks)),
        )
        files = [file for given in known for file in given.items()]
        self._known = frozenset(data for _, data in files)
        quotable = [texts_of(path, data, unbounded()) for path, data in files]
        quotable += [names_of(path, unbounded()) for path, _ in files]
        for _, look in self._looks:
            look.forget(quotable)

    def scan(self, files: Files) -> tuple[Leak, ...]:
        """The leaks in some files: each task once for each file and each way it is revealed.

        Small files are read first, because a large one may use up the work that is allowed.
        """
        leaks: set[Leak] = set()
        work = Work()
        for path in sorted(files, key=lambda path: (len(files[path]), path)):
            work.short = False
            named = self._found(names_of(path, work), work)
            shown = f"{path[:_NAME]}..." if named and len(path) > _NAME else path
            for task, what in named:
                leaks.add(self._leak(shown, 0, task, what))
            if files[path] not in self._known:
                inside = self._found(texts_of(path, files[path], work), work)
                for (task, what), line in inside.items():
                    leaks.add(self._leak(shown, line, task, what))
            if work.short:
                leaks.add(Leak(path=shown, line=1, task="", what="unread"))
        return tuple(sorted(leaks, key=_order))

    def _found(self, texts: Texts, work: Work) -> dict[tuple[str, What], int]:
        """The tasks that some texts reveal, and how, with the first line that does."""
        found: dict[tuple[str, What], int] = {}
        for what, look in self._looks:
            for task, line in look.find(texts, work):
                found[task, what] = min(line, found.get((task, what), line))
        return found

    def _leak(self, path: str, line: int, task: str, what: What) -> Leak:
        return Leak(path=path, line=line, task=task, what=what, sealed=task in self._sealed)


def _order(leak: Leak) -> tuple[bool, str, int, str, str]:
    """Tasks come before files that were not searched."""
    return leak.what == "unread", leak.path, leak.line, leak.task, leak.what
