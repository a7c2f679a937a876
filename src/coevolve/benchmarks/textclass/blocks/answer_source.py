"""How a harness gets an answer from the model: source templates, and their choice by recipe.

A `$name` in a template depends on other blocks.
"""

from string import Template

from coevolve.benchmarks.textclass.blocks.harness_source import FORMATS, Part
from coevolve.benchmarks.textclass.blocks.text_recipe import SCORED, TextRecipe

KNOWN = '''
def known(self):
    """The answers to choose from; none where each was the answer of one example only."""
    repeated = len(self.labels) < len(self.examples)
    return self.labels if self.task.labels or repeated else []
'''

CHOICES = '''
def choices(self, question):
    """The answers with the most similar examples."""
    similar = self.similar(question)
    return sorted(self.known(), key=lambda label: -similar[label])[:KEPT]
'''

SIMILAR = '''
def similar(self, question):
    """How similar the three most similar examples of each label are, as a log-ratio."""
    alike = {label: [0.0, 0.0, 0.0] for label in self.labels}
    for (_, label), value in zip(self.examples, self.alike(question), strict=True):
        alike[label].append(value)
    sums = {label: sum(sorted(values)[-3:]) for label, values in alike.items()}
    usual = mean(sums.values()) if any(sums.values()) else 1
    return {label: math.log(value / usual + 0.05) for label, value in sums.items()}
'''

WRITE = '''
def write(self, prompt):
    """What the model writes; a chat model gets its instructions from the task."""
    if not self.model.completes:
        return self.model(prompt)
    return self.model(prompt, max_tokens=60, stop=[STOP]).strip()
'''

SAMPLE = '''
def write(self, prompt, sample):
    """A sample of what the model writes; a chat model gets its instructions from the task."""
    if not self.model.completes:
        return self.model(prompt, temperature=WARMTH, sample=sample)
    options = {"max_tokens": 60, "temperature": WARMTH, "stop": [STOP]}
    return self.model(prompt, sample=sample, **options).strip()
'''

FREE = {
    "once": '''
def predict(self, question):
    """The label that the model's own words mean."""
    $find
    return read(self.write(self.prompt($args)), self.known())
''',
    "orders": '''
def predict(self, question):
    """The label that the model's own words mean most often."""
    $find
    prompts = [self.prompt(question, order) for order in self.orders(examples)]
    return most_common(read(self.write(prompt), self.known()) for prompt in prompts)
''',
    "samples": '''
def predict(self, question):
    """The label that most samples of the model's own words mean."""
    $find
    prompt = self.prompt($args)
    written = [self.write(prompt, sample) for sample in range(SAMPLES)]
    return most_common(read(text, self.known()) for text in written)
''',
}

CHOOSE = {
    "once": '''
def predict(self, question):
    """The label that the model chooses; its own words where none is known."""
    $find
    prompt, labels = self.prompt($args), $labels
    return self.model.choose(prompt, labels) if labels else self.write(prompt)
''',
    "orders": '''
def predict(self, question):
    """The label that the model chooses most often; its own words where none is known."""
    $find
    prompts = [self.prompt(question, order) for order in self.orders(examples)]
    labels = $labels
    if not labels:
        return self.write(prompts[0])
    return most_common(self.model.choose(prompt, labels) for prompt in prompts)
''',
}

SCORE = '''
def predict(self, question):
    """The label with the $highest."""
    $find
    labels = $labels
    if not labels:
        return self.write(self.prompt($args))
    if not self.model.gives_scores:
        return self.model.choose(self.prompt($args), labels)
    $opinion = self.$opinion($args, labels)
    $verdict
'''

ALONE = "return max(labels, key=$opinion.get)"
WEIGHED = """similar = self.similar(question)
    return max(labels, key=lambda label: $opinion[label] + TRUST * similar[label])"""

SCORES = {
    "once": '''
def scores(self, $args, labels):
    """The log-probability of each label after the question."""
    return self.model.scores(self.prompt($args), labels)
''',
    "orders": '''
def scores(self, question, examples, labels):
    """The log-probability of each label, on average over orders of the examples."""
    prompts = [self.prompt(question, order) for order in self.orders(examples)]
    found = [self.model.scores(prompt, labels) for prompt in prompts]
    return {label: mean(scores[label] for scores in found) for label in labels}
''',
}

GAIN = '''
def gain(self, $args, labels):
    """How much higher each label scores than after an empty question."""
    scores = self.scores($args, labels)
    usual = self.scores($empty, labels)
    return {label: scores[label] - usual[label] for label in labels}
'''

STANDING = '''
def standing(self, $args, labels):
    """How far the score of each label is above its usual one, in standard deviations."""
    scores = self.scores($args, labels)
    return {label: self.standard(label, scores[label]) for label in labels}

def standard(self, label, score):
    """A score on the label's own scale; a new label is compared with all the others."""
    usual = [scores[label] for _, scores in self.asked if label in scores]
    if len(usual) < 2:
        usual = [known for _, scores in self.asked for known in scores.values()]
    return (score - mean(usual)) / (pstdev(usual) or 1) if usual else score

def probe(self, question, answer):
    """Record the scores of the labels after one question of each label."""
    labels, seen = self.known()[:WIDEST], [label for label, _ in self.asked]
    wanted = answer not in seen and len(seen) < PROBES
    if labels and wanted and self.model.gives_scores:
        $find
        self.asked.append([answer, self.scores($args, labels)])
'''

