"""Trials with their traces, as `coevolve show CANDIDATE --on TASK` prints them."""

import io
from typing import Any

from rich.console import Console

from coevolve.cli.trials import print_trials

TRIAL = {
    "candidate": "nearest",
    "task": "desk-007",
    "split": "validation",
    "trial": 0,
    "score": 0.0,
    "fault": "",
    "reason": "",
    "tokens_in": 30,
    "tokens_out": 1,
    "dollars": 0.0,
    "seconds": 0.25,
}


def printed(**changes: Any) -> str:
    file = io.StringIO()
    print_trials(Console(file=file, width=60, highlight=False), [TRIAL | changes])
    return file.getvalue()


def test_prompt_and_answer_are_readable() -> None:
    call = {"prompt": "Question: [a]?\nAnswer:", "choices": ["x", "y"], "answer": {"text": "x"}}
    trace = {"question": "[a]?", "answer": "", "gold": "y", "correct": False, "calls": [call]}
    text = printed(content={"trace": trace, "output": "hm\n"})
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("nearest on desk-007  score 0, 0.25s, 31 tokens\n")
    assert ["question", "[a]?"] in lines
    assert ["answer", '""'] in lines
    assert ["correct", "false"] in lines
    assert ["calls", "prompt", "Question:", "[a]?"] in lines
    assert ["choices", "x,", "y"] in lines
    assert ["output", "hm"] in lines
    assert all(len(line) <= 60 for line in text.splitlines())


def test_a_trial_that_broke_down_says_why() -> None:
    text = printed(score=None, fault="ModelUnavailable", reason="no answer", content=None)
    assert "score missing" in text
    assert "ModelUnavailable: no answer" in text
    assert "No trace." in text


def test_a_trace_may_be_any_text() -> None:
    assert "trace  plain [words]" in printed(content={"trace": "plain [words]"})
    assert "cut off {" in printed(content="cut off {")
