"""Models without weights: they answer with the label whose examples share most words.

They read the examples and labels in a prompt, as a language model would, and overlook some of the
examples. So harnesses that show better examples score higher. The same prompt always gets the same
answer. Three models of different strength stand for those of Terminal-Bench.
"""

import json
import re
from zlib import crc32

from coevolve.models.provider import ModelReply

EXAMPLE = re.compile(r"(?:Question|Text|Q): (.*)\n(?:Answer|Label|A): *(\S.*)")
ASKED = re.compile(r"(?:Question|Text): (.*)")
LABELS = re.compile(r"The label is one of these: (.*)\.")
KNOWN = {
    "brakes": "pads lever cable squeals slow stopping caliper disc",
    "wheels": "spoke tube rim rubber hub wobbles pumping",
    "lights": "bulb dark shines dynamo flickers battery wire",
}


class WordModel:
    """Counts the words that a question shares with examples and labels."""

    window = 16384
    gives_scores = False
    reads = 67  # percent of the examples in a prompt
    known = None  # words that it associates with labels, without an example

    @property
    def identity(self):
        """All that its answers depend on."""
        return {"name": type(self).__name__, "version": 2}

    async def complete(self, request):
        """The label with most shared words; as JSON unless there are choices."""
        prompt = request.conversation()[-1].content
        examples = EXAMPLE.findall(prompt)
        asked = (ASKED.findall(prompt) or [prompt])[-1]
        labels = list(request.choices) or self.labels(prompt, examples)
        votes = {
            label: 2 * len(words(asked) & words(f"{label} {(self.known or {}).get(label, '')}"))
            for label in labels
        }
        for text, label in examples:
            if label in votes and crc32(f"{asked}{text}".encode()) % 100 < self.reads:
                votes[label] += len(words(asked) & words(text)) ** 2
        best = max(labels, key=lambda label: (votes[label], crc32(f"{asked}{label}".encode())))
        text = best if request.choices else json.dumps({"final_answer": best})
        size, written = await self.count([prompt, text])
        return ModelReply(text=text, finish="stop", tokens_in=size, tokens_out=written)

    def labels(self, prompt, examples):
        """The labels that the prompt lists, or those of its examples."""
        listed = LABELS.findall(prompt)
        found = listed[-1].split(", ") if listed else [label for _, label in examples]
        return found or ["unknown"]

    async def count(self, texts):
        """A token for each word or sign."""
        return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]

    async def close(self):
        """Nothing is open."""


class WeakModel(WordModel):
    """Reads a third of the examples."""

    reads = 33


class MiddleModel(WordModel):
    """Reads two thirds of the examples."""


class StrongModel(WordModel):
    """Reads all examples and knows words of bicycles, so a harness has little to add."""

    reads = 100
    known = KNOWN


def words(text):
    """The words of a text that have more than three letters."""
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}
