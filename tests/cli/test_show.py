"""Trials with their traces, as `coevolve show CANDIDATE --on TASK` prints them."""

import io
from dataclasses import replace
from typing import Any

from coevolve.cli.console_output import Screen
from coevolve.cli.show_command import print_trials
from coevolve.views.details import TrialDetails
from coevolve.views.outcome_rows import OutcomeRow

OUTCOME = OutcomeRow(
    candidate="nearest",
    round=0,
    task="desk-007",
    pool="desk",
    split="validation",
    trial=0,
    score=0.0,
    missing="",
    fault="",
    reason="",
    tokens_in=30,
    tokens_out=1,
    dollars=0.0,
    seconds=0.25,
    trace="",
)


def printed(*, content: Any, **changes: Any) -> str:
    file = io.StringIO()
    trial = TrialDetails(outcome=replace(OUTCOME, **changes), content=content)
    print_trials(Screen(file=file, width=60), [trial])
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
