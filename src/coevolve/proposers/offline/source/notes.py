"""Notes that were learned of the labels, for the prompt."""

from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.source.parts import Part

KEYWORDS = '''
def notes(self, question):
    """The key words of the labels that have most of them in common with the question."""
    if self.keys is None:
        self.keys = key_words(self.examples)
    asked = set(long_words(question))
    shared = {label: len(asked.intersection(keys)) for label, keys in self.keys.items()}
    best = sorted((label for label in shared if shared[label]), key=lambda n: -shared[n])
    return "".join(f"{label}: {', '.join(self.keys[label])}\\n" for label in best[:NOTES])
'''

KEY_WORDS = '''
def key_words(examples):
    """The words that set each label apart from the others, the most telling first."""
    bags = {}
    for question, answer in examples:
        bags.setdefault(answer, Counter()).update(long_words(question))
    seen = Counter()
    for bag in bags.values():
        seen.update(bag)
    return {
        label: sorted(bag, key=lambda word: (-bag[word] * bag[word] / seen[word], word))[:KEYS]
        for label, bag in bags.items()
    }


def long_words(text):
    """Words of four letters and more; pairs of Chinese characters."""
    return re.findall(r"[^\\W\\d_\\u4e00-\\u9fff]{4,}|[\\u4e00-\\u9fff]{2}", text.lower())
'''

MISTAKES = '''
def notes(self, question):
    """The labels that were mistaken for each other most often."""
    pairs = Counter(tuple(sorted(pair)) for pair in self.mistakes)
    worst = [pair for pair, _ in pairs.most_common(NOTES)]
    return "".join(f"Not to be confused: {one} and {other}.\\n" for one, other in worst)

def rehearse(self, question, answer):
    """Answer some of the examples before they are known, and note the mistakes."""
    if len(self.examples) % EVERY == 0 and len(self.examples) < EVERY * REHEARSALS:
        said = self.predict(question)
        if said != answer and said in self.labels:
            self.mistakes.append([said, answer])
'''


def notes(recipe: Recipe) -> Part:
    """The notes of a recipe, if any."""
    count = "from collections import Counter"
    if recipe.notes == "keywords":
        return Part(
            imports=("import re", count),
            constants=(
                "NOTES = 3  # labels whose key words are shown",
                "KEYS = 6  # key words of each",
            ),
            forgets=("keys",),
            methods=(KEYWORDS,),
            below=(KEY_WORDS,),
        )
    if recipe.notes == "mistakes":
        return Part(
            imports=(count,),
            constants=(
                "NOTES = 3  # pairs of labels that are shown",
                "REHEARSALS = 30  # examples that are answered to find them",
                "EVERY = 6  # examples, one of which is answered",
            ),
            fields=(("mistakes", "[]", "what was said, and what was right"),),
            before=("self.rehearse(example.question, example.answer)",),
            methods=(MISTAKES,),
        )
    return Part()
