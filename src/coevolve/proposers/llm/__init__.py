"""A proposer that is plain calls to any model of the gateway."""

from coevolve.proposers.llm.llm_proposer import LLMProposer

__all__ = ["LLMProposer"]
