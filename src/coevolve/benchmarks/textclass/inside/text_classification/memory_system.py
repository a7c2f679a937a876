"""Stand-in for Meta-Harness's module of the same name."""

import hashlib
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from coevolve.benchmarks.textclass.inside.text_classification.llm import LLMCallable


class MemorySystem(ABC):
    """What candidates of Meta-Harness are derived from."""

    def __init__(self, llm: LLMCallable) -> None:
        self._llm = llm
        self._last = threading.local()

    @abstractmethod
    def predict(self, input: str) -> tuple[str, dict[str, Any]]:
        """The answer to a task, and anything worth noting about it."""

    @abstractmethod
    def learn_from_batch(self, batch_results: list[dict[str, Any]]) -> None:
        """See examples with their answers."""

    @abstractmethod
    def get_state(self) -> str:
        """What it knows, as a text."""

    @abstractmethod
    def set_state(self, state: str) -> None:
        """Undo `get_state`."""

    def call_llm(self, prompt: str) -> str:
        """The model's answer; the prompt is remembered."""
        self._last.prompt = prompt
        return self._llm(prompt)

    def get_last_prompt_info(self) -> dict[str, Any]:
        """Length, hash and text of the last prompt of this thread."""
        prompt = getattr(self._last, "prompt", "")
        digest = hashlib.md5(prompt.encode(), usedforsecurity=False).hexdigest()[:8]
        return {"prompt_len": len(prompt), "prompt_hash": digest, "prompt_text": prompt}

    def get_context_length(self) -> int:
        """How long its state is."""
        return len(self.get_state())


def extract_json_field(text: str, field: str, default: str = "") -> str:
    """A field of the JSON in an answer, as text.

    The first object that can be read decides: the whole text, a fenced block, then any braces
    that match. If there is none, the last text that looks like the field is taken.
    """
    for part in _parts(text):
        try:
            found = json.loads(part)
        except ValueError:
            continue
        if isinstance(found, dict):
            return str(found.get(field, default))
    loose = re.findall(rf'"{re.escape(field)}"\s*:\s*"((?:[^"\\]|\\.)*)"', text)
    return str(loose[-1]) if loose else default


def _parts(text: str) -> Iterator[str]:
    yield text.strip()
    yield from (block.strip() for block in re.findall(r"```(?:json)?\s*(.*?)```", text, re.DOTALL))
    for found in re.finditer(r"\{", text):
        if (end := _closing(text, found.start())) is not None:
            yield re.sub(r",\s*([}\]])", r"\1", text[found.start() : end + 1])


def _closing(text: str, start: int) -> int | None:
    """Where the brace at `start` is closed, braces in strings left aside."""
    depth, quoted, escaped = 0, False, False
    for position in range(start, len(text)):
        character = text[position]
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
            continue
        quoted = character == '"'
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return position
    return None
