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
        self.model, self.labels = model, list(task.labels or [])
        self.asked = []  # the scores of all the labels after some of the examples
        self.seen = []  # the labels of those examples
        self.examples = []  # pairs of question and answer
        self.index = None

    def learn(self, example):
        """Keep the example; note the scores of all the labels after some of them."""
        self.examples.append([example.question, example.answer])
        self.index = None
        if example.answer not in self.labels:
            self.labels.append(example.answer)
        if self.seen.count(example.answer) < PER_LABEL:
            self.seen.append(example.answer)
            self.asked.append(self.scores(example.question))

    def predict(self, question):
        """The label with the largest sum."""
        similar, standing = self.similar(question), self.standing(question)
        return max(self.labels, key=lambda label: standing[label] + TRUST * similar[label])

    def scores(self, question):
        """Log-probabilities of the labels after a message."""
        return self.model.scores(f"{question} (keywords:", self.labels)

    def standing(self, question):
        """How far each label's score is above its mean, in standard deviations."""
        scores = self.scores(question)
        standing = {}
        for label in self.labels:
            usual = [asked[label] for asked in self.asked if label in asked] or [0]
            standing[label] = (scores[label] - mean(usual)) / (pstdev(usual) or 1)
        return standing

    def similar(self, question):
        """Logarithm of how similar the three nearest examples of each label are."""
        self.index = self.index or Index([text for text, _ in self.examples])
        alike = {label: [0.0, 0.0, 0.0] for label in self.labels}
        for (_, label), value in zip(self.examples, self.index.alike(question), strict=True):
            alike[label].append(value)
        sums = {label: sum(sorted(values)[-3:]) for label, values in alike.items()}
        usual = mean(sums.values()) or 1
        return {label: math.log(value / usual + 0.05) for label, value in sums.items()}

    def state(self):
        """The labels, the scores, and the examples."""
        return [self.labels, self.seen, self.asked, self.examples]

    def restore(self, state):
        """The labels, the scores, and the examples."""
        self.labels, self.seen, self.asked, self.examples = state


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
