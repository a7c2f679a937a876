"""Requests from harnesses: any JSON, read strictly.

A harness chooses the prompt and, within the limits of the configuration, how it is answered. A
request has no field for a model, an address or a key.
"""

from collections.abc import Mapping
from typing import cast

from coevolve.errors import nearest
from coevolve.models import agent_payload
from coevolve.models.agent_payload import (
    check_order,
    check_size,
    read_effort,
    read_format,
    read_messages,
    read_overflow,
    read_text,
    read_tool_choice,
    read_tools,
    read_top_p,
)
from coevolve.models.model_errors import RequestRefused
from coevolve.models.provider import Message, ModelRequest, Role, Sampling

NAMES = (
    "prompt",
    "messages",
    "choices",
    "scores",
    "max_tokens",
    "temperature",
    "stop",
    "sample",
    *agent_payload.NAMES,
)
MOST_CHOICES = 1_000
MOST_STOPS = 4
"""The largest number that every service accepts."""
MOST_SAMPLES = 1_000_000


def read_request(
    payload: Mapping[str, object], sampling: Sampling, *, gives_scores: bool = True
) -> ModelRequest:
    """The request in a payload; None values count as left out.

    Raises:
        RequestRefused: The payload is not a valid request.

    >>> read_request({"prompt": "Hello", "max_tokens": 9000}, Sampling()).max_tokens
    1024
    """
    given = {name: value for name, value in payload.items() if value is not None}
    for name in given:
        if name not in NAMES:
            known = nearest(name, NAMES) or f" The keys are {', '.join(NAMES)}."
            raise RequestRefused(f"a request to the model cannot have {name!r:.80}.{known}")
    choices = _texts("choices", given.get("choices", []), MOST_CHOICES)
    if "choices" in given and not choices:
        raise RequestRefused("choices must not be empty; leave it out for a free answer.")
    if len(set(choices)) < len(choices):
        twice = next(choice for choice in choices if choices.count(choice) > 1)
        raise RequestRefused(f"choices must differ, got {twice!r:.80} twice.")
    check_size(given)
    read_overflow(given.get("overflow"))
    prompt, messages = _asked(given)
    tools = read_tools(given.get("tools"))
    answer_format = read_format(given.get("response_format"))
    if choices and (tools or answer_format):
        raise RequestRefused("choices cannot be combined with tools or a response_format.")
    return ModelRequest(
        prompt=prompt,
        messages=messages,
        system=sampling.system,
        choices=choices,
        scores=_scores(given.get("scores", False), choices, gives_scores),
        max_tokens=min(_max_tokens(given, sampling), sampling.max_tokens),
        temperature=_temperature(given.get("temperature", sampling.temperature)),
        stop=_texts("stop", given.get("stop", []), MOST_STOPS),
        sample=_whole("sample", given.get("sample", 0), least=0, most=MOST_SAMPLES),
        reasoning_effort=read_effort(given.get("reasoning_effort"), sampling.reasoning_effort),
        top_p=read_top_p(given.get("top_p")),
        tools=tools,
        tool_choice=read_tool_choice(given.get("tool_choice"), tools),
        parallel_tool_calls=_parallel(given.get("parallel_tool_calls"), tools),
        response_format=answer_format,
    )


def read_texts(texts: object) -> list[str]:
    """The texts in which to count tokens.

    Raises:
        RequestRefused: They are not a list of texts.
    """
    if not isinstance(texts, list):
        raise RequestRefused(f"texts must be a list of texts, got {texts!r:.80}.")
    return [read_text("a text to count", text, empty=True) for text in texts]


def _asked(given: Mapping[str, object]) -> tuple[str | None, tuple[Message, ...]]:
    if ("prompt" in given) == ("messages" in given):
        got = "both" if "prompt" in given else "neither"
        raise RequestRefused(f"a request to the model needs a prompt or messages, got {got}.")
    if "prompt" in given:
        return read_text("prompt", given["prompt"]), ()
    turns = read_messages(given["messages"])
    if all(turn.is_plain for turn in turns) and not _is_of_agent(given):
        for turn in turns:
            read_text("the content of a message", turn.content)
        _check_turns([turn.role for turn in turns])
    else:
        check_order(turns)
    return None, turns


def _is_of_agent(given: Mapping[str, object]) -> bool:
    """Whether a request has a field that only agents use; their messages may have any order."""
    return read_overflow(given.get("overflow")) or any(name in given for name in _OF_AGENTS)


_OF_AGENTS = [name for name in agent_payload.NAMES if name != "overflow"]


def _parallel(value: object, tools: str) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise RequestRefused(f"parallel_tool_calls must be true or false, got {value!r:.80}.")
    if value is not None and not tools:
        raise RequestRefused("parallel_tool_calls needs tools; give the tools too.")
    return value


def _check_turns(roles: list[Role]) -> None:
    """Refuse an order of roles that only some models accept; others fail as if overloaded."""
    turns = roles[1:] if roles[0] == "system" else roles
    wanted = ["assistant" if place % 2 else "user" for place in range(len(turns))]
    if turns != wanted or len(turns) % 2 == 0:
        raise RequestRefused(
            "messages must alternate between user and assistant, the user first and last, with "
            f"an optional system message before them; got {', '.join(roles):.80}."
        )


def _texts(name: str, value: object, most: int) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise RequestRefused(f"{name} must be a list of texts, got {value!r:.80}.")
    if len(value) > most:
        raise RequestRefused(f"{name} must be {most:,} texts or fewer, got {len(value):,}.")
    # White space alone may be a stop, but not a choice.
    return tuple(
        read_text(f"each of {name}", text, empty=name == "stop" and text != "") for text in value
    )


def _scores(value: object, choices: tuple[str, ...], given: bool) -> bool:
    if not isinstance(value, bool):
        raise RequestRefused(f"scores must be true or false, got {value!r:.80}.")
    if value and not choices:
        raise RequestRefused("scores need choices; give the choices too.")
    if value and not given:
        raise RequestRefused("this model gives no scores; request one of the choices instead.")
    return value


def _max_tokens(given: Mapping[str, object], sampling: Sampling) -> int:
    return _whole("max_tokens", given.get("max_tokens", sampling.max_tokens), least=1)


def _whole(name: str, value: object, *, least: int, most: int | None = None) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        bounds = f"{least} or more" if most is None else f"from {least} to {most:,}"
        raise RequestRefused(f"{name} must be a whole number, {bounds}, got {value!r:.80}.")
    return cast(int, value)


def _temperature(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= cast(float, value) <= 2):
        raise RequestRefused(f"temperature must be a number in [0, 2], got {value!r:.80}.")
    return cast(float | None, value)
