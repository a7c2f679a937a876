"""The building blocks of harnesses for text classification, for the offline proposer."""

from coevolve.benchmarks.textclass.blocks.text_blocks import TextBlocks

__all__ = ["TextBlocks"]
