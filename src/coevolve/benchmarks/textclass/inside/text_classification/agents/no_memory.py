"""A system that learns nothing and asks the model."""

from typing import Any

from coevolve.benchmarks.textclass.inside.text_classification.memory_system import (
    MemorySystem,
    extract_json_field,
)

REPLY = (
    "Reply with one JSON object: "
    '{"reasoning": "<how you came to it>", "final_answer": "<the answer alone>"}'
)


class NoMemory(MemorySystem):
    """Zero-shot."""

    def predict(self, input: str) -> tuple[str, dict[str, Any]]:
        """The model's answer to the task."""
        response = self.call_llm(f"{input}\n\n{REPLY}")
        return extract_json_field(response, "final_answer"), {"full_response": response}

    def learn_from_batch(self, batch_results: list[dict[str, Any]]) -> None:
        """Nothing."""

    def get_state(self) -> str:
        """Nothing."""
        return "{}"

    def set_state(self, state: str) -> None:
        """Nothing."""
