"""What proposers write: agents, models and functions."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import strategies as st

from coevolve.benchmarks.base import _signatures
from coevolve.proposers.command.agent_process import Recording
from coevolve.proposers.command.usage_meters import (
    ClaudeMeter,
    CodexMeter,
    GeminiMeter,
    OpenCodeMeter,
    TrajectoryMeter,
    UsageFile,
    decoded,
)
from coevolve.proposers.llm.edits import apply_edits, read_edits, read_hunks
from coevolve.proposers.llm.reply_blocks import is_program
from coevolve.proposers.llm.reply_drafts import read_reply
from coevolve.proposers.proposal_folder import FORM, collect, read_form
from coevolve.proposers.scripted import first_line
from coevolve.search.proposal import as_proposed
from tests.fuzz.inputs import VALUES, changed, json_bytes, spoiled, texts
from tests.fuzz.target import Target, scratch
from tests.proposers.command import samples
from tests.proposers.views import view

_VIEW = view(candidates={"start": {"harness.py": b"answer = 1"}}, parent="start")
_FORM = {
    "name": "new",
    "parent": "start",
    "parents": ["start"],
    "hypothesis": "It is shorter.",
    "kind": "exploit",
    "components": ["list", "vote"],
}
_PATHS = st.sampled_from(
    ["harness.py", FORM, "files/harness.py", "a/b/c.txt", "standing.json", ".hidden", "x\n.py"]
)


def _proposals(files: Mapping[str, bytes]) -> None:
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        for path, data in files.items():
            target = Path(folder) / "new" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        collect(Path(folder), _VIEW, count=2, source="agent")


_PROPOSAL = {
    **{key: value for key, value in _FORM.items() if key != "parent"},
    "files": {"harness.py": "answer = 42"},
}

_REPLY = """<think>Well.</think>
## Candidate 1: `short-list`
Parent: start
**Hypothesis:** the last example counts most
```python path=harness.py
def answer(task):
    return '''
```
'''
```
```json
{"name": "new", "files": {"harness.py": "x = 1"}}
```
```diff
--- a/harness.py
+++ b/harness.py
@@ -1,2 +1,2 @@
 x = 1
-y = 2
+y = 3
```
"""
_EDIT = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


def _edits(text: str) -> None:
    source = "def f():\n    x = 1\n    y = 2\n"
    apply_edits(source, read_edits(text))
    apply_edits(source, read_hunks(text))


_METERS = (ClaudeMeter, CodexMeter, GeminiMeter, OpenCodeMeter, TrajectoryMeter, UsageFile)
_STREAMS = [
    line
    for stream in (samples.CLAUDE, samples.CODEX, samples.GEMINI, samples.OPENCODE)
    for line in stream.splitlines()
]


def _sources(data: bytes) -> None:
    first_line(data)
    is_program(data.decode(errors="replace"))
    _signatures(data.decode(errors="replace"))


def _meters(data: bytes) -> None:
    for make in _METERS:
        meter = make()
        for line in data.decode("utf-8", "replace").splitlines():
            meter.line(line)
            meter.line(line)
        meter.report(decoded(data))
        assert meter.tokens_in is None or meter.tokens_in >= 0


def _recorded(pieces: Sequence[bytes]) -> None:
    with Recording(scratch() / "log", line=ClaudeMeter().line) as recording:
        recording.hide(["sk-0123456789abcdef"])
        for piece in pieces:
            recording.out.feed(piece)
            recording.err.feed(piece)
    recording.transcript.encode()


TARGETS: tuple[Target, ...] = (
    Target(
        name="folders of proposals",
        written_by="proposer",
        inputs=st.dictionaries(_PATHS, json_bytes(_FORM), max_size=4).filter(
            lambda files: not {"files/harness.py", "files"} <= files.keys()
        ),
        read=_proposals,
    ),
    Target(
        name="proposal.json",
        written_by="proposer",
        inputs=json_bytes(_FORM)
        | json_bytes(_FORM).map(lambda data: b"```json\n" + data + b"\n```"),
        read=read_form,
    ),
    Target(
        name="proposals of a function",
        written_by="proposer",
        inputs=changed([_PROPOSAL]) | VALUES,
        read=as_proposed,
    ),
    Target(
        name="replies of a proposer",
        written_by="proposer",
        inputs=texts(_REPLY, _EDIT, json.dumps({"candidates": [_PROPOSAL]})),
        read=lambda text: [read_reply(text), read_reply(text, cut=True)],
    ),
    Target(name="edits", written_by="proposer", inputs=texts(_EDIT, _REPLY), read=_edits),
    Target(
        name="sources",
        written_by="proposer",
        inputs=spoiled(
            b'"""First."""\ndef f(a: int = 1, *b) -> "x":\n    """Second."""\n',
            b"\xef\xbb\xbf# coding: utf-16\n",
        )
        | st.binary(max_size=60),
        read=_sources,
    ),
    Target(
        name="usage of agents",
        written_by="proposer",
        inputs=json_bytes(*(json.loads(line) for line in _STREAMS)),
        read=_meters,
    ),
    Target(
        name="output of agents",
        written_by="proposer",
        inputs=st.lists(spoiled(b"key sk-0123456789", b"abcdef used\n", b"\x1b[1mx\r\n")),
        read=_recorded,
    ),
)
