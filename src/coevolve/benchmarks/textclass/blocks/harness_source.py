"""The source file of a harness: its parts, its prompt, and how they become one file."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from coevolve.benchmarks.textclass.blocks.text_recipe import TextRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a block adds to a file.

    Args:
        imports: Lines that import what it uses.
        constants: Lines at the top of the file.
        fields: What the harness remembers: the name, how it begins, and a comment.
        forgets: Fields that are computed again after an example was learned.
        before: Lines of `learn`, before the example is kept.
        methods: Methods of the harness.
        below: Classes and functions of the file.
    """

    imports: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    fields: tuple[tuple[str, str, str], ...] = ()
    forgets: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def joined(parts: Iterable[Part], *, docstring: str, name: str, summary: str) -> str:
    """The file that the parts make up, the first ones on top."""
    parts = list(parts)
    imports = _imports({line for part in parts for line in part.imports})
    constants = [line for part in parts for line in part.constants]
    methods = [_first(parts), *(method for part in parts for method in part.methods)]
    methods.append(_state(parts))
    body = "\n\n".join(textwrap.indent(method.strip("\n"), "    ") for method in methods)
    blocks = [f'"""{docstring}\n"""' if "\n" in docstring else f'"""{docstring}"""']
    blocks += ["\n".join(imports)] if imports else []
    blocks += ["\n".join(constants)]
    head = "\n\n".join(blocks)
    below = [text.strip("\n") for text in dict.fromkeys(t for p in parts for t in p.below)]
    kind = f'class {name}:\n    """{summary}"""\n\n{body}'
    return "\n\n\n".join([head, kind, *below]) + "\n"


def _imports(lines: set[str]) -> list[str]:
    """Sorted imports; names from the same module share a line."""
    whole = sorted(line for line in lines if line.startswith("import"))
    taken: dict[str, set[str]] = {}
    for line in lines - set(whole):
        module, _, names = line.removeprefix("from ").partition(" import ")
        taken.setdefault(module, set()).update(names.split(", "))
    named = [
        f"from {module} import {', '.join(sorted(taken[module]))}" for module in sorted(taken)
    ]
    return whole + named


def _first(parts: list[Part]) -> str:
    """The methods `__init__` and `learn`."""
    made = ["self.model, self.task = model, task"]
    made += ["self.labels = list(task.labels or [])"]
    made += ["self.examples = []  # pairs of question and answer"]
    for name, value, why in (field for part in parts for field in part.fields):
        made.append(f"self.{name} = {value}  # {why}")
    forgets = [name for part in parts for name in part.forgets]
    made += [f"self.{name} = None" for name in forgets]
    learned = [line for part in parts for line in part.before]
    learned += ["self.examples.append([example.question, example.answer])"]
    learned += ["if example.answer not in self.labels:"]
    learned += ["    self.labels.append(example.answer)"]
    learned += [f"self.{name} = None" for name in forgets]
    return "\n".join(
        [
            "def __init__(self, model, task):",
            *(f"    {line}" for line in made),
            "",
            "def learn(self, example):",
            '    """Keep the example."""',
            *(f"    {line}" for line in learned),
        ]
    )


def _state(parts: list[Part]) -> str:
    """The methods `state` and `restore`."""
    names = ["labels", "examples"]
    names += [field[0] for part in parts for field in part.fields]
    known = ", ".join(f"self.{name}" for name in names)
    return f'''\
def state(self):
    """Everything that was learned."""
    return [{known}]

def restore(self, state):
    """Take over everything that was learned."""
    {known} = state'''


FORMATS = {
    "question": (r"Question: {question}\nAnswer: {answer}\n\n", r"\n"),
    "keywords": (r"{question} (keywords: {answer})\n", r"\n"),
    "arrow": (r"{question} -> {answer}\n", r"\n"),
    "topic": (r"Message: {question}\nTopic: {answer}\n\n", r"\n"),
    "tags": (r"<text> {question} </text>\n<label> {answer} </label>\n\n", r"</label>"),
    "sections": (r"### Text\n{question}\n### Label\n{answer}\n\n", r"\n"),
}
"""How an example is written, and what ends an answer."""

SHORTENED = '''
def shortened(text, most):
    """A text in one line; the beginning and the end of a longer one."""
    data = " ".join(text.split()).encode()
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
'''

PROMPT = '''
def prompt(self, question, examples):
    """What the model reads: the examples, then the question."""
    shown = "".join(
        EXAMPLE.format(question=shortened(text, LONGEST), answer=answer)
        for text, answer in examples
    )
    if not self.model.completes:
        return {told}
    asked = ASKED.format(question=shortened(question, QUESTION))
    return {text}
'''

BARE = '''
def prompt(self, question):
    """What the model reads: the question alone."""
    if not self.model.completes:
        return {told}
    asked = ASKED.format(question=shortened(question, QUESTION))
    return {text}
'''

OPENING = '''
def opening(self):
    """The instructions, and the possible answers."""
    listed = ", ".join(self.known())[:CHARACTERS]
    return f"{self.task.instructions}\\nPossible answers: {listed}\\n\\n"
'''


def asking(recipe: TextRecipe, characters: int) -> Part:
    """How a recipe writes its prompts."""
    example, _ = FORMATS[recipe.format]
    asked = example.partition("{answer}")[0]
    asked = asked if asked.endswith(r"\n") else asked.rstrip()
    constants = [f'ASKED = "{asked}"']
    if recipe.shows:
        constants.insert(0, f'EXAMPLE = "{example}"')
        constants.append(f"LONGEST = {longest(recipe, characters):_}  # bytes of an example")
    if recipe.select == "all" or recipe.lead == "labels":
        what = "of all the examples" if recipe.select == "all" else "of the list of answers"
        constants.append(f"CHARACTERS = {characters:_}  # {what}, at most")
    constants.append(f"QUESTION = {characters // 6:_}  # bytes of the question, at most")
    return Part(
        constants=tuple(constants),
        methods=(_prompt(recipe), *((OPENING,) if recipe.lead == "labels" else ())),
        below=(SHORTENED,),
    )


def longest(recipe: TextRecipe, characters: int) -> int:
    """Bytes of one example; all of them together stay within the limit."""
    most = characters // 10
    return min(most, characters // int(recipe.count)) if recipe.searches else most


def _prompt(recipe: TextRecipe) -> str:
    """The method that writes the prompt."""
    above = {
        "bare": "",
        "instructions": r"{self.task.instructions}\n\n",
        "labels": "{self.opening()}",
    }
    notes = "{self.notes(question)}" if recipe.notes != "none" else ""
    shown = "{shown}" if recipe.shows else ""
    told = f"{notes}{shown}{{self.task.prompt(question)}}"
    text = f"{above[recipe.lead]}{notes}{shown}{{asked}}"
    lone = {"{asked}": "asked", "{self.task.prompt(question)}": "self.task.prompt(question)"}
    template = PROMPT if recipe.shows else BARE
    return template.format(
        told=lone.get(told, f'f"{told}"'),
        text=lone.get(text, f'f"{text}"'),
    )
