"""What the model reads."""

from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.source.parts import Part

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
    """A text in one line; of one with more bytes, the beginning and the end."""
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
    """What is asked for, and the answers there are."""
    listed = ", ".join(self.known())[:CHARACTERS]
    return f"{self.task.instructions}\\nPossible answers: {listed}\\n\\n"
'''


def asking(recipe: Recipe, characters: int) -> Part:
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


def longest(recipe: Recipe, characters: int) -> int:
    """Bytes of one example, so that all of them together stay within the characters."""
    most = characters // 10
    return min(most, characters // int(recipe.count)) if recipe.searches else most


def _prompt(recipe: Recipe) -> str:
    """The method that writes the prompt, with what stands above the examples."""
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
