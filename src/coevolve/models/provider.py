"""What a model is to the gateway."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from coevolve.models.request import JSON, ModelReply, ModelRequest


class Provider(Protocol):
    """Something that answers requests: a service, the embedded model, a recording.

    Several requests may be under way at once, all in one event loop; the gateway sees to how
    many, to time-outs, retries, prices and the cache. A call that is cancelled should end what
    it began. A provider raises the errors of `coevolve.models.errors`: what is worth another
    attempt as `ModelUnavailable` or `ModelReplyError`, and everything else as what it is.
    """

    @property
    def identity(self) -> Mapping[str, JSON]:
        """All that makes its answers what they are: model, address, weights; never a key.

        It has a `name`, which harnesses may see.
        """
        ...

    @property
    def window(self) -> int | None:
        """How many tokens prompt and answer may have together; None if nobody knows."""
        ...

    @property
    def gives_scores(self) -> bool:
        """Whether it gives log-probabilities of choices."""
        ...

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request.

        With `choices`, its text is one of them to the letter, or the gateway asks again.
        """
        ...

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """How many tokens each text has; an estimate where the service does not tell."""
        ...

    async def close(self) -> None:
        """End whatever it started."""
        ...
