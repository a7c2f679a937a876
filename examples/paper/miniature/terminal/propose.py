"""Proposes the hints of the best candidate with one or two changes, never the same hints twice."""

import json
import random
import re
from itertools import combinations

HINTS = ["plan first", "wait for the prompt", "check the result", "list the files", "be brief"]
LINE = re.compile(r"HINTS = (\[.*\])")


def propose(view, count):
    """New harnesses; which changes are tried first is random."""
    rng = random.Random(f"{view.seed} {view.round}")
    names = [standing.candidate.name for standing in view.standings]
    tried = [hints_in(view.files(name)["harness.py"].decode()) for name in names]
    text = view.text()
    best, proposals = hints_in(text), []
    changes = [set(some) for size in (1, 2, 3) for some in shuffled(rng, size)]
    for change in changes:
        hints = [hint for hint in HINTS if (hint in best) != (hint in change)]
        if hints not in tried and len(proposals) < count:
            tried.append(hints)
            proposals.append(
                {
                    "name": f"r{view.round}-{len(proposals)}",
                    "files": {"harness.py": LINE.sub(f"HINTS = {json.dumps(hints)}", text)},
                    "parents": [view.parent],
                    "hypothesis": f"these hints help: {', '.join(hints) or 'none'}",
                }
            )
    return proposals


def shuffled(rng, size):
    """All sets of so many hints, in random order."""
    found = list(combinations(HINTS, size))
    return rng.sample(found, len(found))


def hints_in(source):
    """The hints of a harness."""
    return json.loads(LINE.search(source)[1])
