"""Typos and endings hide similar words: find similar examples by pieces of words."""

import math
import re
from collections import Counter

SHOWN = 4


class WordPieces:
    """Shows the four nearest examples, the nearest last."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer
        self.index = None

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])
        self.index = None

    def predict(self, question):
        """The label that the model goes on with after the examples."""
        self.index = self.index or Index([text for text, _ in self.examples])
        alike = self.index.alike(question)
        near = sorted(range(len(alike)), key=lambda position: alike[position])[-SHOWN:]
        shown = "".join("Message: {}\nTopic: {}\n\n".format(*self.examples[i]) for i in near)
        labels = self.task.labels or sorted({answer for _, answer in self.examples})
        prompt = f"{shown}Message: {question}\nTopic:"
        return self.model.choose(prompt, labels) if labels else self.model(prompt)

    def state(self):
        """The examples."""
        return self.examples

    def restore(self, state):
        """The examples."""
        self.examples = state


class Index:
    """Texts as TF-IDF vectors of pieces of words."""

    def __init__(self, texts):
        bags = [Counter(pieces(text)) for text in texts]
        seen = Counter(piece for bag in bags for piece in bag)
        self.weights = {piece: 1 + math.log(len(bags) / count) for piece, count in seen.items()}
        self.vectors = [self.vector(bag) for bag in bags]

    def vector(self, bag):
        """The known pieces of a text, by weight, as a vector of length 1."""
        known = {
            piece: (1 + math.log(count)) * self.weights[piece]
            for piece, count in bag.items()
            if piece in self.weights
        }
        length = math.hypot(*known.values()) or 1
        return {piece: value / length for piece, value in known.items()}

    def alike(self, text):
        """How alike a text is to each of the texts, from 0 to 1."""
        asked = self.vector(Counter(pieces(text)))
        return [
            sum(value * vector.get(piece, 0) for piece, value in asked.items())
            for vector in self.vectors
        ]


def pieces(text):
    """Three to five characters in a row, within words and their edges."""
    for word in re.findall(r"\w+", text.lower()):
        edged = f" {word} "
        for size in (3, 4, 5):
            for start in range(max(1, len(edged) - size + 1)):
                yield edged[start : start + size]
