"""What the model thinks and what similar examples say go wrong on different messages: add them."""

import math
import re
from collections import Counter

TRUST = 2.0  # weight of similarity beside the model
EMPTY = (
    "Hello, can someone please help me with this?",
    "Hi, I have a question about something at work.",
    "It does not work. What should I do now?",
    "Please let me know as soon as possible, thanks.",
)


class Weighed:
    """Adds the model's calibrated score and the logarithm of similarity."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer
        self.index = None
        self.usual = None  # the mean scores after messages that say nothing

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])
        self.index = self.usual = None

    def predict(self, question):
        """The label with the largest sum."""
        labels = self.labels()
        if self.usual is None:
            found = [self.scores(empty, labels) for empty in EMPTY]
            self.usual = {label: sum(s[label] for s in found) / len(found) for label in labels}
        scores, similar = self.scores(question, labels), self.similar(question, labels)
        return max(
            labels,
            key=lambda label: scores[label] - self.usual[label] + TRUST * similar[label],
        )

    def labels(self):
        """Those of the task, and any others that were seen."""
        return list(dict.fromkeys([*(self.task.labels or []), *(a for _, a in self.examples)]))

    def scores(self, question, labels):
        """Log-probabilities of the labels after a message."""
        return self.model.scores(f"{question} (keywords:", labels)

    def similar(self, question, labels):
        """Logarithm of how similar the three nearest examples of each label are, on average 0."""
        self.index = self.index or Index([text for text, _ in self.examples])
        alike = {label: [0.0, 0.0, 0.0] for label in labels}
        for (_, label), value in zip(self.examples, self.index.alike(question), strict=True):
            alike[label].append(value)
        sums = {label: sum(sorted(values)[-3:]) for label, values in alike.items()}
        mean = sum(sums.values()) / len(sums) or 1.0
        return {label: math.log(value / mean + 0.05) for label, value in sums.items()}

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
