"""Which examples are shown, and in which order."""

from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.source.parts import Part

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


def examples(recipe: Recipe) -> Part:
    """How a recipe finds the examples that it shows, if any."""
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
