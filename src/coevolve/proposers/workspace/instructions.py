"""The instructions for a meta-agent: task, rules, method, and the form of a proposal."""

import json
import math
from collections import Counter

from coevolve.formatting import plural, time_limit
from coevolve.proposers.workspace.summary import below
from coevolve.search.candidate import MOST_BYTES, MOST_FILES
from coevolve.search.proposal import Broken, View
from coevolve.views.questions import Row, usage

_LONGEST_ERROR = 8_000

HERE = """
## What is in this folder

| | |
|---|---|
| `SUMMARY.md` | the best so far, the leaderboard, the last rounds, failures, components tried |
| `tasks.md`, `tasks.json` | the mean score of each task |
| `candidates/NAME/files/` | the files of every earlier candidate and of the starting harnesses |
| `candidates/NAME/standing.json` | its hypothesis, parents, {word}, rank and every outcome |
| `candidates/NAME/traces/TASK.json` | a trial: its input, the model calls, the answer, the error |
| `history.json` | all of the above except files and traces, for programs |
| `bin/coevolve` | the query command, see the end of this page |
| `proposals/` | **where you write** |

The starting harnesses (round 0) were evaluated on every task. Create a folder `scratch/` for any
other file you write. Everything outside `proposals/` is deleted when you are done. Changes in
`candidates/` have no effect: the engine has the originals.
"""

SCORING = """
## How candidates are scored

- The pool has {tasks}. {draws}
- {scores}
- `delta` is a candidate's {word} minus the best {word} before its round. Above 0, it was
  a new best.
- An outcome may be *missing*, for example because a service was down. A missing outcome is not
  a 0.
- The winner is finally tested on sealed tasks. Nothing about them is in this folder. A change that
  only helps on tasks you can read is worth nothing.
- Every trial uses budget. A candidate that crashes, hangs, or calls a model many times more often
  than its parent must be worth it.
"""

COMPARING = """\
Compare candidates by their estimates, not by their mean on the tasks they happened to get. Each \
estimate has an interval; a difference well inside it is noise."""

RULES = """
## Rules

1. **No memorised tasks.** Do not copy the text, id or answer of a task from a trace into
   a candidate: not into a table, a prompt, an example or a comment, and not as a rule that fits
   only one task. Candidates are scanned for this wherever the benchmark declares the text of its
   tasks, and may be refused. A harness may use everything it is given at run time, such as
   examples to learn from.
2. **Self-contained.** A candidate runs alone in a sandbox: no network, no keys, no files except
   its own, nothing from this workspace. It imports its own files and installed libraries.
3. **Deterministic.** The same input gives the same result; seed all random numbers.
4. **Fair.** Do not look for right answers, test tasks or the evaluation code, do not read outside
   this folder, and do not change what is recorded.
"""

WORTH = """
## What makes a good candidate

- **Evidence first.** Find several tasks that fail for the same reason, in the traces, and remove
  the reason. Do not start from a technique you happen to like.
- **A mechanism, not a constant.** Change what is remembered, what is retrieved and by which
  similarity, what the model is shown and in which order, or how an answer is produced, checked
  and read. Eight examples instead of six, another temperature or a reworded sentence is not
  a candidate.
- **One change.** If the score moves, it must be clear why. Combining two candidates that solve
  different tasks counts as one change; name both as parents.
- **A hypothesis that can fail.** State what the traces show, what you change because of it, which
  kind of task should improve, and what we would see if you are wrong.
- **New.** Look at what was tried. An idea that failed may have failed because of a bug, or because
  of another flaw: read its traces before you repeat it, and say what is different now.
- **Different from the others** of this round. Three strengths of one idea are one candidate.
- **Exploit or explore.** *Exploit* removes a weakness of one of the best; *explore* tries another
  approach, which may score lower at first.
  {mix}
  If the last rounds all changed the same part of the harness, change another part.
- **Robust.** It works on empty, very long and unusual inputs, and before anything was learned.
  Where its new part cannot work, it falls back to what its parent does and does not raise.
- **Simple.** Remove what has no effect. Say at the top of the file what it does; write it so that
  the next proposer can build on it.

There is always something left to try. Do not declare the best candidate optimal, and do not submit
a copy: a candidate with the same files as an earlier one is refused.
"""

