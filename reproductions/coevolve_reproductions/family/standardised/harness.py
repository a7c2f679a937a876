"""Scores of different labels cannot be compared before each is put on its own scale."""

from statistics import mean, pstdev

PER_LABEL = 2  # examples of each label that the model is asked about beforehand


class Standardised:
    """Learns from some examples which scores are usual for a label."""

    def __init__(self, model, task):
        self.model, self.labels = model, list(task.labels or [])
        self.asked = []  # the scores of all the labels after some of the examples
        self.seen = []  # the labels of those examples

    def learn(self, example):
        """Note the scores of all the labels after the first messages of each."""
        if example.answer not in self.labels:
            self.labels.append(example.answer)
        if self.seen.count(example.answer) < PER_LABEL:
            self.seen.append(example.answer)
            self.asked.append(self.scores(example.question))

    def predict(self, question):
        """The label that stands out the most."""
        standing = self.standing(question)
        return max(self.labels, key=standing.__getitem__)

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

    def state(self):
        """The labels and the scores."""
        return [self.labels, self.seen, self.asked]

    def restore(self, state):
        """The labels and the scores."""
        self.labels, self.seen, self.asked = state
