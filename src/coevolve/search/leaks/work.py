"""The work a scan may do, so that no candidate can keep it busy."""

from dataclasses import dataclass

MOST = 3_000_000_000
"""What a scan of one candidate may cost. A price is about the nanoseconds that something takes on
a slow machine; no clock is read, so that the same files are always read equally far."""

TEXT, LINE = 20_000, 300
PIECE = 6_000
"""A literal or a field, and what is done with it, but for its characters."""
TOKEN = 600
"""What may be a literal or a digest."""
LITERAL = 6_000
"""A literal of Python, which has a prefix and neighbours."""
ESCAPE = 1_000
PLAIN = 100
"""A character of a text that is all ASCII."""
OTHER = 400
"""A character of any other text, which has to be normalised."""


@dataclass(slots=True)
class Work:
    """What a scan may still cost.

    Args:
        left: What is left of it.
        short: Whether there was not enough for something, which was therefore left out.

    >>> work = Work(left=1_000)
    >>> work.take(3, 300), work.short
    (3, False)
    >>> work.take(3, 50), work.short
    (2, True)
    """

    left: int = MOST
    short: bool = False

    def take(self, count: int, price: int) -> int:
        """How many of some things can be done at a price each; they are paid for."""
        taken = max(0, min(count, self.left // price))
        self.left -= taken * price
        self.short = self.short or taken < count
        return taken

    def text(self, text: str) -> str:
        """As much of a text as can be read; it is paid for, with its lines."""
        price = PLAIN if text.isascii() else OTHER
        if not self.take(1, TEXT):
            return ""
        cost = len(text) * price + text.count("\n") * LINE
        if cost <= self.left:
            self.left -= cost
            return text
        return text[: self.take(len(text), price + LINE)]

    def piece(self, text: str) -> bool:
        """Whether a piece of a text can be read; it is paid for."""
        cost = PIECE + len(text) * (PLAIN if text.isascii() else OTHER)
        return bool(self.take(1, cost))


def unbounded() -> Work:
    """Enough for files that are to be trusted."""
    return Work(left=1_000 * MOST)
