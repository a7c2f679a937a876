"""Few-shot: show the model all that was learned, in the order in which it was learned.

As many examples as fit, the same ones for every question, and always first: prompts that begin
alike are read faster, since a model keeps what it has read.
"""

from collections import Counter

CAP = 30_000  # characters of examples
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""


class FewShot:
    """Shows every example that fits."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer
        self.shown = None  # the text of those that fit, once it is known

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])
        self.shown = None

    def predict(self, question):
        """The model's answer after it has read the examples."""
        if self.shown is None:
            self.shown = self.fitting()
        if not self.model.completes:
            return self.model(f"{self.shown}{self.task.prompt(question)}\n\n{REPLY}")
        prompt = f"{self.shown}Question: {shortened(question, 600)}\nAnswer:"
        if labels := self.labels():
            return self.model.choose(prompt, labels)
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def fitting(self):
        """The first examples, as many as fit into the cap and the model's window."""
        blocks, size = [], 0
        longest = 360 if self.model.completes else CAP
        for question, answer in self.examples:
            block = f"Question: {shortened(question, longest)}\nAnswer: {answer}\n\n"
            size += len(block)
            if size > CAP:
                break
            blocks.append(block)
        # The rest is for question and answer; besides, a small model reads slowly.
        room = self.model.window and self.model.window // (4 if self.model.completes else 2)
        while room and blocks and self.model.count("".join(blocks)) > room:
            blocks = blocks[: len(blocks) * 9 // 10]
        return "".join(blocks)

    def labels(self):
        """The answers to choose from: those of the task, or those seen, if any came twice."""
        seen = Counter(answer for _, answer in self.examples)
        return self.task.labels or (list(seen) if len(seen) < len(self.examples) else [])

    def state(self):
        """The examples."""
        return self.examples

    def restore(self, state):
        """The examples."""
        self.examples = state


def shortened(text, most):
    """A text in one line; of one with more bytes than that, the beginning and the end."""
    data = " ".join(text.split()).encode()  # bytes tell better than characters what is long
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
