"""Few-shot (all): show the model every example that was learned, as many as fit.

The rule is that of Meta-Harness. The examples are shuffled for every question, with a seed that is
made from the question, so the order is the same in every process. They fill 30,000 characters; the
first example that does not fit ends the fill. If the model's window is smaller than that, the
examples fill the window, except for the room that question and answer need.
"""

import hashlib
import random
from bisect import bisect_right
from collections import Counter

CAP = 30_000  # characters of examples
ANSWER = 4_000  # tokens of the window that the examples leave for the answer
FRAME = 200  # tokens that a service may add around a prompt
# A local model reads slowly and has a small window. Without these two limits (None), it gets as
# many examples as its window takes, each in full.
SMALL = 1_000  # tokens of examples
SHORT = 360  # bytes of an example's question
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""


class FewShot:
    """Shows every example that fits, in an order of the question's own."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])

    def predict(self, question):
        """The model's answer after it has read the examples."""
        if self.model.completes:
            return self.completed(question)
        asked = f"{self.task.prompt(question)}\n\n{REPLY}"
        shown = self.fitting(self.shuffled(question), self.left(asked, ANSWER))
        prompt = "\n\n".join([*shown, asked])
        # Some services refuse a prompt that leaves too little room for the longest answer.
        return self.model(prompt, max_tokens=self.left(prompt))

    def completed(self, question):
        """The answer of a model that continues the text of a prompt."""
        asked = f"Q: {shortened(question, 600)}\nA:"
        limits = [room for room in (SMALL, self.left(asked, 100)) if room is not None]
        shown = self.fitting(self.shuffled(question, SHORT), min(limits, default=None))
        prompt = "\n\n".join([*shown, asked])
        if labels := self.labels():
            return self.model.choose(prompt, labels)
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def left(self, prompt, answer=0):
        """Tokens of the window that a prompt and an answer leave; None without a window."""
        window = self.model.window
        return window and max(1, window - self.model.count(prompt) - answer - FRAME)

    def shuffled(self, question, most=None):
        """The examples as texts, in the order for this question, as many as fit the cap."""
        seed = int.from_bytes(hashlib.sha256(question.encode()).digest()[:8], "big")
        blocks, size = [], 0
        for text, answer in random.Random(seed).sample(self.examples, len(self.examples)):
            block = f"Q: {shortened(text, most) if most else text}\nA: {answer}"
            if size + len(block) > CAP:
                break
            blocks.append(block)
            size += len(block) + 2  # the blank line after it
        return blocks

    def fitting(self, blocks, room):
        """The first blocks, as many as have no more tokens than that; all if room is None."""
        if room is None:
            return blocks
        sizes = range(1, len(blocks) + 1)
        return blocks[: bisect_right(sizes, room, key=lambda n: self.tokens(blocks[:n]))]

    def tokens(self, blocks):
        """How many tokens some blocks have."""
        return self.model.count("\n\n".join([*blocks, ""]))

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
