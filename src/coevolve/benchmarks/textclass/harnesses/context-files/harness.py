"""Files of context that an agent keeps, and a skill that guides it (after MCE, Ye et al. 2026).

The model answers every example of a batch with the files as they are. Then, on two levels:

- A base agent, played by the same model, sees which answers were wrong, and improves the files
  turn by turn with operations: read, write, edit, delete. A skill tells it how to go about it.
- A meta agent rewrites the skill before each batch but the first, in view of the earlier skills
  and of how many answers were right with the files that each of them led to.

Questions are answered with all the files at hand. MCE also lets the agent write code that selects
the context of a question, and chooses the best files on a validation set; this harness does not.
"""

import json
import re

BATCH = 25  # examples
FIRST = 5  # a batch also ends after as many examples, so that small sets are learned too
TURNS = 6  # of the base agent in a batch; 1 for a small model, which cannot do this anyway
FILES = 12
BUDGET = 20_000  # characters of all files; no more than half as many as the window has tokens
FRAME = 200  # tokens that a service may add around a prompt
SKILL = """Find out what the wrong answers have in common. Write down what would have helped:
what each label means, how similar labels differ, rules, and a few telling examples. Keep each
subject in a file of its own. Correct and shorten what is there before you add to it."""
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "final_answer": "the answer alone"}"""
BASE = """You keep files of context for a model. Its task: {instructions}
It reads all the files before every answer. Improve them.

How to go about it:
{skill}

Files, {size} of {budget} characters:
{files}

Answers with these files, {right} of {count} right:
{answers}

Results of your last operations:
{results}

This is turn {turn} of {turns}. Operations:
{{"op": "read", "file": "name.md"}}
{{"op": "write", "file": "name.md", "text": "the whole new text"}}
{{"op": "edit", "file": "name.md", "old": "text in the file", "new": "text in its place"}}
{{"op": "delete", "file": "name.md"}}
Answer with one JSON object and nothing else: {{"operations": [...], "done": true or false}}"""
META = """An agent keeps files of context for a model. The model's task: {instructions}
A skill tells the agent how to improve the files from wrong answers. Skills so far, with the share
of answers that were right afterwards:

{history}

