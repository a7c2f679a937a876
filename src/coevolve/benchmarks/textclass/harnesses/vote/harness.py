"""A vote of the nearest examples: no model is asked.

The reference line of every table: whatever asks a model should do better than this. Likeness is
the cosine of TF-IDF vectors of words and pairs of words; what is written without spaces is taken
character by character.
"""

import math
import re
from collections import Counter
from itertools import pairwise

VOTERS = 7


class Vote:
    """Answers as the nearest examples do, each with the weight of its likeness."""

    def __init__(self, model, task):
        self.task = task
        self.examples = []  # pairs of question and answer
        self.vectors = None

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])
        self.vectors = None

    def predict(self, question):
        """The answer with most votes."""
        if not self.examples:
            return self.task.labels[0] if self.task.labels else ""
        if self.vectors is None:
            self.index()
        asked = self.vector(Counter(terms(question)))
        alike = [cosine(asked, vector) for vector in self.vectors]
        nearest = sorted(range(len(alike)), key=lambda position: -alike[position])
        votes = Counter()
        for position in nearest[:VOTERS]:
            votes[self.examples[position][1]] += alike[position]
        return max(votes, key=votes.get)

    def index(self):
        """Make vectors of all examples."""
        bags = [Counter(terms(question)) for question, _ in self.examples]
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

    def state(self):
        """The examples."""
        return self.examples

    def restore(self, state):
        """The examples."""
        self.examples = state


def cosine(one, other):
    """How alike two vectors of length 1 are."""
    return sum(value * other.get(term, 0) for term, value in one.items())


def terms(text):
    """Words, or single characters of other scripts, and pairs of neighbours."""
    words = re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower())
    return words + [" ".join(pair) for pair in pairwise(words)]
