"""Replies on their way back: checked, then put as a harness gets them."""

import math
from typing import Any

from coevolve.models.errors import ModelReplyError, NoChoice
from coevolve.models.request import ModelReply, ModelRequest
from coevolve.models.spent import Spent


def checked(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """A reply that answers its request.

    Raises:
        NoChoice: Its text is none of the choices.
        ModelReplyError: Scores were asked for, and it has not one for each choice.
    """
    if request.choices and reply.text not in request.choices:
        raise NoChoice(
            f"the model answered {reply.text!r:.80}, which is none of the "
            f"{len(request.choices)} choices ({request.choices[0]!r:.40}, ...)."
        )
    if request.scores:
        scores = reply.scores or {}
        if scores.keys() != set(request.choices) or not all(map(math.isfinite, scores.values())):
            raise ModelReplyError("the model did not give a score for each of the choices.")
    return reply


def answer(reply: ModelReply, consumed: Spent | None) -> dict[str, Any]:
    """What a harness gets; nothing was consumed where the answer was known.

    >>> reply = ModelReply(text="yes", finish="stop", tokens_in=9, tokens_out=1)
    >>> answer(reply, None)["saved"]
    {'tokens_in': 9, 'tokens_out': 1, 'dollars': 0.0}
    """
    given = {
        "text": reply.text,
        "finish": reply.finish,
        "scores": None if reply.scores is None else dict(reply.scores),
        "cached": consumed is None,
        "usage": usage(consumed or Spent()),
    }
    return {**given, "saved": usage(Spent.on(reply))} if consumed is None else given


def usage(spent: Spent) -> dict[str, float]:
    """What was consumed, as the engine counts it for a trial."""
    return {
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "dollars": spent.dollars,
    }
