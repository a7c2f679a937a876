"""Zero-shot: ask the model, and remember nothing.

What any other harness has to beat.
"""

REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""


class ZeroShot:
    """Asks the question as it is."""

    def __init__(self, model, task):
        self.model, self.task = model, task

    def learn(self, example):
        """Nothing."""

    def predict(self, question):
        """The model's answer."""
        if not self.model.completes:
            return self.model(f"{self.task.prompt(question)}\n\n{REPLY}")
        asked = shortened(question, 600)
        prompt = f"{self.task.instructions}\n\nQuestion: {asked}\nAnswer:"
        if self.task.labels:
            return self.model.choose(prompt, self.task.labels)
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def state(self):
        """Nothing is known."""
        return {}

    def restore(self, state):
        """Nothing is known."""


def shortened(text, most):
    """A text in one line; of one with more bytes than that, the beginning and the end."""
    data = " ".join(text.split()).encode()  # bytes tell better than characters what is long
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
