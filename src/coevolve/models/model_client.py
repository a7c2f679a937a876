"""The model as a benchmark offers it to a candidate, and a stub of it for checks."""

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coevolve.core.outcomes import Usage
from coevolve.errors import InputError, nearest
from coevolve.models.agent_payload import check_size
from coevolve.models.gateway import answer
from coevolve.models.model_errors import TrialCapError
from coevolve.models.provider import ModelReply, Sampling
from coevolve.models.request_payload import read_request, read_texts

MOST_CALLS = 200
"""Calls in the trace of a trial."""
MOST_CHARACTERS = 200_000
"""Characters of all calls in a trace."""
LONGEST_TEXT = 40_000
"""Characters of one prompt or answer in a trace; of a longer text both ends are kept."""
_GIVEN = ("text", "finish", "scores", "tool_calls", "reasoning", "overflow", "reason")
SAMPLES = 1_000
"""Sample numbers reserved for one trial."""


class Asks(Protocol):
    """The engine, or a stub of it."""

    def ask(self, service: str, /, **payload: Any) -> Any:
        """The answer of a service; payload and answer are JSON."""
        ...


class ModelClient:
    """Passes a candidate's requests to the engine, within the caps of a trial.

    Several threads may use it at once.

    Args:
        host: The engine as the worker sees it, or a `StubModel`.

    Attributes:
        calls: Requests and answers since `begin`, for the trace; the first ones, up to a limit.
        left_out: The number of calls beyond the limit.
        usage: The usage of the model since `begin`. The engine counts it separately.
    """

    def __init__(self, host: Asks) -> None:
        self._host = host
        self._lock = threading.RLock()
        self._facts: dict[str, Any] | None = None
        self.begin()

    def begin(self, *, trial: int = 0) -> None:
        """Start a trial, or a step of a check or a preparation, which has the same caps.

        Another trial of a task gets other samples of the model.
        """
        self._trial = trial
        self._asked = self._tokens = 0
        self._room = MOST_CHARACTERS
        self.calls: list[dict[str, Any]] = []
        self.left_out = 0
        self.usage = Usage()

    @property
    def services(self) -> Mapping[str, Callable[..., Any]]:
        """The `services` of `harness.call`."""
        return {"model": self.model, "count": self.count, "model_facts": self.facts}

    @property
    def asked(self) -> int:
        """The number of calls since `begin`, with cached ones."""
        return self._asked

    def model(
        self,
        prompt: object = None,
        messages: object = None,
        choices: object = None,
        scores: object = None,
        max_tokens: object = None,
        temperature: object = None,
        stop: object = None,
        sample: object = None,
        top_p: object = None,
        tools: object = None,
        tool_choice: object = None,
        parallel_tool_calls: object = None,
        response_format: object = None,
        reasoning_effort: object = None,
        overflow: object = None,
    ) -> dict[str, Any]:
        """The answer to a request, which the engine checks.

        Its usage is that of the original call, even if the answer was cached: no score may depend
        on the cache.

        Raises:
            TrialCapError: A cap of the trial is reached.
        """
        parts = {
            "prompt": prompt,
            "messages": messages,
            "choices": choices,
            "scores": scores,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stop": stop,
            "sample": self._own(sample),
            "top_p": top_p,
            "tools": tools,
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "response_format": response_format,
            "reasoning_effort": reasoning_effort,
            "overflow": overflow,
        }
        request = {name: value for name, value in parts.items() if value is not None}
        check_size(request)
        with self._lock:
            self._check()
            self._asked += 1
        try:
            answer: dict[str, Any] = self._host.ask("model", **request)
        except Exception as error:
            self._keep({**request, "error": str(error)})
            raise
        usage = answer["usage"]
        counted = answer["saved"] if answer["cached"] else usage
        with self._lock:
            self.usage += Usage(**usage)
            self._tokens += counted["tokens_in"] + counted["tokens_out"]
        self._keep({**request, "answer": _shown(answer, counted)})
        return {name: answer[name] for name in _GIVEN if name in answer} | {"usage": counted}

    def count(self, texts: object) -> list[int]:
        """The number of tokens of each text."""
        counts: list[int] = self._host.ask("count", texts=texts)
        return counts

    def facts(self) -> dict[str, Any]:
        """What a harness may know about the model; the engine is asked once."""
        if self._facts is None:
            self._facts = self._host.ask("model_facts")
        return dict(self._facts)

    def answers(self) -> bool:
        """Whether the model answers a short request of the engine's own now."""
        return bool(self._host.ask("model_answers")["answered"])

    def _own(self, sample: object) -> object:
        """A sample number within those of this trial."""
        if not self._trial or not isinstance(sample, int | None):
            return sample
        return (sample or 0) + self._trial * SAMPLES

    def _check(self) -> None:
        facts = self.facts()
        caps = {
            "calls": (self._asked, facts["trial_calls"]),
            "tokens": (self._tokens, facts["trial_tokens"]),
        }
        for name, (value, cap) in caps.items():
            if cap is not None and value >= cap:
                raise TrialCapError(
                    f"the trial or step has used {self._asked:,} calls and {self._tokens:,} "
                    f"tokens of the model; the cap is {cap:,} {name}."
                )

    def _keep(self, call: dict[str, Any]) -> None:
        with self._lock:
            if self.left_out or len(self.calls) == MOST_CALLS:
                self.left_out += 1
                return
            call = {name: _without_images(clipped(value)) for name, value in call.items()}
            size = len(str(call))
            if size <= self._room:
                self.calls.append(call)
                self._room -= size
            else:
                self.left_out += 1


