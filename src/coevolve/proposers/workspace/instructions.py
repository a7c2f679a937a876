"""What an agent is told: the task, the rules, how to work, and what to write."""

import json
import math
from collections import Counter

from coevolve.proposers.workspace.query.questions import usage
from coevolve.proposers.workspace.query.source import Row
from coevolve.proposers.workspace.summary import below, minutes, plural
from coevolve.search.candidate import MOST_BYTES, MOST_FILES
from coevolve.search.proposal import Broken, View

HERE = """
## What lies here

| | |
|---|---|
| `SUMMARY.md` | the best so far, the leaderboard, the last rounds, what failed, what was tried |
| `tasks.md`, `tasks.json` | how often each task was solved |
| `candidates/NAME/files/` | the files of every earlier candidate and of the starting harnesses |
| `candidates/NAME/standing.json` | its hypothesis, parents, estimate, rank and every outcome |
| `candidates/NAME/traces/TASK.json` | a trial: its input, what was asked and answered, the error |
| `history.json` | all of the above but files and traces, for programs |
| `bin/coevolve` | the query command, see the end of this page |
| `proposals/` | **where you write** |

The starting harnesses (round 0) were tried on every task, later candidates on those their round
drew. Make a folder `scratch/` for anything else you write; what is not in `proposals/` is thrown
away when you are done. Changing something in `candidates/` changes nothing: the engine has the
originals.
"""

SCORING = """
## How candidates are scored

- The pool has {tasks}. A round usually draws a few, mostly those on which candidates differ,
  and tries its new candidates on these alone. You cannot know which.
- From these outcomes the score on **all** tasks is estimated. Compare candidates by these
  estimates, which are made for it, and not by means over the tasks they happened to get. An
  estimate has an interval; a difference well inside it is noise.
- `delta` is a candidate's estimate less the best one known before its round. Above 0, it was
  a new best.
- An outcome may be *missing*, because a service was down, say. That is not a 0.
- What counts in the end is how the winner does on tasks that nobody has seen. They are sealed,
  and nothing of them is in this folder. What helps only on tasks you can read about is worth
  nothing.
- Every trial is paid for out of a budget. A candidate that crashes, hangs, or asks a model many
  times what its parent asks once, had better be worth it.
"""

RULES = """
## Rules

1. **Nothing by heart.** No text, id or answer of a task that you saw in a trace goes into
   a candidate: not in a table, a prompt, an example or a comment, nor as a rule that fits one
   task and no other. Candidates are scanned for this wherever the benchmark says what its tasks
   ask, and may be refused for it. What a harness is given while it runs, such as examples to
   learn from, is its to use.
2. **Self-contained.** A candidate runs alone in a sandbox: no network, no key, no file but its
   own, nothing of this workspace. It imports its own files and installed libraries.
3. **Deterministic.** The same input has the same result; seed whatever is random.
4. **Fair.** No attempt to find right answers, test tasks or the evaluation itself, to read
   outside this folder, or to change what is recorded.
"""

WORTH = """
## What makes a candidate worth its trials

- **It starts from evidence.** Find several tasks that fail for the same reason, in the traces,
  and remove the reason. Do not start from a technique you happen to like.
- **It changes a mechanism, not a constant.** What is remembered, what is retrieved and by what
  likeness, what the model is shown and in what order, how an answer is produced, checked and
  read. Eight examples instead of six, another temperature, or a reworded sentence is no candidate.
- **It changes one.** If the score moves, it must be plain what moved it. Joining two candidates
  that solve different tasks counts as one change; name both as parents.
- **Its hypothesis can turn out wrong.** What the traces show, what therefore changes, which kind
  of task should turn, and what we would see if you are mistaken.
- **It is new.** Look at what was tried. Something that failed may have failed because of a bug, or
  beside another flaw: read its traces before you repeat it, and say what is different now.
- **It is told apart from the others** of this round by its hypothesis. Three strengths of one idea
  are one candidate.
- **Exploit or explore.** *Exploit* removes a weakness of one of the best; *explore* tries another
  way altogether, which may well score less at first.
  {mix}
  If the last rounds all worked on the same part of the harness, work on another.
- **It is robust.** It works on an empty, a huge and an odd input, and before anything was
  learned. Where its new part cannot do its work, it does what its parent does, and does not raise.
- **It is simple.** Take out what does not earn its place. Say at the top of the file what it does;
  write it so that the next proposer can build on it.

There is always something left to try. Do not declare the best optimal, and do not hand over
a copy: a candidate with the files of an earlier one is refused.
"""

