"""The context says what matters, within its budget, and says what it leaves out."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve import protocol
from coevolve.core.outcomes import Missing
from coevolve.proposers.base import Broken, Proposal, View
from coevolve.proposers.llm.llm_proposer import LEAST_TOKENS
from coevolve.proposers.llm.prompt_context import SECTIONS, pack, sort_tasks
from coevolve.proposers.llm.prompt_text import clip, clip_end, shortened, size, tokens
from coevolve.proposers.llm.prompts import asking, repairing, system
from tests.effort import effort
from tests.proposers.llm.runs import PLAIN, Known, run


def searched(**more: object) -> View:
    """A run of some rounds: `best` fails b, c and d, of which another one solves b."""
    known = {
        "plain": Known(value=0.25, outcomes={"a": 0.0, "b": 1.0, "c": 0.0, "d": Missing("lost")}),
        "best": Known(
            files={"harness.py": b"# the best\n", "lib/index.py": b"# its index\n"},
            value=0.5,
            outcomes={"a": 1.0, "b": 0.0, "c": 0.0, "d": Missing("lost")},
            round=2,
            hypothesis="Because prompts are long, shorter ones should help.",
            delta=0.25,
        ),
        "bad": Known(files={"harness.py": b"("}, round=3, refused="SyntaxError: '(' was never"),
    }
    traces = {
        (name, task): {"trace": {"question": f"{task}?", "said": f"{name} on {task}"}}
        for name in known
        for task in "abcd"
    }
    parts = {"parent": "best", "round": 6, "traces": traces, **more}
    return run(known, **parts)  # type: ignore[arg-type]


def test_everything_is_there_when_there_is_room() -> None:
    text = pack(searched(), 20_000)
    for part in (
        "A harness is `harness.py`",
        "- best, the best so far: 0.500 (0.400 to 0.600, 2 of 4 tasks), "
        "+0.250 against the best before its round",
        "hypothesis: Because prompts are long",
        "This is round 6. The best candidate so far is best, of round 2. No candidate of the",
        "python path=harness.py\n# the best\n",
        "python path=lib/index.py\n# its index\n",
        PLAIN.decode(),
        "- bad (round 3): SyntaxError: '(' was never",
        "best scores 0:\n> question: b?\n> said: best on b",
        "plain scores 1:\n> question: b?\n> said: plain on b",
        "> said: best on c",
        "> said: best on a",
    ):
        assert part in text
    assert "…" not in text


def test_a_missing_outcome_is_no_failure() -> None:
    tasks = sort_tasks(searched())
    assert tasks.lost == ((("b", "best", 0.0), ("b", "plain", 1.0)),)
    assert tasks.unsolved == (("c", "best", 0.0),)
    assert tasks.solved == (("a", "best", 1.0),)
    assert tasks.tried == 3
    assert "on d" not in pack(searched(), 20_000)


def test_a_task_that_only_others_failed_is_shown_with_their_trace() -> None:
    known = {
        "plain": Known(value=0.5, outcomes={"a": 1.0}),
        "other": Known(value=0.2, outcomes={"a": Missing("lost"), "b": 0.0}, round=1),
    }
    tasks = sort_tasks(run(known))
    assert tasks.unsolved == (("b", "other", 0.0),)


def test_rounds_show_failures_in_an_order_of_their_own() -> None:
    tasks = tuple(f"t{i}" for i in range(40))
    known = {"plain": Known(value=0.0, outcomes=dict.fromkeys(tasks, 0.0))}
    orders = [sort_tasks(run(known, tasks=tasks, seed=seed)).unsolved for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_pools_take_turns() -> None:
    tasks = tuple(f"t{i}" for i in range(10))
    pools = {task: "small" if task in ("t0", "t1") else "large" for task in tasks}
    known = {"plain": Known(value=0.0, outcomes=dict.fromkeys(tasks, 0.0))}
    first = sort_tasks(run(known, tasks=tasks, pools=pools)).unsolved[:4]
    assert sorted(pools[one.task] for one in first) == ["large", "large", "small", "small"]


def test_the_parent_is_shown_even_if_its_file_is_too_long() -> None:
    long = b"# begin\n" + b"x = 1  # and so on\n" * 5_000 + b"# end\n"
    view = run({"plain": Known(files={"harness.py": long}, value=0.5)})
    text = pack(view, 3_000)
    assert "python path=harness.py\n# begin" in text
    assert "# end\n" in text
    assert re.search(r"… [\d,]+ characters …", text)
    assert tokens(text) <= 3_000


def test_what_is_left_out_is_counted() -> None:
    known = {
        f"c{i}": Known(value=i / 100, files={"harness.py": b"# %d\n" % i * 200}, round=i)
        for i in range(60)
    }
    text = pack(run(known, parent="c59", round=60), 3_000)
    assert "c59, the best so far" in text
    assert re.search(r"… \d+ more candidates, with lower scores or without …", text)
    assert re.search(r"… \d+ more candidates: c\d+, ", text)


def test_a_section_that_needs_little_leaves_its_room_to_the_others() -> None:
    briefing = "word " * 2_000
    text = pack(run(briefing=briefing), 4_000)
    assert briefing.strip() in text
    assert sum(section.share for section in SECTIONS) == pytest.approx(1)


WORDS = st.text(max_size=60)
TIMES = st.sampled_from([1, 30, 900])
SCORES = st.sampled_from([0.0, 0.4, 1.0, Missing("lost")])
TASKS = tuple(f"t{i}" for i in range(12))
CANDIDATES = st.builds(
    Known,
    value=st.none() | st.floats(-0.2, 1.2),
    outcomes=st.dictionaries(st.sampled_from(TASKS), SCORES),
    round=st.integers(0, 5),
    refused=st.sampled_from(["", "", "it\nbroke"]),
    hypothesis=WORDS,
)


@settings(max_examples=effort(15, 60), deadline=None)
@given(st.lists(CANDIDATES, max_size=8), WORDS, TIMES, st.integers(0, 8_000), st.integers(0, 99))
def test_the_budget_is_never_exceeded(
    known: list[Known], words: str, times: int, most: int, seed: int
) -> None:
    said = words * times
    files = {"harness.py": said.encode(errors="replace"), "b.bin": b"\xff"}
    view = run(
        {f"c{i}": replace(one, files=files) for i, one in enumerate(known)},
        parent="c0",
        briefing=said,
        tasks=TASKS,
        seed=seed,
        pools={task: "ab"[i % 2] for i, task in enumerate(TASKS)},
        traces={("c0", task): {"trace": {"said": said, "calls": [said] * 3}} for task in TASKS},
    )
    assert tokens(pack(view, most)) <= most


@settings(deadline=None)
@given(WORDS, TIMES, st.integers(0, 500))
def test_clipped_texts_are_as_short_as_asked(words: str, times: int, most: int) -> None:
    text = words * times
    for cut in (clip(text, most), clip_end(text, most)):
        assert size(cut) <= most
        assert cut == text or size(text) > most


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | WORDS,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=4),
)


@settings(deadline=None)
@given(JSON, st.integers(0, 2_000))
def test_traces_are_shortened_whatever_is_in_them(trace: object, most: int) -> None:
    assert size(shortened(json.dumps({"trace": trace}), most)) <= most
    assert size(shortened(str(trace), most)) <= most


@settings(deadline=None)
@given(WORDS, WORDS, TIMES, st.integers(0, 12))
def test_requests_leave_room_for_the_context(name: str, words: str, times: int, made: int) -> None:
    said = words * times
    room = 3 * (LEAST_TOKENS // 2 - tokens(system(protocol("adaptive").disclosure())))
    proposal = Proposal(
        files={"harness.py": said.encode(errors="replace")}, name=name, hypothesis=said
    )
    assert size(repairing(Broken(proposal=proposal, error=said), room)) <= room
    assert size(asking(3, 1, (proposal,) * made, room)) <= room
