"""A bare model completes a list of keywords better than it answers a question."""


class Keywords:
    """Has the model go on after the message with the word "keywords" in brackets."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.labels = list(task.labels or [])

    def learn(self, example):
        """Only the label, should it be new."""
        if example.answer not in self.labels:
            self.labels.append(example.answer)

    def predict(self, question):
        """The label that the model goes on with."""
        prompt = f"{question} (keywords:"
        return self.model.choose(prompt, self.labels) if self.labels else self.model(prompt)

    def state(self):
        """The labels."""
        return self.labels

    def restore(self, state):
        """The labels."""
        self.labels = state
