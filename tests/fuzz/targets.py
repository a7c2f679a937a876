"""The fuzz targets: one for every parser of what others write.

Candidates, proposers, model servers and users write what these functions read. Whatever it is, a
function returns, or raises an error of our own (`CoevolveError`), soon and within little memory.
"""

import asyncio
import functools
import gzip
import io
import json
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
from hypothesis import strategies as st

from coevolve.analysis.matrix_files import read_matrix
from coevolve.benchmarks.base import _signatures, make_pool
from coevolve.benchmarks.benchmark_settings import read_tasks
from coevolve.benchmarks.command import read_score
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import read_harness
from coevolve.benchmarks.textclass.blocks.failure_findings import _trace as finding_trace
from coevolve.benchmarks.textclass.data_sets import read_own, read_rows
from coevolve.benchmarks.textclass.evaluators import (
    evaluate_label,
    evaluate_law,
    evaluate_s2d,
    evaluate_uspto,
)
from coevolve.benchmarks.textclass.published_sets import law_split
from coevolve.core.events import sealed
from coevolve.core.selector import Selector
from coevolve.executors.channel import pack, prepared_from_json, result_from_json, worker_inbox
from coevolve.executors.isolation.execution import Executed
from coevolve.executors.isolation.framing import candidate_inbox, packed
from coevolve.executors.isolation.harness_calls import checked, converse, reported
from coevolve.executors.isolation.launch import Limits
from coevolve.executors.local import _read as read_result
from coevolve.executors.worker_process import stated_usage
from coevolve.formatting import csv_cell, json_text, one_line, visible
from coevolve.models.call_recording import ReplayProvider
from coevolve.models.embedded.embedded_provider import EmbeddedProvider
from coevolve.models.embedded.gguf import requantise
from coevolve.models.embedded.model_process import _parsed, _refusal
from coevolve.models.embedded.scoring import Tokens
from coevolve.models.gateway import _checked as checked_reply
from coevolve.models.hosted import HostedProvider
from coevolve.models.hosted_service import Service, understood
from coevolve.models.hosted_service import _retry_after as retry_after
from coevolve.models.provider import Message, ModelReply, ModelRequest, Sampling
from coevolve.models.reply_limits import MOST_BYTES, _limit_reply
from coevolve.models.request_payload import NAMES, read_request, read_texts
from coevolve.models.response_cache import ResponseCache, _seal
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
from coevolve.proposers.llm.prompt_text import shortened
from coevolve.proposers.llm.reply_blocks import is_program
from coevolve.proposers.llm.reply_drafts import read_reply
from coevolve.proposers.proposal_folder import FORM, collect, read_form
from coevolve.proposers.scripted import first_line
from coevolve.proposers.workspace.workspace import _readable
from coevolve.redaction import Redaction
from coevolve.runs.config import RunConfig, read_config
from coevolve.search.effects import fold
from coevolve.search.leaks import LeakScan, Secret
from coevolve.search.proposal import as_proposed
from coevolve.service_words import meaning_of
from coevolve.store import RunStore
from coevolve.store.layout import Layout
from coevolve.store.lock import _signature
from coevolve.store.log_frames import log_damage
from coevolve.store.raw_pages import RawPages
from tests.fuzz.inputs import ANY_TEXT, VALUES, changed, json_bytes, spoiled, texts
from tests.proposers.command import samples
from tests.proposers.views import view


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parser, who writes what it reads, and inputs for it."""

    name: str
    written_by: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any], object]


_MEMORY = Path("/dev/shm")


@functools.cache
def _scratch() -> Path:
    """A folder of this process, in memory where there is one."""
    folder = tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def _file(name: str, data: bytes) -> Path:
    path = _scratch() / name
    path.write_bytes(data)
    return path


# Messages of candidates and workers.

CALL = 7
_ANSWERS = (
    {"id": CALL, "answer": [1, "a"]},
    {"id": CALL, "error": {"type": "KeyError", "text": "'x'", "where": "harness.py, line 3"}},
    {"id": CALL, "large": "5,000,000 bytes"},
    {"id": CALL, "unsendable": "a set"},
    {"ask": "model", "args": ["hello"], "kwargs": {"max_tokens": 5}},
)


class _Forged:
    """A sandbox whose candidate writes any bytes to its pipe."""

    unread = False

    def __init__(self, data: bytes) -> None:
        self._inbox = candidate_inbox(most=1 << 20)
        self._inbox.feed(data)

    def receive(self, deadline: float, late: Callable[[], Exception]) -> dict[str, Any]:
        message = self._inbox.take()
        if message is None:
            raise late()
        return message

    def send(self, message: object) -> None:
        packed(message)

    def watched(self) -> Any:
        return closing(io.BytesIO())


def _framed(bodies: Sequence[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def _converse(data: bytes) -> None:
    def model(prompt: str, *, max_tokens: int = 9) -> str:
        return str(prompt)

    sandbox: Any = _Forged(data)
    message = converse(sandbox, CALL, Limits(), {"model": model})
    if "answer" in message:
        checked(message["answer"], float)
    raise reported(message, Limits())


def _worker(data: bytes) -> None:
    inbox = worker_inbox()
    inbox.feed(data)
    while (message := inbox.take()) is not None:
        pack(message)


_DONE = (
    {"usage": {"tokens_in": 5, "tokens_out": 1, "dollars": 0.1, "seconds": 2.5}, "value": 0.5},
    {
        "usage": {"tokens_in": 5},
        "fault": {
            "blame": "candidate",
            "kind": "memory",
            "reason": "-",
            "advice": "",
            "shared": False,
        },
        "trace": "{}",
    },
)


def _done(message: Any) -> None:
    if isinstance(message, dict):  # as every message is
        read_result(result_from_json, message)
        read_result(prepared_from_json, message)


def _score(data: bytes) -> None:
    read_score(Executed(stdout=data, stderr=data[:200], code=len(data) % 3, seconds=0.1), "score")


_SCORES = (
    {"score": 0.5, "usage": {"tokens_in": 5, "dollars": 0.1}, "trace": {"a": 1}},
    {"missing": "no network"},
    {"error": "wrong"},
)

# Requests of harnesses, and answers of model servers.

_REQUESTS = (
    {"prompt": "Is water wet?", "choices": ["yes", "no"], "scores": True, "max_tokens": 5},
    {
        "messages": [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": "Is water wet?"},
        ],
        "temperature": 0.5,
        "stop": ["\n"],
        "sample": 2,
    },
)


def _request(payload: Any) -> None:
    if isinstance(payload, dict):
        request = read_request(payload, Sampling())
        request.key({"name": "m"})
        request.conversation()
    read_texts(payload)


_HOSTED = (
    {
        "choices": [
            {
                "finish_reason": "stop",
                "message": {
                    "content": "<|channel|>final<|message|>Yes.<|end|>",
                    "provider_specific_fields": {"refusal": None},
                    "reasoning_content": "Well.",
                    "tool_calls": None,
                },
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    },
    {"choices": [{"finish_reason": "length", "message": {"content": None}}], "usage": None},
)
_ASKED = ModelRequest(prompt="Is water wet?", choices=("yes", "no"), max_tokens=9, stop=("\n",))


def _as_object(value: Any) -> Any:
    """JSON as LiteLLM gives it: objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: _as_object(part) for key, part in value.items()})
    return [_as_object(part) for part in value] if isinstance(value, list) else value


