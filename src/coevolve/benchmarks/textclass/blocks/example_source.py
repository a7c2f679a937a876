"""The examples of a harness: how texts are compared, which are shown, and notes on labels."""

from coevolve.benchmarks.textclass.blocks.harness_source import Part
from coevolve.benchmarks.textclass.blocks.text_recipe import TextRecipe

ALL = '''
def shown(self):
    """The first examples, as many as fit."""
    fitting, room = [], CHARACTERS
    for question, answer in self.examples:
        room -= len(EXAMPLE) + min(len(question), LONGEST) + len(answer)
        if room < 0:
            break
        fitting.append([question, answer])
    return fitting
'''

NEAREST = '''
def nearest(self, question):
    """The examples most like the question, the nearest first."""
    alike = self.alike(question)
    ranked = sorted(range(len(alike)), key=lambda i: -alike[i])
    return [self.examples[i] for i in ranked[:COUNT]]
'''

QUOTA = '''
def nearest(self, question):
    """The examples most like the question, one of each label, the nearest first."""
    alike = self.alike(question)
    chosen = {}
    for i in sorted(range(len(alike)), key=lambda i: -alike[i]):
        chosen.setdefault(self.examples[i][1], self.examples[i])
    return list(chosen.values())[:COUNT]
'''

DIVERSE = '''
def nearest(self, question):
    """Examples like the question and unlike each other, the best first."""
    alike, chosen = self.alike(question), []
    doubled = [0.0] * len(alike)  # how alike each is to one that is chosen already
    left = list(range(len(alike)))
    while left and len(chosen) < COUNT:
        best = max(left, key=lambda i: alike[i] - VARIETY * doubled[i])
        left.remove(best)
        chosen.append(self.examples[best])
        again = self.alike(self.examples[best][0])
        doubled = [max(pair) for pair in zip(doubled, again, strict=True)]
    return chosen
'''

SHOWN = {
    "nearest-last": '''
def shown(self, question):
    """The examples for a question, the nearest last."""
    return self.nearest(question)[::-1]
''',
    "shuffled": '''
def shown(self, question):
    """The examples for a question, shuffled."""
    examples = self.nearest(question)
    return random.Random(question).sample(examples, len(examples))
''',
    "grouped": '''
def shown(self, question):
    """The examples for a question by label, the nearest and its label last."""
    examples = self.nearest(question)
    labels = [label for _, label in examples]
    grouped = sorted(examples, key=lambda example: labels.index(example[1]))
    return grouped[::-1]
''',
}

ORDERS = '''
def orders(self, examples):
    """The examples in several orders, their own first."""
    others = range(1, TIMES)
    return [examples] + [random.Random(i).sample(examples, len(examples)) for i in others]
'''

_SELECTIONS = {"nearest": NEAREST, "quota": QUOTA, "diverse": DIVERSE}


def examples(recipe: TextRecipe) -> Part:
    """How a recipe finds the examples that it shows; empty where it shows none."""
    if not recipe.shows:
        return Part()
    if recipe.select == "all":
        return Part(methods=(ALL,))
    constants = [f"COUNT = {recipe.count}  # examples that are shown"]
    if recipe.select == "diverse":
        constants.append("VARIETY = 0.5  # how much an example loses by being like another")
    methods = [_SELECTIONS[recipe.select]]
    if recipe.count == "1" or recipe.order == "nearest-first":
        methods = [methods[0].replace("def nearest", "def shown")]
    else:
        methods = [SHOWN[recipe.order], *methods]
    chance = recipe.order == "shuffled"
    if recipe.repeat == "orders":
        chance = True
        constants.append("TIMES = 3  # orders of the examples that are tried")
        methods.append(ORDERS)
    return Part(
        imports=("import random",) if chance else (),
        constants=tuple(constants),
        methods=tuple(methods),
    )


ALIKE = '''
def alike(self, question):
    """How similar the question is to each example, from 0 to 1."""
    if self.index is None:
        self.index = {index}
    return self.index.alike(question)
'''

FUSED = '''
def alike(self, question):
    """How high each example ranks by words and by pieces of words, as one number."""
    if self.indices is None:
        texts = [text for text, _ in self.examples]
        self.indices = [Index(texts, words), Index(texts, pieces)]
    fused = [0.0] * len(self.examples)
    for index in self.indices:
        values = index.alike(question)
        ranked = sorted(range(len(values)), key=lambda i: -values[i])
        for rank, position in enumerate(ranked):
            fused[position] += 1 / (FLATNESS + rank)
    return fused
'''

