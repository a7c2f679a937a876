"""The harness that Task-CoEvolve found in the paper: two rankings of the examples, fused.

One index knows pairs of words, the other runs of characters. An example's score is the sum of
1 / (60 + rank) over both rankings (reciprocal rank fusion). The prompt is filled greedily up to a
budget of characters; the score of an example is divided by a factor that grows with the examples
of its label that are there already, so that no label takes all the room. The first example that
does not fit ends the fill. The paper gives neither the budget nor the factor nor the order in the
prompt: here, the budget is that of few-shot, and the best example stands last.
"""

import math
import re
from bisect import bisect_right
from collections import Counter
from itertools import pairwise

K = 60
ALPHA = 0.02  # penalty for every example of the same label
BUDGET = 30_000  # characters of examples
ANSWER = 4_000  # tokens of the window that the examples leave for the answer
FRAME = 200  # tokens that a service may add around a prompt
# A small local model reads slowly and is easily led astray. Without these two limits (None), it
# gets as many examples as its window takes, each in full.
FEW = 6  # examples
SHORT = 200  # bytes of an example's question
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""


class Discovered:
    """Shows examples by fused rank and with diverse labels."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.examples = []  # pairs of question and answer
        self.indices = None

    def learn(self, example):
        """Keep the example."""
        self.examples.append([example.question, example.answer])
        self.indices = None

    def predict(self, question):
        """The model's answer after it has read the chosen examples."""
        if self.model.completes:
            return self.completed(question)
        asked = f"{self.task.prompt(question)}\n\n{REPLY}"
        prompt = self.shown(self.chosen(question), self.left(asked, ANSWER)) + asked
        # Some services refuse a prompt that leaves too little room for the longest answer.
        return self.model(prompt, max_tokens=self.left(prompt))

    def completed(self, question):
        """The answer of a model that continues the text of a prompt."""
        asked = f"Question: {shortened(question, 600)}\nAnswer:"
        chosen = self.chosen(question, FEW, SHORT)
        prompt = self.shown(chosen, self.left(asked, 100)) + asked
        if self.task.labels:
            return self.model.choose(prompt, self.task.labels)
        if len({answer for _, answer in self.examples}) < len(self.examples):
            return self.model.choose(prompt, [answer for _, answer in chosen])
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def chosen(self, question, most=None, longest=None):
        """The examples to show, best first, as many as fit the budget."""
        scores = self.fused(question)
        found, labels, size = [], Counter(), 0
        while scores and (most is None or len(found) < most):
            best = max(scores, key=lambda i: scores[i] / (1 + ALPHA * labels[self.label(i)]))
            del scores[best]
            text, label = self.examples[best]
            text = shortened(text, longest) if longest else text
            size += len(block(text, label))
            if size > BUDGET:
                break
            found.append([text, label])
            labels[label] += 1
        return found

    def shown(self, chosen, room):
        """The text of the best examples, as many as have no more tokens than that, best last."""
        blocks = [block(text, label) for text, label in chosen]
        if room is not None:
            counts = range(1, len(blocks) + 1)
            blocks = blocks[: bisect_right(counts, room, key=lambda n: self.tokens(blocks[:n]))]
        return "".join(reversed(blocks))

    def tokens(self, blocks):
        """How many tokens some blocks have."""
        return self.model.count("".join(blocks))

    def left(self, prompt, answer=0):
        """Tokens of the window that a prompt and an answer leave; None without a window."""
        window = self.model.window
        return window and max(1, window - self.model.count(prompt) - answer - FRAME)

    def label(self, position):
        """The answer of an example."""
        return self.examples[position][1]

    def fused(self, question):
        """The score of every example, by reciprocal rank fusion."""
        if self.indices is None:
            questions = [question for question, _ in self.examples]
            self.indices = [Index(questions, pairs_of_words), Index(questions, runs_of_characters)]
        scores = Counter()
        for index in self.indices:
            for rank, position in enumerate(index.ranking(question), start=1):
                scores[position] += 1 / (K + rank)
        return scores

    def state(self):
        """The examples."""
        return self.examples

    def restore(self, state):
        """The examples."""
        self.examples = state


class Index:
    """Texts as TF-IDF vectors of terms."""

    def __init__(self, texts, terms):
        self.terms = terms
        bags = [Counter(terms(text)) for text in texts]
        seen = Counter(term for bag in bags for term in bag)
        self.weights = {term: 1 + math.log(len(bags) / count) for term, count in seen.items()}
        self.vectors = [self.vector(bag) for bag in bags]

    def vector(self, bag):
        """The known terms of a text, by weight, as a vector of length 1."""
        known = {
            term: (1 + math.log(count)) * self.weights[term]
            for term, count in bag.items()
            if term in self.weights
        }
        length = math.hypot(*known.values()) or 1
        return {term: value / length for term, value in known.items()}

    def ranking(self, text):
        """The positions of all texts, the one most like this text first."""
        asked = self.vector(Counter(self.terms(text)))
        alike = [cosine(asked, vector) for vector in self.vectors]
        return sorted(range(len(alike)), key=lambda position: -alike[position])


def cosine(one, other):
    """How alike two vectors of length 1 are."""
    return sum(value * other.get(term, 0) for term, value in one.items())


def block(question, answer):
    """An example in the prompt."""
    return f"Question: {question}\nAnswer: {answer}\n\n"


def pairs_of_words(text):
    """Neighbouring words; a character of a script without spaces counts as a word."""
    words = re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower())
    return [" ".join(pair) for pair in pairwise(words)]


def runs_of_characters(text):
    """Two, three or four characters in a row."""
    text = " ".join(text.lower().split())
    return [text[i : i + n] for n in (2, 3, 4) for i in range(len(text) - n + 1)]


def shortened(text, most):
    """A text in one line; of one with more bytes than that, the beginning and the end."""
    data = " ".join(text.split()).encode()  # bytes tell better than characters what is long
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