def _shown(answer: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    """An answer for the trace, with the tokens of the original call."""
    if "overflow" in answer:
        return {"overflow": True, "reason": answer["reason"]}
    kept = {"text": clipped(answer["text"]), "finish": answer["finish"]}
    if answer["scores"] is not None:
        kept["scores"] = answer["scores"]
    if "tool_calls" in answer:
        kept["tool_calls"] = answer["tool_calls"]
    if "reasoning" in answer:
        kept["reasoning"] = clipped(answer["reasoning"])
    tokens = {name: counted[name] for name in ("tokens_in", "tokens_out")}
    doubt = {"estimated": True} if answer.get("estimated") else {}
    return {**kept, **tokens, **doubt, "cached": answer["cached"]}


def _without_images(value: object) -> object:
    """A value with a note in place of each image."""
    if isinstance(value, dict):
        return {key: _without_images(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_images(part) for part in value]
    if isinstance(value, str) and value.startswith("data:image/"):
        return f"{value.partition(',')[0]}, … {len(value):,} characters"
    return value


def clipped(value: object, longest: int = LONGEST_TEXT) -> object:
    """A value; a long text is cut to its two ends.

    >>> clipped("abcdefghij", 4)
    'ab … 6 characters … ij'
    """
    if not isinstance(value, str) or len(value) <= longest:
        return value
    half = longest // 2
    return f"{value[:half]} … {len(value) - 2 * half:,} characters … {value[-half:]}"


class StubModel:
    """A stub of the engine: it reads requests as strictly, and gives fixed answers.

    The text is "stub", or the first of the choices. All choices have equal scores. A word is a
    token.

    Args:
        window: The window it reports.
        gives_scores: Whether it reports scores.
        trial_calls: The cap on calls it reports.
        trial_tokens: The cap on tokens it reports.

    >>> StubModel().ask("model", prompt="Wet?", choices=["yes", "no"], scores=True)["text"]
    'yes'
    """

    def __init__(
        self,
        *,
        window: int | None = 8192,
        gives_scores: bool = True,
        trial_calls: int | None = None,
        trial_tokens: int | None = None,
    ) -> None:
        self._window = window
        self._gives_scores = gives_scores
        self._trial_calls, self._trial_tokens = trial_calls, trial_tokens

    @property
    def services(self) -> Mapping[str, Callable[..., Any]]:
        """The `services` of `harness.call`."""
        return {
            "model": self._model,
            "count": self._count,
            "model_facts": self._facts,
            "model_answers": lambda: {"answered": True, "usage": {}},
        }

    def ask(self, service: str, /, **payload: Any) -> Any:
        """The answer of a service."""
        if service not in self.services:
            known = nearest(service, self.services)
            raise InputError(f"the stub model has no service {service!r}.{known}")
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
        return answer(reply, Usage())

    def _count(self, texts: object) -> list[int]:
        return [len(text.split()) for text in read_texts(texts)]

    def _facts(self) -> dict[str, Any]:
        return {
            "name": "stub",
            "window": self._window,
            "scores": self._gives_scores,
            "tools": True,
            "trial_calls": self._trial_calls,
            "trial_tokens": self._trial_tokens,
        }
