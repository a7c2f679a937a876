"""The parts of a request that agents need: tools, tool results, images, formats; read strictly."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from coevolve.models.conversation import Message, Role, ToolCall, canonical
from coevolve.models.model_errors import RequestRefused

NAMES = (
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "top_p",
    "overflow",
)
MOST_MESSAGES = 20_000
MOST_TOOLS = 128
MOST_CALLS = 256
"""Tool calls in one message."""
MOST_PARTS = 1_000
MOST_IMAGES = 50
MOST_IMAGE_BYTES = 8_000_000
MOST_SCHEMA = 256_000
"""Characters of the tools, or of a response format, as JSON."""
MOST_REQUEST = 12_000_000
"""Characters of a whole request; the engine and its workers exchange messages up to 16 MB."""

_ROLES = get_args(Role)
_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_EFFORT = re.compile(r"[a-z]{1,20}")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,")
_CACHED = {"type": "ephemeral"}
_CHOICES = ("auto", "none", "required")
_FORMATS = ("text", "json_object", "json_schema")


def size_of(value: object) -> int:
    """About how many characters a value has as JSON.

    >>> size_of({"prompt": "Wet?", "stop": ["a", 1]})
    41
    """
    size, left = 0, [value]
    while left:
        part = left.pop()
        size += 6
        if isinstance(part, str):
            size += len(part) - 4
        elif isinstance(part, Mapping):
            left += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            left += part
    return size


def check_size(payload: Mapping[str, object]) -> None:
    """Refuse a request that is too large for the engine.

    Raises:
        RequestRefused: It is.
    """
    if (size := size_of(payload)) > MOST_REQUEST:
        raise RequestRefused(
            f"a request to the model must have at most {MOST_REQUEST:,} characters, got {size:,}."
        )


def read_text(name: str, value: object, *, empty: bool = False) -> str:
    """A text that can be encoded."""
    if not isinstance(value, str):
        raise RequestRefused(f"{name} must be text, got {value!r:.80}.")
    if not empty and not value.strip():
        raise RequestRefused(f"{name} must not be empty, got {value!r:.80}.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise RequestRefused(f"{name} contains an unpaired surrogate: {error}.") from None
    return value


def read_messages(messages: object) -> tuple[Message, ...]:
    """The messages of a request, in any order of roles that tools allow."""
    if not isinstance(messages, list) or not messages:
        raise RequestRefused(f"messages must be a list of messages, got {messages!r:.80}.")
    if len(messages) > MOST_MESSAGES:
        raise RequestRefused(f"at most {MOST_MESSAGES:,} messages, got {len(messages):,}.")
    turns = tuple(map(_message, messages))
    if sum(turn.images for turn in turns) > MOST_IMAGES:
        raise RequestRefused(f"a request may have at most {MOST_IMAGES} images.")
    return turns


def _message(turn: object) -> Message:
    if not isinstance(turn, dict) or not {"role", "content"} <= turn.keys() <= set(_KEYS):
        raise RequestRefused(
            f"a message must have a role and a content, and may have {', '.join(_KEYS[2:])}; got "
            f"{turn!r:.80}."
        )
    role = turn["role"]
    if role not in _ROLES:
        raise RequestRefused(f"a role must be one of {_ROLES}, got {role!r:.80}.")
    for key, owner in (
        ("tool_calls", "assistant"),
        ("reasoning_content", "assistant"),
        ("tool_call_id", "tool"),
        ("name", "tool"),
    ):
        if turn.get(key) and role != owner:
            raise RequestRefused(f"only a message of the {owner} may have {key}, not of {role}.")
    calls = _tool_calls(turn.get("tool_calls"))
    content, parts = _content(turn["content"], role)
    return Message(
        role=cast(Role, role),
        content=content,
        parts=parts,
        tool_calls=calls,
        tool_call_id=_identifier(turn.get("tool_call_id") or "", needed=role == "tool"),
        name=_identifier(turn.get("name") or "", needed=False),
        reasoning=read_text("reasoning_content", turn.get("reasoning_content") or "", empty=True),
    )


def _identifier(value: object, *, needed: bool) -> str:
    text = read_text("tool_call_id or name", value, empty=not needed)
    if len(text) > 256:
        raise RequestRefused(f"tool_call_id or name is longer than 256 characters: {text!r:.80}.")
    return text


def _content(content: object, role: str) -> tuple[str, tuple[str, ...]]:
    """The text of a content and its parts, if it has several or others than text."""
    what = "the content of a message"
    if content is None and role == "assistant":
        return "", ()
    if not isinstance(content, list):
        return read_text(what, content, empty=role in ("assistant", "tool")), ()
    if not 0 < len(content) <= MOST_PARTS:
        raise RequestRefused(f"{what} must have 1 to {MOST_PARTS:,} parts, got {len(content):,}.")
    texts = [read_text(what, part["text"], empty=True) for part in content if _is_text(part)]
    for part in content:
        if not _is_text(part):
            _check_image(part, role)
    return "\n".join(texts), tuple(map(canonical, content))


def _marked(part: Mapping[str, Any]) -> bool:
    return bool(part.get("cache_control", _CACHED) == _CACHED)


def _is_text(part: object) -> bool:
    keys = {"type", "text", "cache_control"}
    whole = isinstance(part, dict) and {"type", "text"} <= part.keys() <= keys and _marked(part)
    return whole and cast(dict[str, Any], part)["type"] == "text"


def _check_image(part: object, role: str) -> None:
    keys = {"type", "image_url", "cache_control"}
    if isinstance(part, dict) and {"type", "image_url"} <= part.keys() <= keys and _marked(part):
        image = part["image_url"]
        if part["type"] == "image_url" and role != "system" and isinstance(image, dict):
            plain = image.keys() <= {"url", "detail"}
            if plain and image.get("detail", "auto") in ("auto", "low", "high"):
                _check_data(image.get("url"))
                return
    raise RequestRefused(
        'a part of a content must be {"type": "text", "text": ...} or {"type": "image_url", '
        f'"image_url": {{"url": "data:image/png;base64,..."}}}}, got {part!r:.80}.'
    )


def _check_data(url: object) -> None:
    """Refuse an image that is not in the request itself."""
    found = _IMAGE.match(url) if isinstance(url, str) else None
    if found is None:
        raise RequestRefused(
            "an image must be a data URL of PNG, JPEG, GIF or WebP in base64, such as "
            f"data:image/png;base64,...; got {url!r:.40}."
        )
    data = cast(str, url)[found.end() :]
    if len(data) > MOST_IMAGE_BYTES * 4 // 3 + 4:
        raise RequestRefused(f"an image must have at most {MOST_IMAGE_BYTES:,} bytes.")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestRefused(f"the data of an image is not base64: {error}.") from None


def _tool_calls(value: object) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MOST_CALLS:
        raise RequestRefused(f"tool_calls must be up to {MOST_CALLS} calls, got {value!r:.80}.")
    return tuple(map(_tool_call, value))


def _tool_call(value: object) -> ToolCall:
    function = value.get("function") if isinstance(value, dict) else None
    if (
        not isinstance(function, dict)
        or not cast(dict[str, Any], value).keys() <= {"id", "type", "function", "index"}
        or cast(dict[str, Any], value).get("type", "function") != "function"
        or function.keys() != {"name", "arguments"}
    ):
        raise RequestRefused(
            'a tool call must be {"id": ..., "type": "function", "function": {"name": ..., '
            f'"arguments": ...}}}}, got {value!r:.80}.'
        )
    return ToolCall(
        id=_identifier(cast(dict[str, Any], value).get("id"), needed=True),
        name=read_text("the name of a tool", function["name"]),
        arguments=read_text("the arguments of a tool call", function["arguments"], empty=True),
    )


def check_order(turns: Sequence[Message]) -> None:
    """Refuse an order that no model understands.

    Raises:
        RequestRefused: A tool answers no call, a system message is not the first one, or the last
            message asks nothing.
    """
    called: set[str] = set()
    for place, turn in enumerate(turns):
        if turn.role == "system" and place:
            raise RequestRefused("a system message must be the first message.")
        if turn.role == "tool" and turn.tool_call_id not in called:
            raise RequestRefused(
                f"the tool message {turn.tool_call_id!r:.40} answers no call of the assistant "
                "before it."
            )
        if turn.role == "assistant":
            called = {call.id for call in turn.tool_calls}
    if turns[-1].role not in ("user", "tool"):
        raise RequestRefused(
            f"the last message must be of the user or a tool, not of the {turns[-1].role}."
        )


def read_tools(value: object) -> str:
    """The tools of a request, as JSON; empty if there are none."""
    if value is None:
        return ""
    if not isinstance(value, list) or not 0 < len(value) <= MOST_TOOLS:
        raise RequestRefused(f"tools must be 1 to {MOST_TOOLS} tools, got {value!r:.80}.")
    names = [_tool_name(tool) for tool in value]
    if len(set(names)) < len(names):
        raise RequestRefused(f"two tools have one name; got {', '.join(names):.80}.")
    return _bounded("tools", value)


def _tool_name(tool: object) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    keys = {"type", "function", "cache_control"}
    if (
        not isinstance(function, dict)
        or not cast(dict[str, Any], tool).keys() <= keys
        or cast(dict[str, Any], tool).get("type") != "function"
        or not _marked(cast(dict[str, Any], tool))
        or not function.keys() <= {"name", "description", "parameters", "strict"}
        or not isinstance(function.get("parameters", {}), dict)
        or not isinstance(function.get("description", ""), str)
        or not isinstance(function.get("strict", False), bool | None)
    ):
        raise RequestRefused(
            'a tool must be {"type": "function", "function": {"name": ..., "description": ..., '
            f'"parameters": ...}}}}, got {tool!r:.80}.'
        )
    return _name("the name of a tool", function.get("name"))


def _name(what: str, value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise RequestRefused(f"{what} must be 1 to 64 letters, digits, _ or -, got {value!r:.80}.")
    return value


def _bounded(name: str, value: object) -> str:
    try:
        text = canonical(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestRefused(f"{name} must be JSON: {error}") from error
    if len(text) > MOST_SCHEMA:
        raise RequestRefused(f"{name} must have at most {MOST_SCHEMA:,} characters as JSON.")
    read_text(name, text)
    if "\\ud" in text:
        _check_surrogates(name, value)
    return text


def _check_surrogates(name: str, value: object) -> None:
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            read_text(name, part, empty=True)
        elif isinstance(part, dict):
            left += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            left += part


def read_tool_choice(value: object, tools: str) -> str:
    """Which tool the model must call, as JSON; empty to leave it to the service."""
    if value is None:
        return ""
    if not tools:
        raise RequestRefused("tool_choice needs tools; give the tools too.")
    if isinstance(value, str) and value in _CHOICES:
        return canonical(value)
    function = value.get("function") if isinstance(value, dict) else None
    if value != {"type": "function", "function": function} or not isinstance(function, dict):
        raise RequestRefused(
            f'tool_choice must be one of {_CHOICES} or {{"type": "function", "function": '
            f'{{"name": ...}}}}, got {value!r:.80}.'
        )
    name = _name("the name of a tool", function.get("name"))
    if function.keys() != {"name"} or f'"name":{canonical(name)}' not in tools:
        raise RequestRefused(f"tool_choice names {name!r}, which is not one of the tools.")
    return canonical(value)


def read_format(value: object) -> str:
    """The format of the answer, as JSON; empty if it is free."""
    if value is None:
        return ""
    kind = value.get("type") if isinstance(value, dict) else None
    schema = cast(dict[str, Any], value).get("json_schema") if kind == "json_schema" else None
    known = {"type"} if schema is None else {"type", "json_schema"}
    if (
        kind not in _FORMATS
        or cast(dict[str, Any], value).keys() != known
        or (kind == "json_schema" and not isinstance(schema, dict))
    ):
        raise RequestRefused(
            f'response_format must be {{"type": ...}} with one of {_FORMATS}, and a json_schema '
            f"for the last, got {value!r:.80}."
        )
    return _bounded("response_format", value)


def read_effort(value: object, configured: str | None) -> str | None:
    """How long the model should reason."""
    if value is None:
        return configured
    if not isinstance(value, str) or not _EFFORT.fullmatch(value):
        raise RequestRefused(f"reasoning_effort must be a word such as low, got {value!r:.80}.")
    return value


def read_top_p(value: object) -> float | None:
    """The share of probability to sample from."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < cast(float, value) <= 1):
        raise RequestRefused(f"top_p must be a number in (0, 1], got {value!r:.80}.")
    return None if value is None else float(cast(float, value))


def read_overflow(value: object) -> bool:
    """Whether a prompt that is too long is answered with a reply instead of an error."""
    if value not in (None, "error", "reply"):
        raise RequestRefused(f'overflow must be "error" or "reply", got {value!r:.80}.')
    return value == "reply"
