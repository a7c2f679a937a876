"""The scan of a candidate's files for what it should not know."""

from collections.abc import Iterable, Mapping

from coevolve.search.candidate import Files
from coevolve.search.leaks.answers import Answers, Ids
from coevolve.search.leaks.digests import Digests
from coevolve.search.leaks.packing import Room
from coevolve.search.leaks.questions import Questions
from coevolve.search.leaks.records import Leak, Secret, What
from coevolve.search.leaks.texts import texts_of

_NONE: Mapping[str, Secret] = {}


class LeakScan:
    """Looks for the questions, answers and ids of tasks in the files of candidates.

    Questions are looked for whole, by their beginning, by some two dozen letters in a row that
    are in no more than two of them, and by common digests; in the text of a file, in its string
    literals, and in what these have encoded or packed. Case, spaces, punctuation, quotes, line
    breaks and escapes make no difference. Answers are looked for only if they are long and not
    labels; ids only as texts of their own. Whoever takes more trouble to hide a question than
    this, for example by taking it apart letter by letter, is not found.

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
        quotable = [texts_of(path, data) for files in known for path, data in files.items()]
        for _, look in self._looks:
            look.forget(quotable)

    def scan(self, files: Files) -> tuple[Leak, ...]:
        """The leaks in some files, each task once for each way it leaks from a file."""
        found: dict[tuple[str, str, What], int] = {}
        room = Room()
        for path in sorted(files):
            texts = texts_of(path, files[path], room)
            for what, look in self._looks:
                for task, line in look.find(texts):
                    key = (path, task, what)
                    found[key] = min(line, found.get(key, line))
        leaks = (
            Leak(path=path, line=line, task=task, what=what, sealed=task in self._sealed)
            for (path, task, what), line in found.items()
        )
        return tuple(sorted(leaks, key=lambda leak: (leak.path, leak.line, leak.task, leak.what)))
