"""What one attempt asked of the engine's services: what it cost, and how long it waited."""

import time
from collections.abc import Mapping
from dataclasses import replace

from coevolve.core.outcomes import Usage

_COSTS = frozenset(("tokens_in", "tokens_out", "dollars"))


class Asked:
    """The services' side of an attempt, known even if its worker never answers.

    >>> asked = Asked()
    >>> asked.begin("model")
    >>> asked.end({"text": "yes", "usage": {"tokens_in": 90, "tokens_out": 1, "dollars": 0.02}})
    >>> asked.counted(Usage(seconds=2.5))
    Usage(tokens_in=90, tokens_out=1, dollars=0.02, seconds=2.5)
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self._waited = 0.0
        self._service = ""
        self._since: float | None = None

    def begin(self, service: str) -> None:
        """A service is asked; without `end` it never answered."""
        self._service, self._since = service, time.monotonic()

    def end(self, answer: object = None) -> None:
        """It answered or failed."""
        self._waited, self._since = self.waited_seconds, None
        self.usage += stated_usage(answer)

    def forget_waiting(self) -> None:
        """Begin to count time: only now does the attempt's own begin."""
        self._waited = 0.0

    @property
    def waits_for(self) -> str:
        """The service that has not answered yet; empty if there is none."""
        return "" if self._since is None else self._service

    @property
    def waiting_seconds(self) -> float:
        """How long the answer that has not come is waited for."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    @property
    def waited_seconds(self) -> float:
        """How long all answers were waited for, the last one included."""
        return self._waited + self.waiting_seconds

    def counted(self, usage: Usage) -> Usage:
        """A usage with what the services reported, unless it states tokens or dollars itself."""
        if usage.tokens_in or usage.tokens_out or usage.dollars:
            return usage
        return replace(self.usage, seconds=usage.seconds)


def stated_usage(answer: object) -> Usage:
    """What a service says that an answer has cost, under `usage`; nothing if it does not.

    >>> stated_usage({"text": "yes", "usage": {"tokens_in": 90}}).tokens_in
    90
    """
    stated = answer.get("usage") if isinstance(answer, Mapping) else None
    # A service of the user's own may mean something else by that name.
    if isinstance(stated, Mapping) and stated and _COSTS.issuperset(stated):
        return Usage(**stated)
    return Usage()