TFIDF = '''
class Index:
    """Texts as TF-IDF vectors of their terms."""

    def __init__(self, texts, terms):
        self.terms = terms
        bags = [Counter(terms(text)) for text in texts]
        seen = Counter(term for bag in bags for term in bag)
        self.rarity = {t: 1 + math.log(len(bags) / n) for t, n in seen.items()}
        self.vectors = [self.vector(bag) for bag in bags]

    def vector(self, bag):
        """The known terms of a text, by weight, as a vector of length 1."""
        known = {
            term: (1 + math.log(count)) * self.rarity[term]
            for term, count in bag.items()
            if term in self.rarity
        }
        length = math.hypot(*known.values()) or 1
        return {term: value / length for term, value in known.items()}

    def alike(self, text):
        """The cosine between a text and each of the texts."""
        asked = self.vector(Counter(self.terms(text)))
        return [
            sum(value * vector.get(term, 0) for term, value in asked.items())
            for vector in self.vectors
        ]
'''

BM25 = '''
class Index:
    """Texts ranked by BM25: rare words count more, long texts less."""

    def __init__(self, texts):
        self.bags = [Counter(words(text)) for text in texts]
        seen = Counter(word for bag in self.bags for word in bag)
        count = len(self.bags)
        self.rarity = {w: math.log(1 + (count - n + 0.5) / (n + 0.5)) for w, n in seen.items()}
        self.usual = sum(bag.total() for bag in self.bags) / (count or 1) or 1

    def alike(self, text):
        """The score of each text, as a share of the highest."""
        asked = [word for word in set(words(text)) if word in self.rarity]
        scores = [sum(self.weight(word, bag) for word in sorted(asked)) for bag in self.bags]
        highest = max(scores, default=0) or 1
        return [score / highest for score in scores]

    def weight(self, word, bag):
        """What a word adds to the score of a text."""
        long = 1.5 * (0.25 + 0.75 * bag.total() / self.usual)
        return self.rarity[word] * bag[word] * 2.5 / (bag[word] + long)
'''

WORDS = '''
def words(text):
    """Words, or single characters of other scripts, and pairs of neighbours."""
    single = re.findall(r"[a-z0-9]+|[^\\sa-z0-9]", text.lower())
    return single + [" ".join(pair) for pair in pairwise(single)]
'''

PIECES = '''
def pieces(text):
    """Three to five characters in a row, within words and their edges."""
    for word in re.findall(r"\\w+", text.lower()):
        edged = f" {word} "
        for size in (3, 4, 5):
            for start in range(max(1, len(edged) - size + 1)):
                yield edged[start : start + size]
'''

CHARACTERS = '''
def characters(text):
    """Two to four characters in a row, across words."""
    text = " ".join(text.lower().split())
    return [text[i : i + n] for n in (2, 3, 4) for i in range(len(text) - n + 1)]
'''

_COUNTS = "from collections import Counter"
_TERMS = {
    "words": (WORDS, ("import re", "from itertools import pairwise")),
    "pieces": (PIECES, ("import re",)),
    "characters": (CHARACTERS, ()),
}


def likeness(recipe: TextRecipe) -> Part:
    """How a recipe compares texts; empty where it does not."""
    if not recipe.compares:
        return Part()
    imports = ("import math", _COUNTS)
    if recipe.like == "fused":
        return Part(
            imports=(*imports, "import re", "from itertools import pairwise"),
            constants=("FLATNESS = 10  # the larger, the less do the first ranks stand out",),
            forgets=("indices",),
            methods=(FUSED,),
            below=(TFIDF, WORDS, PIECES),
        )
    if recipe.like == "bm25":
        text, further = _TERMS["words"]
        index, below = "Index([text for text, _ in self.examples])", (BM25, text)
    else:
        text, further = _TERMS[recipe.like]
        index = f"Index([text for text, _ in self.examples], {recipe.like})"
        below = (TFIDF, text)
    return Part(
        imports=(*imports, *further),
        forgets=("index",),
        methods=(ALIKE.format(index=index),),
        below=below,
    )


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
    """Answer some examples before learning them, and record the mistakes."""
    if len(self.examples) % EVERY == 0 and len(self.examples) < EVERY * REHEARSALS:
        said = self.predict(question)
        if said != answer and said in self.labels:
            self.mistakes.append([said, answer])
'''


def notes(recipe: TextRecipe) -> Part:
    """The notes of a recipe; empty where it has none."""
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