METHOD = """
## How to work

1. Read `SUMMARY.md` and `tasks.md`: what is best, what was tried, where candidates differ.
2. Read all files of the best candidate, and one or two good ones that work differently.
   `coevolve query diff A B` shows what a change was, and which tasks it won and lost.
3. `coevolve query failures {parent}` lists first what others solved. Take such a task, read both
   traces (`coevolve query trace {parent} TASK`, `coevolve query trace OTHER TASK`), and find the
   first point where they differ. Then look at the tasks that no candidate solves: do they have
   a common cause? Read some successes too, so that you do not break them. Read ten traces or more.
4. Write down more hypotheses than you need. Keep those that explain the most failed tasks and
   differ from each other.
5. Copy the parent and change the copy:
   `mkdir -p proposals/NAME && cp -r {home}/. proposals/NAME/`
6. Test it. A script in `scratch/` can import the candidate, pass it a stub in place of the model,
   and call it on inputs from traces, on an empty input and on a very long one. A candidate that
   cannot be imported is refused.
7. Review it. Does the code do what the hypothesis says? Is the new part ever used? Would it help
   on tasks you have not seen? Does it contain any task?
8. Write `proposal.json`.
"""

SUBMIT = """
## What to submit

```text
proposals/
  NAME/
    proposal.json
    ...            all files of the candidate, laid out as in candidates/*/files/
```

```json
{example}
```

| key | |
|---|---|
| `name` | short, says what is new: words with hyphens. Not `v2`, not `improved` |
| `parent` | the candidate it is based on, or null; use a list `parents` for several |
| `hypothesis` | two to four sentences, see above; the next proposer reads them |
| `kind` | `"exploit"` or `"explore"` |
| `components` | its mechanisms, two or three words each, as earlier candidates call them |

Submit {wanted}. Only regular files are accepted, at most {files} and {megabytes} MB in total: no
links, hidden files or caches. A short check imports every candidate and runs it on a small input;
a candidate that fails it is not scored.

When you are done, finish with the names of your candidates.
"""


def prompt(view: View, count: int) -> str:
    """The first message to an agent."""
    wanted = plural(count, "new candidate")
    return (
        "The current folder is the workspace of a search for a better harness. Read and follow "
        f"INSTRUCTIONS.md: write {wanted} in proposals/, each in its own folder with all of its "
        "files and a proposal.json. Base every candidate on evidence: read the traces of failed "
        "tasks before you write code. Work until "
        f"{'it is' if count == 1 else 'all of them are'} written; questions are not answered."
        f"{limit(view)}"
    )


def instructions(view: View, index: Row, count: int) -> str:
    """`INSTRUCTIONS.md` for writing new candidates."""
    parent = view.parent or "PARENT"
    parts = [
        f"# Write {plural(count, 'new candidate')} for round {view.round}",
        _opening(view, index, count),
        harness(view),
        _here(view),
        scoring(view),
        RULES,
        WORTH.format(mix=_mix(index, count)),
        METHOD.format(parent=parent, home=_home(index, parent)),
        SUBMIT.format(
            example=json.dumps(_example(view), indent=2),
            files=f"{MOST_FILES:,}",
            megabytes=MOST_BYTES // 1_000_000,
            wanted=plural(count, "candidate"),
        ),
        asking(),
    ]
    return "\n\n".join(part.strip() for part in parts)


def scoring(view: View) -> str:
    """How candidates are scored, as the protocol tells it."""
    told = view.disclosure
    scores = f"{told.scores} {COMPARING}" if told.estimated else told.scores
    tasks = plural(len(view.tasks), "task")
    return SCORING.format(tasks=tasks, draws=told.draws, scores=scores, word=told.word)


def _here(view: View) -> str:
    return HERE.format(word=view.disclosure.word)


def limit(view: View) -> str:
    """The time limit as a last sentence; empty without a limit."""
    return "" if math.isinf(view.seconds) else f" You have about {time_limit(view.seconds)}."


def harness(view: View) -> str:
    """What a harness is, as the benchmark describes it."""
    text = below(view.briefing, 3) or (
        "The benchmark has no description. Read the starting harnesses (round 0) in "
        "`candidates/`: a candidate has the same files and the same functions."
    )
    return f"## The harness\n\n{text}"


