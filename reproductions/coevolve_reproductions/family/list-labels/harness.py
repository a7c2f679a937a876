"""A model that is told all the labels before the question picks the right one."""


class ListLabels:
    """Puts the list of labels in front of the question."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.labels = list(task.labels or [])

    def learn(self, example):
        """Only the label, should it be new."""
        if example.answer not in self.labels:
            self.labels.append(example.answer)

    def predict(self, question):
        """The label that the model goes on with."""
        if not self.labels:
            return self.model(f"{self.task.instructions}\n{question}\nAnswer:", max_tokens=8)
        prompt = (
            f"{self.task.instructions}\n"
            f"Possible answers: {', '.join(self.labels)}.\n\n"
            f"Message: {question}\nAnswer:"
        )
        return self.model.choose(prompt, self.labels)

    def state(self):
        """The labels."""
        return self.labels

    def restore(self, state):
        """The labels."""
        self.labels = state
