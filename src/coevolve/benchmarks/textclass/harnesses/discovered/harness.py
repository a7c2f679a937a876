"""The harness that Task-CoEvolve found in the paper: two rankings of the examples, fused.

One index knows pairs of words, the other runs of characters. An example's score is the sum of
1 / (60 + rank) over both rankings (reciprocal rank fusion). The prompt is filled greedily; the
score of an example is divided by a factor that grows with the examples of its label that are
there already, so that no label takes all the room. The best example stands last.
"""

import math
import re
from collections import Counter
from itertools import pairwise

K = 60
PENALTY = 0.02  # for every example of the same label
CAP = 30_000  # characters of examples
FEW = 6  # examples for a small model, which is easily led astray
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
        small = self.model.completes
        most, longest = (FEW, 200) if small else (len(self.examples), 6_000)
        chosen = self.chosen(question, most, longest)
        shown = "".join(f"Question: {q}\nAnswer: {a}\n\n" for q, a in reversed(chosen))
        if not small:
            return self.model(f"{shown}{self.task.prompt(question)}\n\n{REPLY}")
        prompt = f"{shown}Question: {shortened(question, 600)}\nAnswer:"
        if self.task.labels:
            return self.model.choose(prompt, self.task.labels)
        if len({answer for _, answer in self.examples}) < len(self.examples):
            return self.model.choose(prompt, [answer for _, answer in chosen])
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def chosen(self, question, most, longest):
        """The examples to show, best first, as many as fit."""
        scores = self.fused(question)
        found, labels, size = [], Counter(), 0
        while scores and len(found) < most:
            best = max(scores, key=lambda i: scores[i] / (1 + PENALTY * labels[self.label(i)]))
            del scores[best]
            text, label = shortened(self.examples[best][0], longest), self.label(best)
            size += len(text) + len(label)
            if size > CAP:
                break
            found.append([text, label])
            labels[label] += 1
        return found

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
