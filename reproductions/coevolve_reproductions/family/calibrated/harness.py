"""Labels that are likely after any message say little: judge by how much this one adds."""

EMPTY = (
    "Hello, can someone please help me with this?",
    "Hi, I have a question about something at work.",
    "It does not work. What should I do now?",
    "Please let me know as soon as possible, thanks.",
)


class Calibrated:
    """Takes from each label's score what it gets after messages that say nothing."""

    def __init__(self, model, task):
        self.model, self.labels = model, list(task.labels or [])
        self.usual = None  # the mean scores after such messages, once they are known

    def learn(self, example):
        """Only the label, should it be new."""
        if example.answer not in self.labels:
            self.labels.append(example.answer)
            self.usual = None

    def predict(self, question):
        """The label that gains the most."""
        if self.usual is None:
            found = [self.scores(empty) for empty in EMPTY]
            self.usual = {label: sum(s[label] for s in found) / len(found) for label in found[0]}
        scores = self.scores(question)
        return max(scores, key=lambda label: scores[label] - self.usual[label])

    def scores(self, question):
        """Log-probabilities of the labels after a message."""
        return self.model.scores(f"{question} (keywords:", self.labels)

    def state(self):
        """The labels."""
        return self.labels

    def restore(self, state):
        """The labels."""
        self.labels = state
