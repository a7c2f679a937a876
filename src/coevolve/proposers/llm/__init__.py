"""A proposer that calls any model through the gateway."""

from coevolve.proposers.llm.llm_proposer import LLMProposer

__all__ = ["LLMProposer"]
