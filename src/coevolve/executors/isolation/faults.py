"""What a sandbox can end with: a fault of the candidate, or of nobody."""

from coevolve.errors import CoevolveError
from coevolve.search.trials import Blame, Fault

LONGEST = 500


class HarnessFault(CoevolveError):  # noqa: N818
    """The candidate's code failed, lied or ran past a limit; `fault` says how.

    >>> HarnessFault("time-limit", "ran past 60 s").fault.kind
    'time-limit'
    """

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = one_line(kind, 60) or "error"
        self.reason = one_line(reason) or "no reason given"
        super().__init__(self.reason)

    @property
    def fault(self) -> Fault:
        """The fault as the engine records it."""
        return Fault(blame=Blame.CANDIDATE, kind=self.kind, reason=self.reason)


class ReportedFault(HarnessFault):
    """A fault that the runner reported in good order, so that its process can serve on."""


class SandboxError(CoevolveError):
    """A sandbox that could not be started; the candidate had no part in it.

    >>> SandboxError("no bwrap").fault.blame
    <Blame.INFRASTRUCTURE: 'infrastructure'>
    """

    @property
    def fault(self) -> Fault:
        """The fault as the engine records it."""
        return Fault(blame=Blame.INFRASTRUCTURE, kind="sandbox", reason=one_line(str(self)))


def one_line(text: str, longest: int = LONGEST) -> str:
    r"""Text from a candidate made safe to record and to print: one line, no control characters.

    >>> one_line("a\nb\x1b[31m\ud800")
    'a b\\x1b[31m\\ud800'
    """
    shown = []
    for character in " ".join(text[: 4 * longest].split()):
        plain = character.isprintable()
        shown.append(character if plain else character.encode("unicode_escape").decode())
    line = "".join(shown)
    return line if len(line) <= longest else line[: longest - 1] + "…"
