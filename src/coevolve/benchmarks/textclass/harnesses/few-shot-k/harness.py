"""Few-shot with k examples: show the model the first few that were learned.

An example whose label is not among the shown ones yet comes before one whose label is.
"""

K = 8
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""


class FewShotK:
    """Shows K examples, the same ones for every question."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer, K at most
        self.labels = []  # all the answers seen, each once
        self.repeated = False  # whether any answer was seen twice

    def learn(self, example):
        """Keep the example, if there is room, or if its label is new and another one's is not."""
        new = example.answer not in self.labels
        self.repeated |= not new
        if new:
            self.labels.append(example.answer)
        if len(self.examples) < K or (new and self.drop_double()):
            self.examples.append([example.question, example.answer])

    def drop_double(self):
        """Make room by an example whose label is shown twice; whether there was one."""
        shown = [answer for _, answer in self.examples]
        for position in reversed(range(len(shown))):
            if shown.count(shown[position]) > 1:
                del self.examples[position]
                return True
        return False

    def predict(self, question):
        """The model's answer after it has read the examples."""
        longest = 360 if self.model.completes else 6_000
        shown = "".join(
            f"Question: {shortened(question, longest)}\nAnswer: {answer}\n\n"
            for question, answer in self.examples
        )
        if not self.model.completes:
            return self.model(f"{shown}{self.task.prompt(question)}\n\n{REPLY}")
        prompt = f"{shown}Question: {shortened(question, 600)}\nAnswer:"
        if labels := self.task.labels or (self.labels if self.repeated else []):
            return self.model.choose(prompt, labels)
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def state(self):
        """The examples and the labels."""
        return {"examples": self.examples, "labels": self.labels, "repeated": self.repeated}

    def restore(self, state):
        """The examples and the labels."""
        self.examples, self.labels = state["examples"], state["labels"]
        self.repeated = state["repeated"]


def shortened(text, most):
    """A text in one line; of one with more bytes than that, the beginning and the end."""
    data = " ".join(text.split()).encode()  # bytes tell better than characters what is long
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
