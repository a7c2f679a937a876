"""The scan of a candidate's files for what it should not know."""

from collections.abc import Iterable, Mapping

from coevolve.search.candidate import Files
from coevolve.search.leaks.answers import Answers, Ids
from coevolve.search.leaks.digests import Digests
from coevolve.search.leaks.questions import Questions
from coevolve.search.leaks.records import Leak, Secret, What
from coevolve.search.leaks.texts import Texts, names_of, texts_of
from coevolve.search.leaks.work import Work, unbounded

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
