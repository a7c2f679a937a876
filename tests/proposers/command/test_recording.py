"""The output of an agent is kept within limits and without its secrets."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.proposers.command import agent_process as recording
from coevolve.proposers.command.agent_process import Lines, Recording

SECRET = "sk-abcdef-123"


@given(st.lists(st.sampled_from([b"sk-abc", b"def-123", b"sk-abcdef-123", b"\n", b"x" * 7])))
def test_a_secret_in_pieces_is_never_passed_on(pieces: list[bytes]) -> None:
    passed_on: list[bytes] = []
    lines = Lines(passed_on.append)
    lines.hide([SECRET])
    for piece in pieces:
        lines.feed(piece)
    lines.close()
    assert SECRET.encode() not in b"".join(passed_on)
    assert b"".join(passed_on) == b"".join(pieces).replace(SECRET.encode(), b"[hidden]")


def test_a_line_without_end_comes_in_pieces_that_hold_no_secret() -> None:
    passed_on: list[bytes] = []
    lines = Lines(passed_on.append)
    lines.hide([SECRET])
    for _ in range(200):
        lines.feed(b"x" * 65_530 + SECRET.encode()[:6])
        lines.feed(SECRET.encode()[6:])
        assert len(lines._held) < 5 << 20
    lines.close()
    assert len(passed_on) > 1
    assert SECRET.encode() not in b"".join(passed_on)
    assert b"".join(passed_on).count(b"[hidden]") == 200


def test_secrets_are_hidden_in_the_log_and_the_transcript(tmp_path: Path) -> None:
    lines: list[str] = []
    with Recording(tmp_path / "log", line=lines.append) as record:
        record.hide([SECRET])
        record.out.feed(f"it is {SECRET}\n".encode())
        record.err.feed(SECRET.encode())
    assert lines == ["it is [hidden]"]
    assert record.transcript == "it is [hidden]\n[hidden]" == (tmp_path / "log").read_text()


def test_what_would_command_a_terminal_is_escaped(tmp_path: Path) -> None:
    with Recording(tmp_path / "log", line=lambda line: None) as record:
        record.out.feed("\x1b[2Jred \u202e\n".encode())
    assert record.transcript == "\\x1b[2Jred \\u202e\n" == (tmp_path / "log").read_text()


def test_every_line_of_standard_output_is_passed_on_once(tmp_path: Path) -> None:
    lines: list[str] = []
    with Recording(tmp_path / "log", line=lines.append) as record:
        record.out.feed(b'{"a": 1}\n{"b"')
        record.err.feed(b"warning\n")
        record.out.feed(b": \xff2}\nlast")
    assert lines == ['{"a": 1}', '{"b": \ufffd2}', "last"]
    assert record.transcript == '{"a": 1}\nwarning\n{"b": \ufffd2}\nlast'


def test_the_transcript_is_all_that_was_printed(tmp_path: Path) -> None:
    printed = [b"%09d" % n + b"x" * 99_990 + b"\n" for n in range(300)]
    with Recording(tmp_path / "log", line=lambda _: None) as record:
        for line in printed:
            record.out.feed(line)
    assert record.transcript.encode() == b"".join(printed) == (tmp_path / "log").read_bytes()


def test_a_long_transcript_keeps_its_beginning_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_TRANSCRIPT", 2 << 20)
    with Recording(tmp_path / "log", line=lambda _: None) as record:
        for start in range(0, 500_000, 1000):
            record.out.feed(b"".join(b"%09d\n" % n for n in range(start, start + 1000)))
    assert record.transcript.startswith("000000000\n")
    assert record.transcript.endswith("000499999\n")
    assert "bytes left out" in record.transcript
    assert len(record.transcript) < recording.MOST_TRANSCRIPT + 100


def test_the_log_ends_with_a_word_when_it_is_full(tmp_path: Path) -> None:
    with Recording(tmp_path / "log", line=lambda _: None) as record:
        for _ in range(40):
            record.out.feed(b"x" * ((1 << 20) - 1) + b"\n")
    assert (tmp_path / "log").stat().st_size < recording.MOST_LOG + 100
    assert (tmp_path / "log").read_bytes().endswith(b"the agent continues]\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_log_that_cannot_be_written_does_not_end_the_work() -> None:
    lines: list[str] = []
    with Recording(Path("/dev/full"), line=lines.append) as record:
        record.out.feed(b"one\ntwo\n")
    assert lines == ["one", "two"]
    assert record.transcript == "one\ntwo\n"
