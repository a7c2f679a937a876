"""What fuzzing has found stays fixed: each of these once raised an error that is not ours."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks.base import _signatures
from coevolve.benchmarks.textclass.blocks.failure_findings import _trace
from coevolve.errors import CoevolveError
from coevolve.store.database import PAGE
from coevolve.store.layout import Layout
from coevolve.store.raw_pages import _LEAST_LOCAL, RawPages
from tests.fuzz.examination import bounded
from tests.fuzz.journal_targets import _journal
from tests.fuzz.model_targets import _COMPLETION, _HEADER, _RECORDED, _gguf_sample
from tests.fuzz.targets import TARGETS
from tests.fuzz.user_targets import _TOML

READ = {target.name: target.read for target in TARGETS}
DEEP = b"[" * 100_000
EVENT = {key: value for key, value in _journal()[7].items() if key != "clock"}


def recording(*lines: Any) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def weights(old: bytes, new: bytes) -> bytes:
    assert old in _gguf_sample()
    return _gguf_sample().replace(old, new, 1)


FOUND: list[tuple[str, Any, str]] = [
    ("configuration file", b"a = " + DEEP, "not valid TOML"),
    ("configuration file", b"a = " + b"9" * 5_000, "not valid TOML"),
    (
        "configuration file",
        _TOML.partition(b"[budget]")[0] + b"[budget]\ntrials = " + b"9" * 400,
        "budget trials must be at most 1e[+]18",
    ),
    (
        "requests to the model",
        {
            "prompt": "a",
            "response_format": {"type": "json_schema", "json_schema": {"a": math.inf}},
        },
        "response_format must be JSON",
    ),
    (
        "errors of a service",
        {"status_code": 429, "litellm_response_headers": {"retry-after": {"a": 1}}, "said": "no"},
        "no",
    ),
    ("model weights", weights(bytes(range(40)), b"\0\x7c" + bytes(range(38))), "not finite"),
    ("HTTP of the embedded model", b"HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "cannot be read"),
    (
        "HTTP of the embedded model",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + DEEP,
        "cannot be read",
    ),
    (
        "HTTP of the embedded model",
        b'HTTP/1.1 500 Bad\r\nContent-Length: 14\r\n\r\n{"error": "a"}',
        "failed, 500",
    ),
    ("answers of the embedded model", (("/apply-template", {}), 0), "unexpected answer"),
    ("answers of the embedded model", (("/tokenize", {"tokens": [5]}), 1), "unexpected answer"),
    ("answers of the embedded model", (("/completion", None), 0), "unexpected answer"),
    (
        "answers of the embedded model",
        (("/completion", {**_COMPLETION, "content": 5}), 0),
        "unexpected answer",
    ),
    (
        "answers of the embedded model",
        (("/completion", {**_COMPLETION, "completion_probabilities": []}), 2),
        "any probability",
    ),
    ("recorded calls", recording({**_HEADER, "model": []}), "damaged in line 1"),
    ("recorded calls", recording({"model": "m1", "identity": 5}), "damaged in line 1"),
    ("recorded calls", recording(_HEADER, {**_RECORDED, "request": {}}), "damaged in line 2"),
    ("recorded calls", recording(_HEADER, {**_RECORDED, "reply": []}), "damaged in line 2"),
    ("recorded calls", recording(_HEADER) + DEEP + b"\n", "damaged in line 2"),
    ("rows of the cache", b"", "cannot be read"),
    ("rows of the cache", b"[]", "cannot be read"),
    ("rows of the cache", b'{"text": 5}', "cannot be read"),
    ("tasks_file", ("json", b"\x80"), "UTF-8"),
    ("tasks_file", ("txt", b"\x80"), "UTF-8"),
    ("tasks_file", ("json", DEEP), "not JSON"),
    ("the published Law set", DEEP, "not JSON"),
    ("folder of a data set", ("task.json", DEEP, b'{"question": "a", "answer": "b"}'), "read"),
    ("outcome matrices", ("jsonl", DEEP), "line 1 is not JSON"),
    ("events of a run", (7, 0, {**EVENT, "clock": 0.0, "type": []}), "unknown type"),
    ("events of a run", (7, 0, EVENT), "cannot be applied"),
    ("edits", "<<<<<<< SEARCH\nz = 1\n=======\nz = 2\n>>>>>>> REPLACE\n", "does not match"),
    ("model weights", weights(b"\x05" + bytes(7) + b"small", b"\xff" * 6 + b"\0\0"), "ends early"),
    ("model weights", weights(b"\x04\0\0\0\x20\0\0\0", b"\x04" + bytes(7)), "alignment"),
    ("model weights", weights(b"\x04\0\0\0\x20\0\0\0", b"\x04\0\0\0" + b"\xff" * 4), "alignment"),
    ("model weights", weights(b"weights\x01", b"weights\xff"), "255 dimensions"),
    ("model weights", weights(b"\x03" + bytes(11), b"\x03\0\0\0" + b"\xff" * 8), "at byte"),
    ("model weights", _gguf_sample()[:-1], "ends within"),
    (
        "model weights",
        weights(
            b"\x09\0\0\0\x09\0\0\0\x01" + bytes(7),
            b"\x09\0\0\0" + (b"\x09\0\0\0\x01" + bytes(7)) * 5_000,
        ),
        "unknown type 9",
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "message"), FOUND, ids=[f"{n}-{name}" for n, (name, *_) in enumerate(FOUND)]
)
def test_it_is_refused_with_an_error_of_ours(name: str, value: Any, message: str) -> None:
    with bounded(), pytest.raises(CoevolveError, match=message):
        READ[name](value)


def test_what_follows_a_compressed_reply_is_ignored() -> None:
    body = gzip.compress(bytes(10**6), mtime=0)
    with bounded():
        READ["bodies of a service"]((200, b"gzip", b"", [body + b"rest", b"more"]))


def test_a_trace_that_is_too_deep_gives_no_finding() -> None:
    class Seen:
        def trace(self, name: str, task: str) -> str:
            return DEEP.decode()

    view: Any = Seen()
    assert _trace(view, "new", "t1") is None


def test_a_default_that_is_too_deep_has_no_signature() -> None:
    source = f"def answer(task={'-' * 2_000}1): ..."
    compile(source, "harness.py", "exec")  # it is Python
    assert list(_signatures(source)) == []


def test_a_circle_of_pages_ends(tmp_path: Path) -> None:
    size = _LEAST_LOCAL + (PAGE - 4) * 2**40  # of the line; this much of it is on its own page
    varint = bytes(0x80 | size >> 8 >> 7 * place & 0x7F for place in reversed(range(8)))
    cell = varint + bytes([size & 0xFF, 1]) + b"x" * _LEAST_LOCAL + (3).to_bytes(4)
    leaf = bytearray(PAGE)
    leaf[0], leaf[4], leaf[9] = 0x0D, 1, 100
    leaf[100 : 100 + len(cell)] = cell
    circle = (3).to_bytes(4) + bytes(PAGE - 4)
    layout = Layout(tmp_path)
    layout.journal.write_bytes(bytes(PAGE) + leaf + circle)
    with bounded(), RawPages(layout) as pages:
        assert list(pages.lines()) == []
