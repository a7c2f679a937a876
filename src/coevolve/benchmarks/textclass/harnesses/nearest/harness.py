"""Nearest examples: show the model those that are most like the question, the nearest last.

Likeness is the cosine of TF-IDF vectors of words and pairs of words. What is written without
spaces, as Chinese and molecules are, is taken character by character.
"""

import math
import re
from collections import Counter
from itertools import pairwise

FEW, MANY = 4, 32  # examples that a small model is shown, and a large one
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""


class Nearest:
    """Shows the examples nearest to the question."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer
        self.index = None

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])
        self.index = None

    def predict(self, question):
        """The model's answer after it has read the nearest examples."""
        if self.index is None:
            self.index = Index([question for question, _ in self.examples])
        small = self.model.completes
        near = self.index.nearest(question, FEW if small else MANY)
        examples = [self.examples[position] for position in reversed(near)]
        shown = "".join(
            f"Question: {shortened(text, 360 if small else 6_000)}\nAnswer: {answer}\n\n"
            for text, answer in examples
        )
        if not small:
            return self.model(f"{shown}{self.task.prompt(question)}\n\n{REPLY}")
        prompt = f"{shown}Question: {shortened(question, 600)}\nAnswer:"
        if self.task.labels:
            return self.model.choose(prompt, self.task.labels)
        if len({answer for _, answer in self.examples}) < len(self.examples):
            return self.model.choose(prompt, [answer for _, answer in examples])
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def state(self):
        """The examples."""
        return self.examples

    def restore(self, state):
        """The examples."""
        self.examples = state


class Index:
    """Texts as TF-IDF vectors."""

    def __init__(self, texts):
        bags = [Counter(terms(text)) for text in texts]
        seen = Counter(term for bag in bags for term in bag)
        self.weights = {term: 1 + math.log(len(bags) / count) for term, count in seen.items()}
        self.vectors = [self.vector(bag) for bag in bags]

    def vector(self, bag):
        """The known terms of a text, by weight, as a vector of length 1."""
        known = {
            term: (1 + math.log(count)) * self.weights[term]
            for term, count in bag.items()
            if term in self.weights
        }
        length = math.hypot(*known.values()) or 1
        return {term: value / length for term, value in known.items()}

    def nearest(self, text, most):
        """The positions of the texts most like this one, the nearest first."""
        asked = self.vector(Counter(terms(text)))
        alike = [cosine(asked, vector) for vector in self.vectors]
        return sorted(range(len(alike)), key=lambda position: -alike[position])[:most]


def cosine(one, other):
    """How alike two vectors of length 1 are."""
    return sum(value * other.get(term, 0) for term, value in one.items())


def terms(text):
    """Words, or single characters of other scripts, and pairs of neighbours."""
    words = re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower())
    return words + [" ".join(pair) for pair in pairwise(words)]


def shortened(text, most):
    """A text in one line; of one with more bytes than that, the beginning and the end."""
    data = " ".join(text.split()).encode()  # bytes tell better than characters what is long
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
