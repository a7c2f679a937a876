"""The proposer: adds rules to the best harness for the tasks it failed.

A real proposer calls a language model. This one has a fixed list of rules, a few of them bad, and
tries those that change a text its parent failed on. If that gives nothing new, it adds any rules
and leaves out one of the parent's.
"""

import ast
import random
import re

from coevolve import Proposal, View

IDEAS = {
    "thousands": (r"(?<=\d),(?=\d{3}\b)", r""),
    "spaced thousands": (r"(?<=\d)[ '](?=\d{3}\b)", r""),
    "european": (r"(\d)\.(\d{3}),(\d\d)\b", r"\1\2.\3"),
    "decimal comma": (r"(\d),(\d\d?)\b", r"\1.\2"),
    "kilo": (r"(\d) ?(?:k|grand|thousand)\b", r"\1e3"),
    "million": (r"(\d) ?(?:million|mio)\b", r"\1e6"),
    "billion": (r"(\d) ?billion\b", r"\1e9"),
    "hundred": (r"(\d) ?hundred\b", r"\1e2"),
    "one": (r"\b(?:an?|one)\b", r"1"),
    "two": (r"\b(?:two|(?:a|1) couple(?: of)?)\b", r"2"),
    "three": (r"\bthree\b", r"3"),
    "dozen": (r"\b(?:(?:a|1) )?dozen\b", r"12"),
    "half": (r"\bhalf (?:an?|1)\b", r"0.5"),
    "and a half": (r"\b(?:an?|1) (\w+) and (?:a|1) half\b", r"1.5 \1"),
    "number and a half": (r"(\d) and (?:a|1) half\b", r"\1.5"),
    "quarter": (r"\b(?:a|1) quarter of (?:an?|1)\b", r"0.25"),
    "quarters": (r"\b(?:three|3) quarters of (?:an?|1)\b", r"0.75"),
    "clock": (r"\b(\d+):(\d\d)$", r"\1 h \2 min"),
    "long clock": (r"\b(\d+):(\d\d):(\d\d)\b", r"\1 h \2 min \3 s"),
    "short hours": (r"(\d)h(\d\d)$", r"\1 h \2 min"),
    "fortnight": (r"\bfortnight\b", r"2 weeks"),
    "german": (r"\bstunden?\b", r"hours"),
    "no dots": (r"\.", r""),
    "first word": (r"(\S+) .*", r"\1"),
}
TRIES = 20
BLOCK = re.compile(r"^RULES = (\[.*?^\])", re.M | re.S)


def propose(view: View, count: int) -> list[Proposal]:
    """New harnesses based on the best one."""
    rng = random.Random(view.seed)
    parent = view.standing(view.parent)
    source = view.files(view.parent)["harness.py"].decode()
    rules = ast.literal_eval(BLOCK.findall(source)[0])
    failed = [task.lower() for task, score in parent.outcomes.items() if score == 0.0]
    new = [name for name, rule in IDEAS.items() if rule not in rules]
    useful = [name for name in new if any(re.search(IDEAS[name][0], text) for text in failed)]
    known = {view.files(one.candidate.name)["harness.py"].decode() for one in view.standings}
    proposals = []
    for number in range(count):
        text = hypothesis = ""
        for attempt in range(2 * TRIES):  # a copy of an earlier harness would be refused
            first = attempt < TRIES
            ideas = useful if useful and first else new
            chosen = rng.sample(ideas, min(3, len(ideas)))
            left_out = [] if first else rng.sample(rules, min(1, len(rules)))
            kept = [rule for rule in rules if rule not in left_out]
            text = _with(kept + [IDEAS[name] for name in chosen], source)
            hypothesis = (
                "adds rules: " + (", ".join(chosen) or "none") + "; leaves one out" * len(left_out)
            )
            if text not in known:
                break
        known.add(text)
        proposals.append(
            Proposal(
                name=f"r{view.round}-{number}",
                files={"harness.py": text.encode()},
                parents=(view.parent,),
                hypothesis=hypothesis,
            )
        )
    return proposals


def _with(rules: list[tuple[str, str]], source: str) -> str:
    """The source with other rules."""
    # Long patterns first: a short one could match a part of the same text.
    ordered = sorted(rules, key=lambda rule: -len(rule[0]))
    lines = "".join(f'    (r"{pattern}", r"{into}"),\n' for pattern, into in ordered)
    return source.replace(BLOCK.findall(source)[0], f"[\n{lines}]")
