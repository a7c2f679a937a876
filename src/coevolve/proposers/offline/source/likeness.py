"""How alike texts are: the index over the examples."""

from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.source.parts import Part

ALIKE = '''
def alike(self, question):
    """How alike the question is to each example, from 0 to 1."""
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


def likeness(recipe: Recipe) -> Part:
    """The likeness of a recipe; nothing where it compares no texts."""
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
