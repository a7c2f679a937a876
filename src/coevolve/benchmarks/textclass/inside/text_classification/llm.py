"""Stand-in for Meta-Harness's module of the same name."""

from typing import Protocol


class LLMCallable(Protocol):
    """A model: text in, text out."""

    def __call__(self, prompt: str) -> str:
        """The model's answer."""
        ...
