"""A playbook of lessons that grows by small additions (after ACE, Zhang et al. 2025).

Three roles, played by one model. The generator answers with the playbook at hand, and names the
lessons that it used. The reflector compares the answer with the right one, says what there is to
learn, and tags the used lessons as helpful or harmful; after a wrong answer the generator tries
again with this reflection. The curator reads reflection and playbook, and adds what is missing.
Lessons are never rewritten: they are added, counted, and dropped when the playbook is too long,
the one with the worst balance first.
"""

import json
import re

ROUNDS = 3  # reflections on a wrong answer, at most; 1 for a small model
BUDGET = 20_000  # characters of the playbook; no more than half as many as the window has tokens
LONGEST = 300  # characters of a lesson
FRAME = 200  # tokens that a service may add around a prompt
SECTIONS = ("strategies", "facts", "mistakes")
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "lessons": [numbers of the lessons you used],
"final_answer": "the answer alone"}"""
REFLECT = """An answer was {verdict}. Find out why.

{task}

Answer given: {given}
Right answer: {right}

Lessons that were used:
{lessons}

What should be remembered for cases like this one? Did each lesson lead towards the right answer?
Answer with one JSON object and nothing else:
{{"insight": "what to remember",
"tags": {{"number of a lesson": "helpful, harmful or neutral"}}}}"""
CURATE = """You keep a playbook of lessons for this task: {instructions}

{book}

A new insight:
{reflection}

Which lessons should be added? Each must be short, general, and not in the playbook already. The
sections are {sections}. If nothing is missing, the list is empty.
Answer with one JSON object and nothing else:
{{"additions": [{{"section": "one of the sections", "lesson": "the lesson"}}]}}"""


class Playbook:
    """Keeps lessons, not examples."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.lessons = []  # each with its number, section, text and counters
        self.labels = []  # the answers seen, each once

    def learn(self, example):
        """Generate, reflect, curate."""
        given, used = self.generate(example.question)
        right = same(given, example.answer)
        reflection = self.reflect(example, given, used, right)
        for _ in range(0 if right or self.model.completes else ROUNDS - 1):
            given, used = self.generate(example.question, reflection)
            if same(given, example.answer):
                break
            reflection = self.reflect(example, given, used, False)
        self.curate(reflection)
        if example.answer not in self.labels:
            self.labels.append(example.answer)

    def predict(self, question):
        """The model's answer with the playbook at hand."""
        return self.generate(question)[0]

    def generate(self, question, reflection=""):
        """An answer, and the lessons that it used."""
        book = f"Lessons from earlier cases:\n{self.book()}\n\n" if self.lessons else ""
        if self.model.completes:
            prompt = f"{book[-2_000:]}Question: {question[:600]}\nAnswer:"
            if labels := self.task.labels or self.labels:
                return self.model.choose(prompt, labels), self.lessons
            return self.model(prompt, max_tokens=100, stop=["\n"]), self.lessons
        tried = f"\n\nOn an earlier attempt:\n{reflection}" if reflection else ""
        said = field(self.ask(f"{book}{self.task.prompt(question)}{tried}\n\n{REPLY}"))
        named = said["lessons"] if isinstance(said.get("lessons"), list) else []
        return str(said["final_answer"]), [known for known in self.lessons if known["id"] in named]

    def reflect(self, example, given, used, right):
        """What there is to learn from an answer; the counters of the used lessons change."""
        said = {}
        if not (right and self.model.completes):
            question = example.question[: 600 if self.model.completes else 4_000]
            prompt = REFLECT.format(
                verdict="right" if right else "wrong",
                task=self.task.prompt(question),
                given=given,
                right=example.answer,
                lessons=lines(used)[-2_000:] or "none",
            )
            said = field(self.ask(prompt))
        tags = said["tags"] if isinstance(said.get("tags"), dict) else None
        for lesson in used:
            usual = "helpful" if right else "harmful"
            tag = usual if tags is None else tags.get(str(lesson["id"]))
            if tag in ("helpful", "harmful"):
                lesson[tag] += 1
        return plain(said.get("insight", said.get("final_answer", "")))

    def curate(self, reflection):
        """Add the lessons that are missing, and drop the worst if there are too many."""
        for section, text in self.additions(reflection):
            if text and not any(same(text, known["text"]) for known in self.lessons):
                number = 1 + max((known["id"] for known in self.lessons), default=0)
                lesson = {"id": number, "section": section, "text": text}
                self.lessons.append({**lesson, "helpful": 0, "harmful": 0})
        budget = min(BUDGET, (self.model.window or 2 * BUDGET) // 2)
        while len(self.book()) > budget:
            self.lessons.remove(min(self.lessons, key=lambda its: its["helpful"] - its["harmful"]))

    def additions(self, reflection):
        """New lessons with their sections; the reflection itself if the model names none."""
        if not reflection:
            return []
        said = {}
        if not self.model.completes:
            prompt = CURATE.format(
                instructions=self.task.instructions,
                book=self.book() or "It is empty.",
                reflection=reflection,
                sections=", ".join(SECTIONS),
            )
            said = field(self.ask(prompt))
        if not isinstance(said.get("additions"), list):
            return [(SECTIONS[0], reflection)]
        found = [added for added in said["additions"] if isinstance(added, dict)]
        named = [(added.get("section"), plain(added.get("lesson", ""))) for added in found]
        return [(name if name in SECTIONS else SECTIONS[0], text) for name, text in named]

    def book(self):
        """The playbook as a text, by sections."""
        parts = {
            name: [lesson for lesson in self.lessons if lesson["section"] == name]
            for name in SECTIONS
        }
        return "\n".join(f"## {name}\n{lines(part)}" for name, part in parts.items() if part)

    def ask(self, prompt):
        """The model's answer, as long as the window allows."""
        if self.model.completes:
            return self.model(prompt, max_tokens=100)
        window = self.model.window
        return self.model(
            prompt, max_tokens=window and max(1, window - self.model.count(prompt) - FRAME)
        )

    def state(self):
        """The playbook."""
        return {"lessons": self.lessons, "labels": self.labels}

    def restore(self, state):
        """The playbook."""
        self.lessons, self.labels = state["lessons"], state["labels"]


def lines(lessons):
    """Lessons as text, one in a line, with their numbers and counters."""
    return "\n".join(
        f"[{its['id']}] helpful={its['helpful']} harmful={its['harmful']} :: {its['text']}"
        for its in lessons
    )


def field(text):
    """The JSON object in an answer; an answer that is none is a final answer."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        said = json.loads(found[0]) if found else {}
    except (ValueError, RecursionError):
        said = {}
    return {"final_answer": text, **said}


def plain(value):
    """A lesson in one line."""
    return " ".join(str(value).split())[:LONGEST]


def same(one, other):
    """Whether two texts agree but for case, spaces, punctuation, and tags that tasks ask for."""
    tags = r"\[/?(?:[A-Z]{4,}|罪名)\]|<eoa>"
    words = [re.findall(r"\w+", re.sub(tags, " ", text).lower()) for text in (one, other)]
    return words[0] == words[1]
