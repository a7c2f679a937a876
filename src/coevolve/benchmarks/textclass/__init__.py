"""Online text classification: sets, evaluators, harnesses, and the benchmark made of them."""

from coevolve.benchmarks.textclass.text_classification import TextClassification

__all__ = ["TextClassification"]
