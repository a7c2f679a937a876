"""Scores of different labels cannot be compared before each is put on its own scale."""

from statistics import mean, pstdev

PER_LABEL = 2  # examples of each label that the model is asked about beforehand


class Standardised:
    """Learns from a few examples which scores are usual for a label."""

    def __init__(self, model, task):
        self.model, self.labels = model, list(task.labels)
        self.asked = []  # the scores of all the labels after some of the examples
        self.count = dict.fromkeys(self.labels, 0)

    def learn(self, example):
        """Note the scores of all the labels after this message."""
        if self.count[example.answer] < PER_LABEL:
            self.count[example.answer] += 1
            self.asked.append(self.scores(example.question))

    def predict(self, question):
        """The label that stands out the most."""
        standing = self.standing(question)
        return max(zip(standing, self.labels, strict=True))[1]

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

    def state(self):
        """The scores."""
        return {"asked": self.asked, "count": self.count}

    def restore(self, state):
        """The scores."""
        self.asked, self.count = state["asked"], state["count"]