READ = {
    "first": '''
def read(text, labels):
    """The label that a text names first; the text itself if it names none."""
    said = text.lower()
    named = [label for label in labels if label.lower() in said]
    return min(named, key=lambda n: (said.index(n.lower()), -len(n)), default=text)
''',
    "closest": '''
def read(text, labels):
    """The label that has most letters in common with a text; the text if there is none."""
    return max(labels, key=lambda label: common(label, text), default=text)


def common(label, text):
    """How much of a label is found in a text, from 0 to 1."""
    matcher = SequenceMatcher(None, label.lower(), text.lower(), autojunk=False)
    sizes = [block.size for block in matcher.get_matching_blocks()]
    return sum(size for size in sizes if size > 1) / len(label)
''',
}

MOST_COMMON = '''
def most_common(answers):
    """The answer given most often, the first of equals."""
    return Counter(answers).most_common(1)[0][0]
'''

_MEAN = "from statistics import mean"
_HIGHEST = {
    "scores": ("scores", "highest score"),
    "calibrated": ("gain", "largest gain over an empty question"),
    "standardised": ("standing", "score that stands out most"),
}


def answering(recipe: TextRecipe) -> Part:
    """How a recipe gets an answer."""
    part = _scored(recipe) if recipe.ask in SCORED else _said(recipe)
    imports, constants, methods = list(part.imports), list(part.constants), list(part.methods)
    if recipe.shortlist != "all":
        constants.append(f"KEPT = {recipe.shortlist}  # labels that the model chooses from")
        methods.append(CHOICES)
    if recipe.shortlist != "all" or recipe.trust != "none":
        imports += ["import math", _MEAN]
        methods.append(SIMILAR)
    return Part(
        imports=tuple(imports),
        constants=(f'STOP = "{FORMATS[recipe.format][1]}"', *constants),
        fields=part.fields,
        before=part.before,
        methods=tuple(_filled(method, recipe) for method in (*methods, KNOWN)),
        below=part.below,
    )


def _said(recipe: TextRecipe) -> Part:
    """Answers that the model writes or chooses."""
    free, repeat = recipe.ask == "free", recipe.repeat
    predict = (FREE if free else CHOOSE)[repeat]
    below = [READ[recipe.parse]] if free else []
    imports = ["from difflib import SequenceMatcher"] if free and recipe.parse == "closest" else []
    constants = []
    if repeat != "once":
        below.append(MOST_COMMON)
        imports.append("from collections import Counter")
    if repeat == "samples":
        constants += ["SAMPLES = 3  # answers to each question", "WARMTH = 0.7"]
    return Part(
        imports=tuple(imports),
        constants=tuple(constants),
        methods=(predict, SAMPLE if repeat == "samples" else WRITE),
        below=tuple(below),
    )


def _scored(recipe: TextRecipe) -> Part:
    """Answers by the log-probabilities of labels."""
    methods = [SCORE, SCORES[recipe.repeat], WRITE]
    imports = [_MEAN] if recipe.repeat == "orders" else []
    constants: list[str] = []
    if recipe.trust != "none":
        constants.append(f"TRUST = {recipe.trust}  # weight of similar examples")
    if recipe.ask == "calibrated":
        constants.append('EMPTY = "Hello, can someone please help me with this?"')
        methods.insert(1, GAIN)
    if recipe.ask != "standardised":
        return Part(imports=tuple(imports), constants=tuple(constants), methods=tuple(methods))
    methods.insert(1, STANDING)
    return Part(
        imports=("from statistics import mean, pstdev",),
        constants=(
            *constants,
            "PROBES = 24  # examples whose questions tell the usual scores of labels",
            "WIDEST = 30  # labels that are scored for them",
        ),
        fields=(("asked", "[]", "a label, and the scores of all labels after a question of it"),),
        before=("self.probe(example.question, example.answer)",),
        methods=tuple(methods),
    )


def _filled(method: str, recipe: TextRecipe) -> str:
    """A method with the names filled in that depend on other blocks."""
    shown = "self.shown(question)" if recipe.searches else "self.shown()"
    find = f"examples = {shown}"
    lines = method.split("\n")
    if not recipe.shows:
        lines = [line for line in lines if line.strip() != "$find"]
    opinion, highest = _HIGHEST.get(recipe.ask, ("", ""))
    verdict = ALONE
    if recipe.trust != "none":
        verdict, highest = WEIGHED, f"{highest}, similar examples considered"
    given = {
        "find": find,
        "args": "question, examples" if recipe.shows else "question",
        "empty": "EMPTY, examples" if recipe.shows else "EMPTY",
        "labels": "self.known()" if recipe.shortlist == "all" else "self.choices(question)",
        "opinion": opinion,
        "highest": highest,
        "verdict": Template(verdict).substitute(opinion=opinion),
    }
    return Template("\n".join(lines)).substitute(given)