def asking() -> str:
    """The query command."""
    return (
        "## Querying the history\n\n"
        "Run `coevolve query` in this folder; if it is not found, `python3 bin/coevolve query`.\n"
        f"\n```text\n{usage()}```"
    )


def _opening(view: View, index: Row, count: int) -> str:
    parent = view.parent
    best = f" (`{_home(index, parent)}/`)" if parent else ""
    time = ""
    if not math.isinf(view.seconds):
        time = (
            f"\n\n**Time.**{limit(view)} Then you are stopped, and only what is in `proposals/` "
            "counts. Write each candidate, with its `proposal.json`, as early as you can, and "
            "improve it in place."
        )
    return (
        "You are the proposer in a search for a better *harness*: a program that is run on tasks "
        "and scored. If it uses a language model, that model is fixed; you rewrite the code "
        "around it. In each round, new candidates are written, evaluated on tasks, and "
        "compared with all earlier ones. You only write them: they are checked and scored "
        "after you are done, and the next round learns from their traces.\n\n"
        f"1. Read `SUMMARY.md`, then the files of the best candidate{best}.\n"
        "2. Find out from traces *why* tasks fail.\n"
        f"3. Write {plural(count, 'candidate')}, each in its own folder in `proposals/`, "
        f"each with a `proposal.json`.{time}"
    )


def _mix(index: Row, count: int) -> str:
    """How to divide the candidates between exploiting and exploring."""
    kinds = Counter(row["kind"] for row in _latest(index) if row["kind"])
    so_far = ", ".join(f"{number} {name}" for name, number in sorted(kinds.items()))
    lately = f" The last three rounds had {so_far}." if so_far else ""
    if count == 1:
        rule = "Choose what the search needs now; explore when refining no longer helps."
    elif count == 2:
        rule = "Write one of each."
    else:
        rule = f"Among your {count}, at least one should exploit and at least one explore."
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
        "name": "ask-again-if-unparsed",
        "parent": parent,
        "hypothesis": (
            "In most failed traces the answer is right but cannot be parsed: it has a preamble or "
            "another format. Checking the format, and asking again if it is wrong, should fix "
            "these tasks; tasks that fail for lack of knowledge should not change. If the number "
            "of parsed answers does not rise, the format was not the cause."
        ),
        "kind": "exploit",
        "components": ["format check", "second question"],
    }


def repair_prompt(view: View, home: str) -> str:
    """The first message to an agent that repairs a candidate."""
    return (
        f"The candidate in proposals/{home}/ failed its check and cannot be scored. Read "
        "INSTRUCTIONS.md in the current folder, which has the error, and repair the candidate in "
        f"place. Write no other candidate; questions are not answered.{limit(view)}"
    )


def repair_instructions(view: View, broken: Broken, home: str) -> str:
    """`INSTRUCTIONS.md` for repairing a candidate."""
    return "\n\n".join(
        part.strip()
        for part in (_repair(view, broken, home), harness(view), _here(view), RULES, asking())
    )


def _repair(view: View, broken: Broken, home: str) -> str:
    fence = "`" * 4
    return f"""# Repair the candidate in proposals/{home}

It was written for this round and failed its check: before any trial, a candidate is imported and
run on a small input, in a sandbox.{limit(view)} The error:

{fence}text
{_cut(broken.error)}
{fence}

1. Read its files in `proposals/{home}/`, and find the cause of the error, not only its place.
2. Change these files in place. Keep the hypothesis: make the smallest change that makes it work
   as intended. Do not replace it by a copy of its parent; a copy is refused.
3. Look for further errors. A script in `scratch/` can import the candidate, pass it a stub in
   place of the model, and call every function on an ordinary, an empty and an unusual input.
   There is no second repair.
4. Change `proposal.json` only where it is no longer true.

Do not write other candidates. When you are done, finish with a sentence on what was wrong."""


def _cut(error: str) -> str:
    """An error, without its middle if it is long."""
    text = error.strip().replace("````", "` ` ` `")
    if len(text) <= _LONGEST_ERROR:
        return text
    return f"{text[: _LONGEST_ERROR // 2]}\n[...]\n{text[-_LONGEST_ERROR // 2 :]}"
