"""The standing parts of what an agent is told."""

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
