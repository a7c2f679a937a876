"""Scores on their own scales, with similar examples as a second opinion, beat either alone."""

import math
import re
from collections import Counter
from statistics import mean, pstdev

PER_LABEL = 2  # examples of each label that the model is asked about beforehand
TRUST = 2.0  # weight of similarity beside the model


class StandardisedWeighed:
    """Adds how far a label's score stands out and how similar its nearest examples are."""

    def __init__(self, model, task):
        self.model, self.labels = model, list(task.labels)
        self.asked = []  # the scores of all the labels after some of the examples
        self.count = dict.fromkeys(self.labels, 0)
        self.examples = []  # pairs of question and answer
        self.index = None

    def learn(self, example):
        """Keep the example; note the scores of all the labels after some of them."""
        self.examples.append([example.question, example.answer])
        self.index = None
        if self.count[example.answer] < PER_LABEL:
            self.count[example.answer] += 1
            self.asked.append(self.scores(example.question))

    def predict(self, question):
        """The label with the largest sum."""
        standing, similar = self.standing(question), self.similar(question)
        sums = [one + TRUST * other for one, other in zip(standing, similar, strict=True)]
        return max(zip(sums, self.labels, strict=True))[1]

    def scores(self, question):
        """Log-probabilities of the labels after a message."""
        found = self.model.scores(f"{question} (keywords:", self.labels)
        return [found[label] for label in self.labels]

    def standing(self, question):
        """How far each label's score is above its mean, in standard deviations."""
        columns = zip(self.scores(question), *self.asked, strict=True)
        return [
            (score - mean(usual or [0])) / (pstdev(usual or [0]) or 1) for score, *usual in columns
        ]

    def similar(self, question):
        """Logarithm of how similar the three nearest examples of each label are."""
        self.index = self.index or Index([text for text, _ in self.examples])
        alike = {label: [0.0, 0.0, 0.0] for label in self.labels}
        for (_, label), value in zip(self.examples, self.index.alike(question), strict=True):
            alike[label].append(value)
        sums = [sum(sorted(alike[label])[-3:]) for label in self.labels]
        return [math.log(value / (mean(sums) or 1) + 0.05) for value in sums]

    def state(self):
        """The examples and the scores."""
        return {"examples": self.examples, "asked": self.asked, "count": self.count}

    def restore(self, state):
        """The examples and the scores."""
        self.examples, self.asked, self.count = state["examples"], state["asked"], state["count"]


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
