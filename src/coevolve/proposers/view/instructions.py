"""What an agent is told: the game, its rules, how to work, and what to hand over."""

import json
import math
from collections import Counter

from coevolve.proposers.view.pages import below, minutes, plural
from coevolve.proposers.view.query.questions import usage
from coevolve.proposers.view.query.source import Row
from coevolve.proposers.view.wording import HAND_OVER, HERE, METHOD, RULES, SCORING, WORTH
from coevolve.search.candidate import MOST_BYTES, MOST_FILES
from coevolve.search.proposal import View


def prompt(view: View, count: int) -> str:
    """The message an agent is started with."""
    wanted = plural(count, "new candidate")
    return (
        "The current folder is a workspace of a search for a better harness. Read INSTRUCTIONS.md "
        f"in it, then do what it says: write {wanted} below proposals/, each in a folder of its "
        "own with all of its files and a proposal.json. Base every candidate on evidence: read "
        "the traces of failed tasks before you write code. Work until "
        f"{'it is' if count == 1 else 'all of them are'} written; nobody will answer questions."
        f"{limit(view)}"
    )


def instructions(view: View, index: Row, count: int) -> str:
    """`INSTRUCTIONS.md` for writing new candidates."""
    parent = view.parent or "PARENT"
    parts = [
        f"# Write {plural(count, 'new candidate')} for round {view.round}",
        _opening(view, index, count),
        harness(view),
        HERE,
        SCORING.format(tasks=plural(len(view.tasks), "task")),
        RULES,
        WORTH.format(mix=_mix(index, count)),
        METHOD.format(parent=parent, home=_home(index, parent)),
        HAND_OVER.format(
            example=json.dumps(_example(view), indent=2),
            files=f"{MOST_FILES:,}",
            megabytes=MOST_BYTES // 1_000_000,
            wanted=plural(count, "candidate"),
        ),
        asking(),
    ]
    return "\n\n".join(part.strip() for part in parts)


def limit(view: View) -> str:
    """How long an agent has, as a sentence to end with; nothing where it has forever."""
    return "" if math.isinf(view.seconds) else f" You have about {minutes(view.seconds)}."


def harness(view: View) -> str:
    """What a harness is here, in the words of the benchmark."""
    told = below(view.briefing, 3) or (
        "The benchmark does not describe it. Read the starting harnesses (round 0) in "
        "`candidates/`: a candidate has the same files and offers the same functions."
    )
    return f"## The harness\n\n{told}"


def asking() -> str:
    """The query command."""
    return (
        "## Asking about the history\n\n"
        "`coevolve query` runs in this folder; if it is not found, `python3 bin/coevolve query`.\n"
        f"\n```text\n{usage()}```"
    )


def _opening(view: View, index: Row, count: int) -> str:
    parent = view.parent
    best = f" (`{_home(index, parent)}/`)" if parent else ""
    time = ""
    if not math.isinf(view.seconds):
        time = (
            f"\n\n**Time.**{limit(view)} Then you are stopped. What lies in `proposals/` by then "
            "counts, the rest is lost: write each candidate, with its `proposal.json`, as soon "
            "as you can, and improve it in place."
        )
    return (
        "You are the proposer in a search for a better *harness*: a program that is run on tasks "
        "and scored. If it uses a language model, that model is fixed; what you rewrite is the "
        "code around it. Each round, new candidates are written, tried on some of the tasks, and "
        "compared with all before them. You only write: candidates are checked and scored after "
        "you are done, and their traces teach the next round.\n\n"
        f"1. Read `SUMMARY.md`, then the files of the best candidate{best}.\n"
        "2. Learn from traces *why* tasks fail.\n"
        f"3. Write {plural(count, 'candidate')}, each in a folder of its own below `proposals/`, "
        f"each with a `proposal.json`.{time}"
    )


def _mix(index: Row, count: int) -> str:
    """How to divide the candidates between what works and what is new."""
    kinds = Counter(row["kind"] for row in _latest(index) if row["kind"])
    so_far = ", ".join(f"{number} {name}" for name, number in sorted(kinds.items()))
    lately = f" The last three rounds had {so_far}." if so_far else ""
    if count == 1:
        rule = "Choose what the search needs now; when refining no longer pays, explore."
    elif count == 2:
        rule = "Write one of each."
    else:
        rule = f"Among your {count}, let at least one exploit and at least one explore."
    return f"{rule}{lately}"


def _latest(index: Row) -> list[Row]:
    rounds = sorted({row["round"] for row in index["candidates"] if row["round"]})
    return [row for row in index["candidates"] if row["round"] in rounds[-3:]]


def _home(index: Row, name: str) -> str:
    folders = [row["folder"] for row in index["candidates"] if row["name"] == name]
    return f"{folders[0] if folders else f'candidates/{name}'}/files"


def _example(view: View) -> dict[str, object]:
    parent = view.parent or None
    return {
        "name": "ask-again-if-unreadable",
        "parent": parent,
        "hypothesis": (
            "In most failed traces the answer is right but cannot be read: it comes with a "
            "preamble or in another form. Checking the form, and asking once more where it is "
            "wrong, should turn these; tasks that fail for want of knowledge should stay as they "
            "are. If the readable answers do not become more, the form was not the cause."
        ),
        "kind": "exploit",
        "components": ["form check", "second question"],
    }
