"""A model that answers at once and always the same: for checks of candidates."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from coevolve.errors import InputError, nearest
from coevolve.models.payload import read_request, read_texts
from coevolve.models.replies import answer
from coevolve.models.request import ModelReply
from coevolve.models.settings import Sampling
from coevolve.models.spent import Spent


class StubModel:
    """Stands in for the engine: requests are read as strictly, and answered by rote.

    The text is "stub", or the first of the choices; all choices score alike; a word is a token.

    Args:
        window: What it says of itself.
        gives_scores: What it says of itself.

    >>> StubModel().ask("model", prompt="Wet?", choices=["yes", "no"], scores=True)["text"]
    'yes'
    """

    def __init__(self, *, window: int | None = 8192, gives_scores: bool = True) -> None:
        self._window = window
        self._gives_scores = gives_scores

    @property
    def services(self) -> Mapping[str, Callable[..., Any]]:
        """What to hand to `harness.call`."""
        return {"model": self._model, "count": self._count, "model_facts": self._facts}

    def ask(self, service: str, /, **payload: Any) -> Any:
        """What a service answers."""
        if service not in self.services:
            known = nearest(service, self.services)
            raise InputError(f"the stub model offers no service {service!r}.{known}")
        return self.services[service](**payload)

    def _model(self, **payload: object) -> dict[str, Any]:
        request = read_request(payload, Sampling(), gives_scores=self._gives_scores)
        even = {choice: -math.log(len(request.choices)) + 0.0 for choice in request.choices}
        reply = ModelReply(
            text=request.choices[0] if request.choices else "stub",
            finish="stop",
            tokens_in=sum(self._count(request.texts())),
            tokens_out=1,
            scores=even if request.scores else None,
        )
        return answer(reply, Spent())

    def _count(self, texts: object) -> list[int]:
        return [len(text.split()) for text in read_texts(texts)]

    def _facts(self) -> dict[str, Any]:
        return {
            "name": "stub",
            "window": self._window,
            "scores": self._gives_scores,
            "trial_calls": None,
            "trial_tokens": None,
        }
