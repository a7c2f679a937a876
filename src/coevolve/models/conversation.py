"""Messages of a conversation with a model: texts, images, tool calls and their results.

The JSON is OpenAI's, which LiteLLM takes for every service.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(NamedTuple):
    """A call of a tool that a model wrote; the arguments are JSON text, or what it wrote instead.

    >>> ToolCall("c1", "run", '{"command": "ls"}').to_json()["function"]["name"]
    'run'
    """

    id: str
    name: str
    arguments: str

    def to_json(self) -> dict[str, Any]:
        """OpenAI's form."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The call that `to_json` described; TypeError or KeyError if it describes none."""
        call = cls(data["id"], data["function"]["name"], data["function"]["arguments"])
        if not all(isinstance(part, str) for part in call):
            raise TypeError(f"not a tool call: {data!r:.80}")
        return call


class Message(NamedTuple):
    """One message of a conversation.

    Args:
        role: Who wrote it.
        content: Its text; with `parts`, all their texts.
        parts: Texts and images in OpenAI's form, as JSON, if it is not only a text.
        tool_calls: The tools that the assistant calls.
        tool_call_id: The call that a tool answers.
        name: The name of that tool.
        reasoning: The reasoning of the assistant before it.

    >>> Message("user", "Is water wet?").to_json()
    {'role': 'user', 'content': 'Is water wet?'}
    """

    role: Role
    content: str
    parts: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    reasoning: str = ""

    @property
    def images(self) -> int:
        """The number of images in it."""
        return sum('"image_url"' in part for part in self.parts)

    @property
    def is_plain(self) -> bool:
        """Whether it is a text of the system, the user or the assistant."""
        return self.role != "tool" and self == Message(self.role, self.content)

    def texts(self) -> list[str]:
        """All texts of it that the model reads."""
        calls = [text for call in self.tool_calls for text in (call.name, call.arguments)]
        return [text for text in (self.content, self.reasoning, *calls) if text]

    def to_json(self) -> dict[str, Any]:
        """OpenAI's form."""
        content: Any = [json.loads(part) for part in self.parts] if self.parts else self.content
        plain = {"role": self.role, "content": content}
        if self.tool_calls:
            plain["content"] = content or None
            plain["tool_calls"] = [call.to_json() for call in self.tool_calls]
        named = {
            "tool_call_id": self.tool_call_id,
            "name": self.name,
            "reasoning_content": self.reasoning,
        }
        return plain | {key: value for key, value in named.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The message that `to_json` described; TypeError or KeyError if it describes none."""
        content = data["content"]
        parts = content if isinstance(content, list) else []
        texts = [part["text"] for part in parts if part["type"] == "text"]
        return cls(
            role=data["role"],
            content="\n".join(texts) if parts else content or "",
            parts=tuple(canonical(part) for part in parts),
            tool_calls=tuple(ToolCall.from_json(call) for call in data.get("tool_calls", ())),
            tool_call_id=data.get("tool_call_id", ""),
            name=data.get("name", ""),
            reasoning=data.get("reasoning_content", ""),
        )


def canonical(value: object) -> str:
    """JSON with sorted keys, the same for equal values.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
