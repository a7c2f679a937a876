"""A playbook: lessons that the model draws from its own mistakes (after ACE, Zhang et al. 2025).

For every example the model answers with the playbook at hand (generate). If it was wrong, it
says what would have helped (reflect), and the lesson joins the playbook unless it is there
already (curate). Lessons count how often they were at hand for a right and for a wrong answer;
when the playbook is full, the one with the worst balance goes.
"""

import json
import re

FULL = 40  # lessons
LONGEST = 300  # characters of a lesson
REPLY = """Answer with one JSON object and nothing else:
{"reasoning": "how you came to your answer", "lessons": [numbers of the lessons you used],
"final_answer": "the answer alone"}"""
REFLECT = """An answer was wrong. Find the lesson in it.

{task}

Answer given: {given}
Right answer: {right}

Which rule, short and general, would lead to the right answer here and in cases like this one?
Answer with one JSON object and nothing else: {{"lesson": "the rule"}}"""


class Playbook:
    """Keeps lessons, not examples."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.lessons = []  # each with its text, and how often it helped and harmed
        self.labels = []  # the answers seen, each once

    def learn(self, example):
        """Generate, reflect, curate."""
        given, used = self.generate(example.question)
        right = same(given, example.answer)
        for number in used:
            self.lessons[number]["helped" if right else "harmed"] += 1
        if not right:
            self.curate(self.reflect(example, given))
        if example.answer not in self.labels:
            self.labels.append(example.answer)

    def predict(self, question):
        """The model's answer with the playbook at hand."""
        return self.generate(question)[0]

    def generate(self, question):
        """An answer, and the numbers of the lessons that it used."""
        lessons = enumerate(lesson["text"] for lesson in self.lessons)
        book = "".join(f"[{number}] {text}\n" for number, text in lessons)
        book = f"Lessons from earlier cases:\n{book}\n" if book else ""
        labels = self.task.labels or self.labels
        if self.model.completes and labels:
            prompt = f"{book[-2_000:]}Question: {question[:600]}\nAnswer:"
            return self.model.choose(prompt, labels), range(len(self.lessons))
        said = field(self.model(f"{book}{self.task.prompt(question)}\n\n{REPLY}"))
        used = said["lessons"] if isinstance(said.get("lessons"), list) else []
        known = [number for number in used if number in range(len(self.lessons))]
        return str(said["final_answer"]), known

    def reflect(self, example, given):
        """The lesson of a wrong answer, as the model sees it."""
        task = self.task.prompt(example.question[:4_000])
        prompt = REFLECT.format(task=task, given=given, right=example.answer)
        said = field(self.model(prompt, max_tokens=100 if self.model.completes else None))
        return " ".join(str(said.get("lesson", said["final_answer"])).split())[:LONGEST]

    def curate(self, lesson):
        """Add a lesson that is new, and let the worst go if there are too many."""
        if lesson and not any(same(lesson, known["text"]) for known in self.lessons):
            self.lessons.append({"text": lesson, "helped": 0, "harmed": 0})
        if len(self.lessons) > FULL:
            worst = min(self.lessons[:-1], key=lambda known: known["helped"] - known["harmed"])
            self.lessons.remove(worst)

    def state(self):
        """The playbook."""
        return {"lessons": self.lessons, "labels": self.labels}

    def restore(self, state):
        """The playbook."""
        self.lessons, self.labels = state["lessons"], state["labels"]


def field(text):
    """The JSON object in an answer; an answer that is none is a final answer."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        said = json.loads(found[0]) if found else {}
    except ValueError:
        said = {}
    return {"final_answer": text, **said}


def same(one, other):
    """Whether two texts agree but for case, spaces and punctuation."""
    return re.findall(r"\w+", one.lower()) == re.findall(r"\w+", other.lower())
