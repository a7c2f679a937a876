"""A system that shows the model all that it has seen."""

from coevolve.benchmarks.textclass.inside.text_classification.agents.fewshot_memory import (
    FewShotMemory,
)
from coevolve.benchmarks.textclass.inside.text_classification.llm import LLMCallable


class FewShotAll(FewShotMemory):
    """Few-shot with as many examples as fit."""

    def __init__(self, llm: LLMCallable) -> None:
        super().__init__(llm, max_examples=9999)
