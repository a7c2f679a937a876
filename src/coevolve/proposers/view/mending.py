"""What an agent is told when its candidate failed the check."""

from coevolve.proposers.view.instructions import asking, harness, limit
from coevolve.proposers.view.wording import HERE, RULES
from coevolve.search.proposal import Broken, View

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
