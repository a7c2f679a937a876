"""A model says in its own words what a message is about; the label nearest to them is meant."""

from difflib import SequenceMatcher


class FreeAnswer:
    """Lets the model write, and looks for the label that it may have had in mind."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.labels = list(task.labels or [])

    def learn(self, example):
        """Only the label, should it be new."""
        if example.answer not in self.labels:
            self.labels.append(example.answer)

    def predict(self, question):
        """The label with the most letters in common with what the model writes."""
        written = self.model(f"{question}\n\nThis message is about", max_tokens=12, stop=["\n"])
        written = written.strip().lower()
        return max(self.labels, key=lambda label: alike(label, written), default=written)

    def state(self):
        """The labels."""
        return self.labels

    def restore(self, state):
        """The labels."""
        self.labels = state


def alike(label, text):
    """How much of a label is found in a text, from 0 to 1."""
    blocks = SequenceMatcher(None, label, text, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size > 2) / len(label)