METHOD = """
## How to work

1. `SUMMARY.md` and `tasks.md`: what is best, what was tried, which tasks tell candidates apart.
2. Read the whole of the best candidate, and one or two good ones that work differently.
   `coevolve query diff A B` shows what a change was, and which tasks it won and lost.
3. `coevolve query failures {parent}` lists first what others solved. Take such a task, read both
   traces (`coevolve query trace {parent} TASK`, `coevolve query trace OTHER TASK`), and find the
   first point where they part. Then the tasks nobody solves: is there a common cause?
   Read some successes, too, so as not to break what works. Read ten traces or more.
4. Note more hypotheses than you need. Keep those with the most failed tasks behind them that are
   unlike each other.
5. Copy the parent and change the copy:
   `mkdir -p proposals/NAME && cp -r {home}/. proposals/NAME/`
6. Try it. A script in `scratch/` can import the candidate, give it a stand-in for what it is
   given in earnest (a function in place of the model), and call it on inputs from traces, on an
   empty one and on a very long one. What cannot be imported is refused.
7. Read it again as its critic. Does the code do what the hypothesis says? Does the new part come
   into play at all? Would it help on tasks you have not seen? Is any task in it?
8. Write `proposal.json`.
"""

HAND_OVER = """
## What to hand over

```text
proposals/
  NAME/
    proposal.json
    ...            all files of the candidate, as they lie in candidates/*/files/
```

```json
{example}
```

| key | |
|---|---|
| `name` | short, and says what is new: words with hyphens. Not `v2`, not `improved` |
| `parent` | the candidate it is made from, or null; `parents`, a list, where there are several |
| `hypothesis` | two to four sentences, see above; the next proposer reads them |
| `kind` | `"exploit"` or `"explore"` |
| `components` | its mechanisms, two or three words each, in the words of earlier candidates |

Hand over {wanted}. Only plain files are taken, at most {files} and {megabytes} MB of them: no
links, hidden files or caches. A short check imports every candidate and tries it on something
small; what does not pass is not scored.

When all is written, end with the names of your candidates.
"""


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


_MOST = 8_000


def mending_prompt(view: View, home: str) -> str:
    """The message an agent is started with."""
    return (
        f"The candidate in proposals/{home}/ failed its check and cannot be scored. Read "
        "INSTRUCTIONS.md in the current folder, which has the error, and mend the candidate in "
        f"place. Write no other candidate; nobody will answer questions.{limit(view)}"
    )


def mending(view: View, broken: Broken, home: str) -> str:
    """`INSTRUCTIONS.md` for mending a candidate."""
    return "\n\n".join(
        part.strip() for part in (_task(view, broken, home), harness(view), HERE, RULES, asking())
    )


def _task(view: View, broken: Broken, home: str) -> str:
    fence = "`" * 4
    return f"""# Mend the candidate in proposals/{home}

It was written for this round and failed the check that comes before any trial: it was imported
and tried on something small, in a sandbox.{limit(view)} This is what went wrong:

{fence}text
{_cut(broken.error)}
{fence}

1. Read its files in `proposals/{home}/`, and find the cause of the error rather than its place.
2. Change these files, where they lie. Keep the hypothesis: the smallest change that makes it work
   as it was meant. Do not fall back to a copy of its parent; that is refused.
3. Look for the next error, too. A script in `scratch/` can import the candidate, with a stand-in
   for what it is given, and call every function on an ordinary, an empty and an odd input. There
   is no further try.
4. `proposal.json` says what it is. Change it only where it is no longer true.

Do not write other candidates. When it is mended, end with a sentence on what was wrong."""


def _cut(error: str) -> str:
    """An error without its middle, if it is long."""
    text = error.strip().replace("````", "` ` ` `")
    if len(text) <= _MOST:
        return text
    return f"{text[: _MOST // 2]}\n[...]\n{text[-_MOST // 2 :]}"
