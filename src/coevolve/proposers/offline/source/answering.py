"""How an answer is had from the model."""

from string import Template

from coevolve.proposers.offline.recipe import SCORED, Recipe
from coevolve.proposers.offline.source import answers
from coevolve.proposers.offline.source.asking import FORMATS
from coevolve.proposers.offline.source.parts import Part

_MEAN = "from statistics import mean"
_HIGHEST = {
    "scores": ("scores", "highest score"),
    "calibrated": ("gain", "largest gain over an empty question"),
    "standardised": ("standing", "score that stands out the most"),
}


def answering(recipe: Recipe) -> Part:
    """How a recipe comes to an answer."""
    part = _scored(recipe) if recipe.ask in SCORED else _said(recipe)
    imports, constants, methods = list(part.imports), list(part.constants), list(part.methods)
    if recipe.shortlist != "all":
        constants.append(f"KEPT = {recipe.shortlist}  # labels that the model chooses from")
        methods.append(answers.CHOICES)
    if recipe.shortlist != "all" or recipe.trust != "none":
        imports += ["import math", _MEAN]
        methods.append(answers.SIMILAR)
    return Part(
        imports=tuple(imports),
        constants=(f'STOP = "{FORMATS[recipe.format][1]}"', *constants),
        fields=part.fields,
        before=part.before,
        methods=tuple(_filled(method, recipe) for method in (*methods, answers.KNOWN)),
        below=part.below,
    )


def _said(recipe: Recipe) -> Part:
    """Answers that the model writes or chooses."""
    free, repeat = recipe.ask == "free", recipe.repeat
    predict = (answers.FREE if free else answers.CHOOSE)[repeat]
    below = [answers.READ[recipe.parse]] if free else []
    imports = ["from difflib import SequenceMatcher"] if free and recipe.parse == "closest" else []
    constants = []
    if repeat != "once":
        below.append(answers.MOST_COMMON)
        imports.append("from collections import Counter")
    if repeat == "samples":
        constants += ["SAMPLES = 3  # answers to each question", "WARMTH = 0.7"]
    return Part(
        imports=tuple(imports),
        constants=tuple(constants),
        methods=(predict, answers.SAMPLE if repeat == "samples" else answers.WRITE),
        below=tuple(below),
    )


def _scored(recipe: Recipe) -> Part:
    """Answers by the log-probabilities of labels."""
    methods = [answers.SCORE, answers.SCORES[recipe.repeat], answers.WRITE]
    imports = [_MEAN] if recipe.repeat == "orders" else []
    constants: list[str] = []
    if recipe.trust != "none":
        constants.append(f"TRUST = {recipe.trust}  # weight of similar examples")
    if recipe.ask == "calibrated":
        constants.append('EMPTY = "Hello, can someone please help me with this?"')
        methods.insert(1, answers.GAIN)
    if recipe.ask != "standardised":
        return Part(imports=tuple(imports), constants=tuple(constants), methods=tuple(methods))
    methods.insert(1, answers.STANDING)
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


def _filled(method: str, recipe: Recipe) -> str:
    """A method with what depends on the other blocks."""
    shown = "self.shown(question)" if recipe.searches else "self.shown()"
    find = f"examples = {shown}"
    lines = method.split("\n")
    if not recipe.shows:
        lines = [line for line in lines if line.strip() != "$find"]
    opinion, highest = _HIGHEST.get(recipe.ask, ("", ""))
    verdict = answers.ALONE
    if recipe.trust != "none":
        verdict, highest = answers.WEIGHED, f"{highest}, similar examples considered"
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