Write a better skill: combine what worked, and leave out what did not.
Answer with one JSON object and nothing else: {{"skill": "the new skill"}}"""


class ContextFiles:
    """Keeps files, not examples."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.files = {}  # texts by name
        self.skills = [{"skill": SKILL, "share": None}]  # with the share of right answers
        self.batch = []  # answers since the last batch
        self.seen = 0  # examples
        self.labels = []  # the answers seen, each once

    def learn(self, example):
        """Answer the example; at the end of a batch, improve skill and files."""
        online = example.prediction is not None
        given = example.prediction if online else self.predict(example.question)
        right = example.correct if online else same(given, example.answer)
        self.batch.append([example.question, given, example.answer, right])
        self.seen += 1
        if example.answer not in self.labels:
            self.labels.append(example.answer)
        if self.seen == FIRST or self.seen % BATCH == 0:
            if self.files:
                self.evolve()
            self.improve()
            self.batch = []

    def predict(self, question):
        """The model's answer with the files at hand."""
        texts = "".join(f"## {name}\n{text}\n\n" for name, text in self.files.items())
        if not self.model.completes:
            context = f"Context:\n{texts}" if texts else ""
            return answer(self.ask(f"{context}{self.task.prompt(question)}\n\n{REPLY}"))
        context = f"{self.task.instructions}\n\n{texts[:2_000]}"
        prompt = f"{context}Question: {shortened(question, 600)}\nAnswer:"
        repeated = len(self.labels) < self.seen
        if labels := self.task.labels or (self.labels if repeated else []):
            return self.model.choose(prompt, labels)
        return self.model(prompt, max_tokens=100, stop=["\n"])

    def evolve(self):
        """The meta agent: note how the last skill did, and write the next one."""
        self.skills[-1]["share"] = sum(row[3] for row in self.batch) / len(self.batch)
        told = [f"{its['share']:.0%} right with:\n{its['skill']}" for its in self.skills[-6:]]
        prompt = META.format(instructions=self.task.instructions, history="\n\n".join(told))
        skill = found(self.ask(prompt)).get("skill")
        if not isinstance(skill, str) or not skill.strip():
            skill = max(self.skills, key=lambda its: its["share"])["skill"]
        self.skills.append({"skill": skill.strip()[:2_000], "share": None})

    def improve(self):
        """The base agent: change the files, turn by turn."""
        opened, results = set(), ["none yet"]
        turns = 1 if self.model.completes else TURNS
        for turn in range(1, turns + 1):
            prompt = BASE.format(
                instructions=self.task.instructions,
                skill=self.skills[-1]["skill"],
                size=self.size(),
                budget=self.budget(),
                files="\n".join(self.listed(name, opened) for name in self.files) or "none",
                right=sum(row[3] for row in self.batch),
                count=len(self.batch),
                answers=self.answers(),
                results="\n".join(results),
                turn=turn,
                turns=turns,
            )
            said = found(self.ask(prompt))
            operations = said.get("operations")
            if not isinstance(operations, list) or not operations:
                return
            results = [self.done(operation, opened) for operation in operations]
            if said.get("done") is True:
                return

    def done(self, operation, opened):
        """Carry out an operation; what came of it."""
        its = operation if isinstance(operation, dict) else {}
        op, name = its.get("op"), its.get("file")
        if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,40}", name):
            return f"refused: a file needs a name such as rules.md, not {name!r:.60}"
        if op == "write":
            return self.put(name, its.get("text"), opened)
        if name not in self.files:
            return f"refused: there is no file {name}"
        if op == "read":
            opened.add(name)
            return f"read {name}"
        if op == "delete":
            del self.files[name]
            return f"deleted {name}"
        if op != "edit":
            return f"refused: unknown operation {op!r:.60}"
        old, new = its.get("old"), its.get("new")
        if (
            not isinstance(old, str)
            or not isinstance(new, str)
            or self.files[name].count(old) != 1
        ):
            return f"refused: the old text must occur exactly once in {name}"
        return self.put(name, self.files[name].replace(old, new), opened)

    def put(self, name, text, opened):
        """Give a file a text, if that fits; what came of it."""
        if not isinstance(text, str):
            return f"refused: {name} needs a text"
        if name not in self.files and len(self.files) == FILES:
            return f"refused: there are {FILES} files already; delete one first"
        size = self.size() - len(self.files.get(name, "")) + len(text)
        if size > self.budget():
            return f"refused: the files would have {size} characters, {self.budget()} at most"
        self.files[name] = text
        opened.add(name)
        return f"wrote {name}"

    def listed(self, name, opened):
        """A file as the agent sees it: whole if it was opened in this batch."""
        text = self.files[name]
        shown = f":\n{text}\n" if name in opened else f", begins: {text[:80]!r}"
        return f"- {name}, {len(text)} characters{shown}"

    def answers(self):
        """The batch as the agent sees it; for a small model, a few wrong answers."""
        small = self.model.completes
        rows = [row for row in self.batch if not row[3]][:6] if small else self.batch
        longest = 150 if small else min(1_500, (self.model.window or 45_000) // 30)  # bytes
        return "\n".join(
            f"- {'right' if right else 'WRONG'}: {shortened(question, longest)}\n"
            f"  answered {shortened(given, 150)}; right is {shortened(gold, 300)}"
            for question, given, gold, right in rows
        )

    def size(self):
        """Characters of all files."""
        return sum(map(len, self.files.values()))

    def budget(self):
        """The most characters of all files."""
        return min(BUDGET, (self.model.window or 2 * BUDGET) // 2)

    def ask(self, prompt):
        """The model's answer, as long as the window allows."""
        if self.model.completes:
            return self.model(prompt, max_tokens=100)
        window = self.model.window
        return self.model(
            prompt, max_tokens=window and max(1, window - self.model.count(prompt) - FRAME)
        )

    def state(self):
        """The files, and what learning goes on with."""
        return [self.files, self.skills, self.batch, self.seen, self.labels]

    def restore(self, state):
        """The files, and what learning goes on with."""
        self.files, self.skills, self.batch, self.seen, self.labels = state


def found(text):
    """The JSON object in an answer; an empty one if there is none."""
    braces = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        return json.loads(braces[0], strict=False) if braces else {}
    except (ValueError, RecursionError):
        return {}


def answer(text):
    """The final answer in the model's reply; the whole reply if there is none."""
    return str(found(text).get("final_answer", text))


def same(one, other):
    """Whether two texts agree but for case, spaces, punctuation, and tags that tasks ask for."""
    tags = r"\[/?(?:[A-Z]{4,}|罪名)\]|<eoa>"
    words = [re.findall(r"\w+", re.sub(tags, " ", text).lower()) for text in (one, other)]
    return words[0] == words[1]


def shortened(text, most):
    """A text in one line; of one with more bytes than that, the beginning and the end."""
    data = " ".join(text.split()).encode()  # bytes tell better than characters what is long
    if len(data) <= most:
        return data.decode()
    start, end = data[: most // 2], data[-most // 2 :]
    return f"{start.decode(errors='ignore')} ... {end.decode(errors='ignore')}"