def _hosted(answer: Any) -> None:
    async def completion(**_: Any) -> Any:
        return _as_object(answer)

    provider = HostedProvider("served", base_url="http://localhost:1/v1", key="sk-0123456789")
    provider._library = SimpleNamespace(
        acompletion=completion,
        supports_response_schema=lambda name: False,
        token_counter=lambda model, text: len(text),
    )
    for request in (_ASKED, ModelRequest(prompt="Is water wet?", max_tokens=9)):
        reply = asyncio.run(provider.complete(request))
        reply.to_json()
        checked_reply(reply, request)
        assert reply.usage.tokens >= 0


_FAILURES = (
    {
        "status_code": 429,
        "body": {"error": {"message": "slow down", "param": "max_tokens", "code": "x"}},
        "litellm_response_headers": {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"},
        "said": "Request too large: maximum context length is 8192 tokens",
    },
    {"status_code": 401, "body": None, "said": "Incorrect API key provided: sk-0123456789"},
)


def _failed(given: Any) -> None:
    """Understand an error whose every part a service chose."""
    if isinstance(given, dict):
        error = RuntimeError(given.pop("said", ""))
        headers = given.get("litellm_response_headers")
        if not isinstance(headers, dict):  # LiteLLM makes them
            given.pop("litellm_response_headers", None)
        for name, value in given.items():
            setattr(error, name, value)
        service = Service(
            name="served", base_url="http://localhost:1/v1", key="sk-0123456789", variable="KEY"
        )
        raise understood(error, service, _ASKED)


class _Chunks(httpx.AsyncByteStream):
    """A body in pieces, as a service sends it."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


def _body(given: tuple[int, bytes, bytes, Sequence[bytes]]) -> None:
    """Read a reply with any status, encoding, address and body."""
    status, encoding, location, chunks = given
    response = httpx.Response(
        status,
        headers=[(b"Content-Encoding", encoding), (b"Location", location)],
        stream=_Chunks(chunks),
        request=httpx.Request("POST", "http://localhost:1/v1"),
    )

    async def read() -> int:
        await _limit_reply(response)
        stream: Any = response.stream
        return sum([len(part) async for part in stream])

    assert asyncio.run(read()) <= MOST_BYTES


class _Server:
    """A server of the embedded model that gives one other answer than expected."""

    def __init__(self, path: str, answer: Any) -> None:
        self._path, self._answer = path, answer

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == self._path:
            return self._answer
        if path == "/apply-template":
            return {"prompt": "user: Is water wet?"}
        if path == "/tokenize":
            return {"tokens": [one if one == -1 else 5 for one in body["content"]]}
        return _COMPLETION


_COMPLETION = {
    "content": "yes",
    "tokens": [5],
    "stop_type": "eos",
    "tokens_predicted": 1,
    "timings": {"cache_n": 3},
    "completion_probabilities": [
        {
            "id": 5,
            "logprob": -0.1,
            "top_logprobs": [{"id": 5, "logprob": -0.1}],
            "top_probs": [{"id": 5, "prob": 0.9}, {"id": 6, "prob": 0.1}],
        }
    ],
}
_EMBEDDED = st.one_of(
    st.tuples(st.just("/apply-template"), changed({"prompt": "hello"})),
    st.tuples(st.just("/tokenize"), changed({"tokens": [5, 6, -1, 5, 7, -1, 5, -1]})),
    st.tuples(st.just("/completion"), changed(_COMPLETION)),
)
_EMBEDDED_REQUESTS = (
    ModelRequest(messages=(Message("user", "Is water wet?"),), max_tokens=9),
    ModelRequest(prompt="Is water wet?", choices=("yes", "no"), max_tokens=9),
    ModelRequest(prompt="Is water wet?", choices=("yes", "no"), scores=True, max_tokens=9),
)


def _embedded(given: tuple[tuple[str, Any], int]) -> None:
    (path, answer), number = given
    provider = EmbeddedProvider(slots=1, threads=1)
    server: Any = _Server(path, answer)
    provider._process, provider._tokens = server, Tokens(server)
    request = _EMBEDDED_REQUESTS[number]
    checked_reply(asyncio.run(provider.complete(request)), request)
    asyncio.run(provider.count(["hello"]))


_HTTP = b'HTTP/1.1 400 Bad\r\nContent-Length: 31\r\n\r\n{"error":{"type":"x","message":1}}'


def _wire(data: bytes) -> None:
    status, answer = _parsed(data)
    raise _refusal(status, answer)


_HEADER = {"model": "m1", "identity": {"name": "small"}, "window": 99, "scores": True}
_RECORDED = {
    "model": "m1",
    "request": ModelRequest(prompt="Is water wet?", max_tokens=9).to_json(),
    "reply": ModelReply(text="yes", finish="stop", tokens_in=9, tokens_out=1).to_json(),
    "cached": False,
}
_LINES = (_HEADER, _RECORDED, {"model": "m1", "counts": {"ab": 3}})


def _replay(data: bytes) -> None:
    provider = ReplayProvider(_file("calls.jsonl", data))
    asyncio.run(provider.complete(ModelRequest(prompt="Is water wet?", max_tokens=9)))


def _lines(values: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@functools.cache
def _cache() -> ResponseCache:
    return ResponseCache(_scratch() / "cache.db")


def _cached(reply: bytes) -> None:
    key = "ab" * 32
    cache = _cache()
    cache._connection.execute("DELETE FROM replies")
    row = (bytes.fromhex(key), reply, _seal(key, reply))
    cache._connection.execute("INSERT INTO replies VALUES (?, ?, ?)", row)
    cache.get(key)


# What proposers write.

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
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
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
    with Recording(_scratch() / "log", line=ClaudeMeter().line) as recording:
        recording.hide(["sk-0123456789abcdef"])
        for piece in pieces:
            recording.out.feed(piece)
            recording.err.feed(piece)
    recording.transcript.encode()


@functools.cache
def _scan() -> LeakScan:
    secret = Secret(text="Which metal is liquid at room temperature?", answer="mercury, as Hg")
    return LeakScan({"q-17": secret}, sealed={"q-18": Secret(text="Who wrote the first opera?")})


_LEAKS = (
    b"x = 'Which metal is ' 'liquid at room temperature?'\ny = b'\\x57'\n",
    b"V2hpY2ggbWV0YWwgaXMgbGlxdWlkIGF0IHJvb20gdGVtcGVyYXR1cmU/",
    b'{"q": ["Which metal", {"a": "\\u0057"}]}\n',
    b"x\x9c\x0b\xcf\xc8L\xceP\xc8M-I\xccQ\xc8,V\xc8\xc9,,\xcdLQH,Q(\xca\xcf\xcfU(I\xcd-H-J",
)

# Files of users.

_TOML = b"""
[run]
name = "mine"
seed = 5
[search]
rounds = 3
candidates = 2
fraction = 0.3
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["a", "b"]
[proposer]
kind = "scripted"
folders = ["c"]
[model]
name = "openai/gpt"
key = "KEY"
[budget]
trials = 100
"""


def _configurations() -> list[Any]:
    path = Path(__file__).parents[1] / "runs" / "recorded_configurations.jsonl"
    return [json.loads(line)["config"] for line in path.read_text().splitlines()]


def _from_json(data: Any) -> None:
    if isinstance(data, dict):
        RunConfig.from_json(data, source="recorded")


def _tasks(given: tuple[str, bytes]) -> None:
    ending, data = given
    make_pool(read_tasks(_file(f"tasks.{ending}", data)))


def _folder(given: tuple[str, bytes, bytes]) -> None:
    name, words, rows = given
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
        good = b'{"question": "Wet?", "answer": "yes"}\n'
        for split, data in {"train": rows, "val": good}.items():
            (Path(folder) / f"{split}.jsonl").write_bytes(data)
        (Path(folder) / name).write_bytes(words)
        read_own(Path(folder))


def _law(data: bytes) -> None:
    law_split(data, "3-3.json")


@functools.cache
def _npz() -> bytes:
    file = io.BytesIO()
    outcomes = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 1]])
    np.savez(file, outcomes=outcomes, tasks=["a", "b", "c"], cost=outcomes * 0.1)
    return file.getvalue()


@functools.cache
def _selector_events() -> list[dict[str, Any]]:
    selector = Selector(make_pool(["a", "b"]), protocol="full")
    for start in ("start-a", "start-b"):
        selector.tell_full(start, {"a": 1, "b": 0})
    (assignment,) = selector.ask(["new"])
    selector.tell(assignment, {"a": 1, "b": 1})
    return list(selector.events)


def _resealed(events: Sequence[Any]) -> list[dict[str, Any]]:
    """Events with the seals that belong to them, as if they had been written like this."""
    found: list[dict[str, Any]] = []
    before = ""
    for seq, event in enumerate(events):
        body = event if isinstance(event, dict) else {"value": event}
        kind = body.get("type", "noted")
        rest = {key: part for key, part in body.items() if key not in ("seq", "type", "seal")}
        line = sealed(seq, kind, rest, before)
        before = line.event["seal"]
        found.append(json.loads(line.text))
    return found


def _selector(events: Any) -> None:
    if isinstance(events, list):
        written = _resealed(events)
        Selector.from_events(written)
        _matrix(("jsonl", _lines(written)))


def _matrix(given: tuple[str, bytes]) -> None:
    ending, data = given
    read_matrix(_file(f"outcomes.{ending}", data))


def _journal() -> list[dict[str, Any]]:
    path = Path(__file__).parents[1] / "search" / "journals" / "schema-1.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def _run_events(given: tuple[int, int, Any]) -> None:
    """Fold a run in which one event is another, up to some events later."""
    at, later, event = given
    events = _journal()
    at %= len(events)
    fold(_resealed([*events[:at], event, *events[at + 1 : at + 1 + later]]))


@st.composite
def _one_event(draw: st.DrawFn) -> tuple[int, int, Any]:
    events = _journal()
    at = draw(st.integers(0, len(events) - 1))
    return at, draw(st.integers(0, 3)), draw(changed(events[at]))


def _rows(given: tuple[int, bytes]) -> None:
    """Read a journal in which one row has any text."""
    at, text = given
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
        with RunStore.create(Path(folder)) as store:
            store.append([("noted", {"text": number}) for number in range(4)])
        with closing(sqlite3.connect(Path(folder) / "run.db", isolation_level=None)) as file:
            file.execute("DROP TRIGGER IF EXISTS no_update")
            file.execute("UPDATE events SET text = ? WHERE seq = ?", (text, at))
        with RunStore.read(Path(folder)) as store:
            list(store.skim())
            list(store.events())


@functools.cache
def _database() -> bytes:
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
        with RunStore.create(Path(folder)) as store:
            store.append([("noted", {"text": "x" * 9_000})])
            store.append([("noted", {"text": number}) for number in range(9)])
        return (Path(folder) / "run.db").read_bytes()


def _pages(given: tuple[Sequence[tuple[int, bytes]], bytes]) -> None:
    patches, log = given
    data = bytearray(_database())
    for at, patch in patches:
        at %= len(data)
        data[at : at + len(patch)] = patch
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
        layout = Layout(Path(folder))
        layout.journal.write_bytes(data)
        layout.log.write_bytes(log)
        with RawPages(layout) as pages:
            for _ in pages.lines():
                pass
        log_damage(layout.log, layout.log)


def _owner(data: bytes) -> None:
    with _file("lock", data).open("rb") as file:
        _signature(file.fileno())


def _gguf_sample() -> bytes:
    def text(value: bytes) -> bytes:
        return len(value).to_bytes(8, "little") + value

    def number(value: int, size: int = 4) -> bytes:
        return value.to_bytes(size, "little")

    header = b"GGUF" + number(3) + number(1, 8) + number(3, 8)
    header += text(b"general.alignment") + number(4) + number(32)
    header += text(b"name") + number(8) + text(b"small")
    header += text(b"list") + number(9) + number(9) + number(1, 8) + number(4) + number(2, 8)
    header += number(1) + number(2)
    header += text(b"weights") + number(1) + number(64, 8) + number(3) + number(0, 8)
    return header + b"\0" * (-len(header) % 32) + bytes(range(40))


def _gguf(data: bytes) -> None:
    requantise(_file("small.gguf", data), _scratch() / "new.gguf")


def _harness(data: bytes) -> None:
    read_harness(data, SyntheticWorld(pools={"all": 5}))


def _evaluated(text: str) -> None:
    for evaluate in (evaluate_label, evaluate_law, evaluate_s2d, evaluate_uspto):
        for gold in ("yes", "罪名:盗窃", "CCO.CC"):
            evaluate(text, gold)


def _traces(text: str) -> None:
    shortened(text, 200)
    _readable(text)
    shown: Any = SimpleNamespace(trace=lambda name, task: text)
    finding_trace(shown, "new", "t1")


def _shown(value: Any) -> None:
    json_text(value, indent=1, ascii=False)
    text = str(value)
    for show in (visible, one_line, csv_cell):
        assert isinstance(show(text), str)
    Redaction(["sk-0123456789abcdef", "ü" * 20]).text(text)
    meaning_of(text, 400)
    retry_after({"retry-after": text})
    stated_usage({"usage": value})


_TRACE = '{"trace": {"answer": "no", "gold": "yes", "calls": [{"a": 1}]}, "output": "hello"}'

_FRAMES = st.lists(json_bytes(*_ANSWERS), max_size=4).map(_framed)
_NESTED = st.lists(json_bytes(*_LINES).map(lambda data: data + b"\n"), max_size=5)

TARGETS: tuple[Target, ...] = (
    Target(
        name="messages of a sandbox",
        written_by="candidate",
        inputs=_FRAMES | spoiled(_framed([json.dumps(one).encode() for one in _ANSWERS])),
        read=_converse,
    ),
    Target(
        name="messages of a worker",
        written_by="worker",
        inputs=_FRAMES | spoiled(pack({"op": "check"})),
        read=_worker,
    ),
    Target(name="results of a worker", written_by="worker", inputs=changed(*_DONE), read=_done),
    Target(
        name="scores that a command prints",
        written_by="candidate",
        inputs=json_bytes(*_SCORES).map(lambda data: b"log\n" + data),
        read=_score,
    ),
    Target(
        name="requests to the model",
        written_by="candidate",
        inputs=changed(*_REQUESTS)
        | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5)
        | VALUES,
        read=_request,
    ),
    Target(
        name="answers of a service", written_by="model", inputs=changed(*_HOSTED), read=_hosted
    ),
    Target(
        name="errors of a service", written_by="model", inputs=changed(*_FAILURES), read=_failed
    ),
    Target(
        name="bodies of a service",
        written_by="model",
        inputs=st.tuples(
            st.sampled_from([200, 307, 500]),
            st.sampled_from([b"gzip", b"deflate", b"identity", b"br", b""]),
            spoiled(b"https://elsewhere:8080/v1?a=b", b"//x", b"http://[::1]:99999/"),
            st.lists(
                spoiled(gzip.compress(b'{"a": 1}', mtime=0), gzip.compress(bytes(10**6), mtime=0)),
                max_size=3,
            ),
        ),
        read=_body,
    ),
    Target(
        name="answers of the embedded model",
        written_by="model",
        inputs=st.tuples(_EMBEDDED, st.integers(0, 2)),
        read=_embedded,
    ),
    Target(
        name="HTTP of the embedded model",
        written_by="model",
        inputs=spoiled(_HTTP)
        | json_bytes({"error": {"type": "exceed_context_size_error", "message": "too long"}}).map(
            lambda body: b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        ),
        read=_wire,
    ),
    Target(
        name="recorded calls",
        written_by="user",
        inputs=_NESTED.map(b"".join)
        | st.lists(changed(*_LINES), max_size=4).map(lambda more: _lines([_HEADER, *more]))
        | spoiled(_lines(_LINES)),
        read=_replay,
    ),
    Target(
        name="rows of the cache",
        written_by="user",
        inputs=json_bytes(_RECORDED["reply"]),
        read=_cached,
    ),
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
    Target(
        name="files of candidates, for leaks",
        written_by="candidate",
        inputs=st.dictionaries(
            st.sampled_from(["harness.py", "a.json", "b.txt", "Which metal is liquid at room"]),
            spoiled(*_LEAKS) | st.binary(max_size=200),
            max_size=3,
        ),
        read=lambda files: _scan().scan(files),
    ),
    Target(
        name="synthetic harnesses",
        written_by="candidate",
        inputs=json_bytes({"name": "h", "skills": [0.5, 0.5, 0.1], "mended": [1]}),
        read=_harness,
    ),
    Target(
        name="answers to classify",
        written_by="candidate",
        inputs=texts('{"final_answer": "yes"}', "```json\n{}\n```", "[DIAGNOSIS]flu[/DIAGNOSIS]")
        | json_bytes({"final_answer": "yes"}).map(lambda data: data.decode(errors="replace")),
        read=_evaluated,
    ),
    Target(
        name="traces",
        written_by="candidate",
        inputs=texts(_TRACE)
        | json_bytes(json.loads(_TRACE)).map(lambda data: data.decode(errors="replace")),
        read=_traces,
    ),
    Target(name="texts to show", written_by="candidate", inputs=VALUES | ANY_TEXT, read=_shown),
    Target(
        name="configuration file",
        written_by="user",
        inputs=spoiled(_TOML) | st.binary(max_size=60),
        read=lambda data: read_config(_file("mine.toml", data)),
    ),
    Target(
        name="recorded configurations",
        written_by="user",
        inputs=changed(*_configurations()),
        read=_from_json,
    ),
    Target(
        name="tasks_file",
        written_by="user",
        inputs=st.tuples(
            st.sampled_from(["json", "txt"]),
            json_bytes(["a", "b"], {"easy": ["a"], "hard": ["b", "c"]}),
        ),
        read=_tasks,
    ),
    Target(
        name="rows of a data set",
        written_by="user",
        inputs=json_bytes({"question": "Wet?", "answer": "yes"}),
        read=lambda data: read_rows(data, Path("train.jsonl")),
    ),
    Target(
        name="folder of a data set",
        written_by="user",
        inputs=st.tuples(
            st.sampled_from(["task.toml", "task.json"]),
            spoiled(b'instructions = "Classify."\nlabels = ["yes", "no"]\n')
            | json_bytes({"instructions": "Classify.", "labels": ["yes", "no"]}),
            json_bytes({"question": "Wet?", "answer": "yes"}),
        ),
        read=_folder,
    ),
    Target(
        name="the published Law set",
        written_by="user",
        inputs=json_bytes([{"instruction": "a", "question": "b", "answer": "c"}] * 3),
        read=_law,
    ),
    Target(
        name="outcome matrices",
        written_by="user",
        inputs=st.tuples(
            st.sampled_from(["npz", "jsonl"]), spoiled(_npz(), _lines(_selector_events()))
        ),
        read=_matrix,
    ),
    Target(
        name="events of a selector",
        written_by="user",
        inputs=changed(_selector_events()),
        read=_selector,
    ),
    Target(name="events of a run", written_by="user", inputs=_one_event(), read=_run_events),
    Target(
        name="rows of a journal",
        written_by="user",
        inputs=st.tuples(
            st.integers(0, 3), json_bytes({"seq": 1, "type": "noted", "seal": "ab", "text": 1})
        ),
        read=_rows,
    ),
    Target(
        name="pages of a damaged journal",
        written_by="user",
        inputs=st.tuples(
            st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=9))),
            spoiled(b"\x37\x7f\x06\x82" + bytes(28), b""),
        ),
        read=_pages,
    ),
    Target(
        name="owner of a run",
        written_by="user",
        inputs=json_bytes({"pid": 1, "host": "a", "since": "", "command": "coevolve"}),
        read=_owner,
    ),
    Target(
        name="model weights",
        written_by="user",
        inputs=spoiled(_gguf_sample()),
        read=_gguf,
    ),
)
