"""A run in which everything that others write is an attack on the pages that show it."""

import asyncio
import json
from pathlib import Path
from unittest.mock import patch

from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from coevolve.store import RunStore
from tests.search.stubs import StubExecutor, chance

ELSEWHERE = "http://attack.invalid"
HTML = (
    "</script></style></title></textarea></pre></svg>]]>--><script>window.attacked=1</script>"
    "<img src=x onerror=window.attacked=2><svg onload=window.attacked=3>"
    f"<iframe src=javascript:window.attacked=4></iframe><link rel=stylesheet href={ELSEWHERE}/c>"
    f"<a href=javascript:window.attacked=5>x</a><base href={ELSEWHERE}/><meta http-equiv=refresh "
    f'content="0;url={ELSEWHERE}">" onmouseover="window.attacked=6" \' onclick=\'attacked=7'
    f" style=background:url({ELSEWHERE}/s) {{{{7*7}}}} ${{7*7}} <%= 7*7 %> `${{1}}` &lt;b&gt;"
)
INVISIBLE = (
    "\x1b[2J\x1b]0;title\x07\x9b31m\x00\x08\x0b\x7f\x85 \u202etxet\u202c \u2066\u2067\u2068\u2069"
    "\u200b\u200d\u2028\u2029\ufeff\xad\u061c\U000e0041"
)
HEBREW = "\u05e9\u05dc\u05d5\u05dd 12 34"
"""Letters that are written from the right, which reorder the numbers behind them."""
ALL = f"{HTML} {INVISIBLE} {HEBREW} \ud800"
POLLUTION = ("__proto__", "constructor", "toString", "hasOwnProperty", "prototype")
ADDRESSES = (
    "../../etc/passwd", "a/b?c=d#e&f%2e%2e%00", "//attack.invalid/x", "javascript:attacked=8",
    "data:text/html,<script>attacked=9</script>", "\\\\attack.invalid\\x", "name=1&token=2;x", "%",
    "two\nlines\r\nSet-Cookie: attacked=1",
)  # fmt: skip
"""Names that mean something else in an address or a header."""
STARTS = (ALL, HEBREW, ADDRESSES[2], ADDRESSES[-1], "n" * 9_000)
"""Names of starting harnesses, in a journal that another program wrote."""
DEEP = json.dumps({"deep": "x"}).replace('"x"', '{"a":[' * 400 + "1" + "]}" * 400)
HOLLOW = json.dumps([[[[] for _ in range(60)] for _ in range(60)] for _ in range(60)])
"""Much structure without any text."""
TASKS = tuple(f"{name} {i}" for i, name in enumerate((HTML, INVISIBLE, *ADDRESSES)))
TRACES = (
    json.dumps({"role": ALL, "content": ALL, ALL: [ALL, {ALL: ALL}]}),
    json.dumps([{"by": ALL, "said": ALL, "called": HTML, "saw": "y" * 1_000_000}]),
    DEEP,
    HOLLOW,
    "[" * 100_000,
    "NaN",
    '{"a": 1e999, "b": -0.0, "c": ' + "9" * 4_000 + "}",
    json.dumps(ALL),
    json.dumps({"content": "line\n" * 100_000}),
    "9" * 10_000,
    json.dumps({name: name for name in POLLUTION}),
)
LONG_LINE = "x" * 1_000_000
SOURCES: dict[str, bytes] = {
    "harness.py": f'# {HTML}\n\'{HTML}\'\n"""{HTML}\n{INVISIBLE}"""\n{HEBREW}\n'.encode(),
    "line.py": LONG_LINE.encode(),
    "lines.py": b"'\n" * 100_000,
    "many.md": b"#\n" * 100_000,
    "invalid.txt": bytes(range(256)) * 40,
    "nul.bin": b"\0" * 5_000,
    f"{HTML.replace('/', '!')[:200]}.js": HTML.encode(),
    "quotes' onclick=attacked=1 \"x.yaml": f"a: &x [*x, '{HTML}'\n".encode(),
    "data.json": HTML.encode(),
    "page.html": HTML.encode(),
    "picture.svg": HTML.encode(),
}


class HostileProposer:
    """Proposes candidates whose names, reasons and files are attacks."""

    async def propose(self, view: View, count: int) -> Proposed:
        names = (ALL, *POLLUTION, *ADDRESSES, HEBREW, "n" * 100_000, "ok")
        made = [
            Proposal(
                files={**SOURCES, "number.txt": str(number).encode()},
                name=name,
                parents=(view.parent, ALL),
                hypothesis=ALL + "h" * 20_000,
                components=(ALL, *POLLUTION),
            )
            for number, name in enumerate(names)
        ]
        usage = Usage(tokens_in=10**12, tokens_out=1, dollars=1e12, seconds=1e9)
        return Proposed(
            proposals=tuple(made[:count]),
            usage=usage,
            transcript=ALL + "\n" + "t" * 2_000_000,
            notes=(ALL,),
        )


class HostileExecutor(StubExecutor):
    """Gives every trial a score or a fault at once, with a trace that attacks."""

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared(fault=_refused(candidate), trace=json.dumps(ALL))

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared(state=json.dumps(ALL))

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        return _act(trial)


def _act(trial: Trial) -> Result:
    luck = chance(*map(repr, trial.cell))
    trace = TRACES[int(chance("trace", *map(repr, trial.cell)) * len(TRACES))]
    usage = Usage(tokens_in=10**12, tokens_out=3, dollars=1e9, seconds=1e8)
    if luck < 0.2 and trial.candidate not in STARTS:
        fault = Fault(blame=Blame.CANDIDATE, kind=ALL, reason=ALL + "r" * 20_000)
        return Result(fault=fault, usage=usage, trace=trace)
    return Result(score=round(luck, 3), usage=usage, trace=trace)


def _refused(candidate: Candidate) -> Fault | None:
    if candidate.name != "toString":
        return None
    return Fault(blame=Blame.CANDIDATE, kind=ALL, reason=ALL)


def hostile_run(folder: Path) -> Path:
    """A finished run of hostile candidates on hostile tasks."""
    half = len(TASKS) // 2
    pool = Pool.grouped({ALL: list(TASKS[:half]), "__proto__": list(TASKS[half:])})
    # The names of starting harnesses are checked; a hostile program would not.
    unchecked = patch("coevolve.search.loop.check_opening")
    with RunStore.create(folder) as store, unchecked:
        open_run(
            store,
            name=ALL,
            settings=Settings(rounds=1, candidates=20, seed=7, rescore=True),
            selector=Selector(pool, fraction=0.6, seed=7),
            starts={name: {**SOURCES, "n.txt": repr(name).encode()} for name in STARTS},
            test=Pool([ALL, "constructor"]),
        )
        executor = HostileExecutor()
        asyncio.run(Search(store, executor, HostileProposer(), pause=0.0).run())
    return folder
