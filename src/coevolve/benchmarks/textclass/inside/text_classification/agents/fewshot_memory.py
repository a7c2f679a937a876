"""A system that shows the model what it has seen."""

import hashlib
import json
import random
from typing import Any

from coevolve.benchmarks.textclass.inside.text_classification.agents.no_memory import REPLY
from coevolve.benchmarks.textclass.inside.text_classification.llm import LLMCallable
from coevolve.benchmarks.textclass.inside.text_classification.memory_system import (
    MemorySystem,
    extract_json_field,
)

MAX_CHARS = 30_000


class FewShotMemory(MemorySystem):
    """Few-shot: the last examples, in an order that depends on the question."""

    def __init__(self, llm: LLMCallable, max_examples: int = 50) -> None:
        super().__init__(llm)
        self.max_examples = max_examples
        self.examples: list[dict[str, str]] = []

    def predict(self, input: str) -> tuple[str, dict[str, Any]]:
        """The model's answer, given the examples that fit."""
        seed = int.from_bytes(hashlib.sha256(input.encode()).digest()[:8])
        shown = self._format_examples_section(seed)
        response = self.call_llm(f"Solved examples:\n\n{shown}\n\nThe task:\n{input}\n\n{REPLY}")
        answer = extract_json_field(response, "final_answer")
        return answer, {"full_response": response, "num_examples": len(self.examples)}

    def learn_from_batch(self, batch_results: list[dict[str, Any]]) -> None:
        """Keep the examples."""
        for result in batch_results:
            example = {"input": result["input"], "target": result["ground_truth"]}
            if "raw_question" in result:
                example["raw_question"] = result["raw_question"]
            self.examples.append(example)

    def get_state(self) -> str:
        """The examples."""
        return json.dumps({"examples": self.examples})

    def set_state(self, state: str) -> None:
        """The examples."""
        self.examples = json.loads(state)["examples"]

    def _format_examples_section(self, seed: int | None = None) -> str:
        chosen = self.examples[-self.max_examples :]
        if seed is not None:
            chosen = random.Random(seed).sample(chosen, len(chosen))
        blocks: list[str] = []
        for example in chosen:
            question = example.get("raw_question", example["input"])
            block = f"Q: {question}\nA: {example['target']}"
            if sum(map(len, blocks)) + 2 * len(blocks) + len(block) > MAX_CHARS:
                break
            blocks.append(block)
        return "\n\n".join(blocks)
