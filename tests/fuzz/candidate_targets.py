"""What candidates write, and what their workers pass on."""

import functools
import io
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from coevolve.benchmarks.command import read_score
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import read_harness
from coevolve.benchmarks.textclass.blocks.failure_findings import _trace as finding_trace
from coevolve.benchmarks.textclass.evaluators import (
    evaluate_label,
    evaluate_law,
    evaluate_s2d,
    evaluate_uspto,
)
from coevolve.executors.channel import pack, prepared_from_json, result_from_json, worker_inbox
from coevolve.executors.isolation.execution import Executed
from coevolve.executors.isolation.framing import candidate_inbox, packed
from coevolve.executors.isolation.harness_calls import Conversation, checked, reported
from coevolve.executors.isolation.interruption import Interruption
from coevolve.executors.isolation.launch import Limits
from coevolve.executors.local import _read as read_result
from coevolve.executors.worker_process import stated_usage
from coevolve.formatting import csv_cell, json_text, one_line, visible
from coevolve.models.hosted_service import _retry_after as retry_after
from coevolve.models.provider import ModelRequest, Sampling
from coevolve.models.request_payload import NAMES, read_request, read_texts
from coevolve.proposers.llm.prompt_text import shortened
from coevolve.proposers.workspace.workspace import _readable
from coevolve.redaction import Redaction
from coevolve.search.leaks import LeakScan, Secret
from coevolve.service_words import meaning_of
from tests.fuzz.inputs import ANY_TEXT, VALUES, changed, json_bytes, spoiled, texts
from tests.fuzz.target import Target

CALL = 7
_ANSWERS = (
    {"id": CALL, "answer": [1, "a"]},
    {"id": CALL, "error": {"type": "KeyError", "text": "'x'", "where": "harness.py, line 3"}},
    {"id": CALL, "large": "5,000,000 bytes"},
    {"id": CALL, "unsendable": "a set"},
    {"ask": "model", "number": 1, "args": ["hello"], "kwargs": {"max_tokens": 5}},
    {"ask": "model", "number": 2, "args": [], "kwargs": {}},
    {"cancel": 1},
)


class _Forged:
    """A sandbox whose candidate writes any bytes to its pipe."""

    unread = 0

    def __init__(self, data: bytes) -> None:
        self._inbox = candidate_inbox(most=1 << 20)
        self._inbox.feed(data)

    def receive(
        self,
        deadline: float,
        late: Callable[[], Exception],
        until: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any] | None:
        if until():
            return None
        message = self._inbox.take()
        if message is None:
            raise late()
        return message

    def send(self, message: object) -> None:
        packed(message)

    def wake(self) -> None:
        """Nobody sleeps."""

    def watched(self) -> Any:
        return closing(io.BytesIO())


def _framed(bodies: Sequence[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def _converse(data: bytes) -> None:
    def model(prompt: str, *, max_tokens: int = 9) -> str:
        return str(prompt)

    sandbox: Any = _Forged(data)
    talk = Conversation(sandbox, CALL, Limits(), {"model": model}, Interruption())
    message = talk.at_once() if len(data) % 2 else talk.one_by_one()
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
    {
        "messages": [
            {"role": "system", "content": "Use the tools."},
            {
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": "What is this?",
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Look.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "run", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "run", "content": "a file"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "run", "description": "Runs.", "parameters": {"a": [1]}},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "run"}},
        "parallel_tool_calls": True,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        "reasoning_effort": "low",
        "top_p": 0.5,
        "overflow": "reply",
    },
)


def _request(payload: Any) -> None:
    if isinstance(payload, dict):
        request = read_request(payload, Sampling())
        request.key({"name": "m"})
        [message.to_json() for message in request.conversation()]
        assert ModelRequest.from_json(request.to_json()) == request
        _ = request.agentic, request.texts()
    read_texts(payload)


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
)
