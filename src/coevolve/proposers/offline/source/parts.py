"""Parts of a source file, and how they become one."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 88
"""Columns of the files that are written: what formatters take for granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one block adds to a file.

    Args:
        imports: Lines that import what it uses.
        constants: Lines at the top of the file.
        fields: What the harness remembers: the name, how it begins, and a comment.
        forgets: Fields that are worked out anew once something was learned.
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
    """Imports in their order, those from the same module in one line."""
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
    """The methods that make a harness and have it learn."""
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
    """The methods that write down what is known and take it up."""
    names = ["labels", "examples"]
    names += [field[0] for part in parts for field in part.fields]
    known = ", ".join(f"self.{name}" for name in names)
    return f'''\
def state(self):
    """All that was learned."""
    return [{known}]

def restore(self, state):
    """All that was learned."""
    {known} = state'''
