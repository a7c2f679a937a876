"""What an LLM proposer makes of what a model says, over HTTP."""

from pathlib import Path

import pytest

from coevolve.models.gateway import Gateway
from coevolve.models.response_cache import ResponseCache
from coevolve.proposers.base import Proposal, Proposed, Repairer
from coevolve.proposers.llm import LLMProposer
from coevolve.proposers.llm.prompt_text import tokens
from tests.models.endpoint import says
from tests.models.fakes import FakeProvider, served
from tests.proposers.llm.asking import (
    NEW,
    OLD_LINE,
    candidate,
    edit,
    proposed,
    repaired,
    texts,
    whole,
)
from tests.proposers.llm.runs import PLAIN, Known, run

SHOWN = (
    "# Briefing",
    "A harness is `harness.py`",
    "- plain, the best so far: 0.500",
    "# Your task",
)


def test_candidate_comes_with_all_that_is_said_of_it() -> None:
    reply = "Too long.\n\n" + whole(components=["stop", "short"], kind="explore")
    made, endpoint = proposed(run(), [says(reply, tokens=120)])
    [new] = made.proposals
    assert new == Proposal(
        files={"harness.py": NEW.encode()},
        name="new",
        parents=("plain",),
        hypothesis="Stops.",
        kind="explore",
        components=("stop", "short"),
    )
    assert made.notes == ()
    assert (made.usage.tokens_in, made.usage.tokens_out) == (120, len(reply.split()))
    [prompt] = endpoint.prompts
    assert all(part in prompt for part in SHOWN)
    assert made.transcript is not None
    assert "Too long." in made.transcript
    assert prompt in made.transcript


def test_one_call_writes_all_candidates_of_a_round() -> None:
    reply = whole(name="first") + edit(OLD_LINE, "    prompt = question", name="second")
    made, endpoint = proposed(run(), [says(reply)], count=2)
    assert [new.name for new in made.proposals] == ["first", "second"]
    assert texts(made)[1] == PLAIN.decode().replace(OLD_LINE, "    prompt = question")
    assert len(endpoint.seen) == 1
    assert "Write 2 candidates for round 1" in endpoint.prompts[0]


def test_a_call_for_each_is_told_of_those_before() -> None:
    script = [says(whole(name="first")), says(whole("x = 2\n", name="second"))]
    made, endpoint = proposed(run(), script, count=2, calls="each")
    assert [new.name for new in made.proposals] == ["first", "second"]
    assert "first: Stops." not in endpoint.prompts[0]
    assert "- first: Stops." in endpoint.prompts[1]
    assert "an approach that no candidate has tried" in endpoint.prompts[1]


def test_two_files_and_those_of_the_parent_are_one_candidate() -> None:
    files = {"harness.py": PLAIN, "lib.py": b"old = 1\n", "words.txt": b"a\n"}
    view = run({"plain": Known(files=files, value=0.5)})
    body = f"```python path=harness.py\n{NEW}```\n\n```python path=lib.py\nnew = 1\n```"
    made, _ = proposed(view, [says(candidate(body))])
    assert made.proposals[0].files == {
        "harness.py": NEW.encode(),
        "lib.py": b"new = 1\n",
        "words.txt": b"a\n",
    }
    alone, _ = proposed(view, [says(candidate(body, parent=None))])
    assert set(alone.proposals[0].files) == {"harness.py", "lib.py"}


def test_fenced_wrongly_it_is_read_all_the_same() -> None:
    made, endpoint = proposed(run(), [says(f"### harness.py\n~~~~js\n{NEW}~~~~\nEnjoy!")])
    assert (texts(made), len(endpoint.seen)) == ([NEW], 1)
    assert made.proposals[0].name == "round-1-1"


def test_cut_off_candidate_is_asked_for_once_more_and_the_others_are_kept() -> None:
    first, second = whole(name="first"), whole("x = 2\n", name="second")
    cut = first + second[: second.index("x = 2")]
    script = [says(cut, finish="length"), says(second)]
    made, endpoint = proposed(run(), script, count=2)
    assert [new.name for new in made.proposals] == ["first", "second"]
    assert made.notes == ()
    assert "second: the reply was cut off before harness.py was complete" in endpoint.prompts[1]
    assert [turn["role"] for turn in endpoint.seen[1].body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


def test_cut_off_twice_is_a_note_that_says_what_to_do() -> None:
    cut = whole()[:-20]
    made, endpoint = proposed(run(), [says(cut, finish="length")] * 2)
    assert made.proposals == ()
    assert len(endpoint.seen) == 2
    assert made.notes == (
        "new: the reply was cut off before harness.py was complete.",
        "the reply was cut off; raise max_tokens in [proposer.model].",
    )


def test_model_that_thinks_until_it_is_cut_off_has_written_nothing() -> None:
    silent = says(None, finish="length", reasoning_content="hm")
    made, _ = proposed(run(), [silent, silent])
    assert made.notes[0] == "the reply is empty."
    assert "raise max_tokens" in made.notes[1]


def test_edit_that_does_not_fit_is_sent_back_with_what_is_wrong() -> None:
    script = [says(edit("    prompt = nothing", "    x")), says(whole())]
    made, endpoint = proposed(run(), script)
    assert texts(made) == [NEW]
    assert made.notes == ()
    assert "edit 1 of 1 does not match any lines of the file" in endpoint.prompts[1]
    assert "prompt = nothing" in endpoint.seen[1].body["messages"][2]["content"]


def test_edit_is_one_of_the_best_candidate_if_no_parent_is_named() -> None:
    marks = f"<<<<<<< SEARCH\n{OLD_LINE}\n=======\n    prompt = question\n>>>>>>> REPLACE"
    made, _ = proposed(run(), [says(f"```\n{marks}\n```")])
    assert made.proposals[0].parents == ("plain",)
    assert "prompt = question" in texts(made)[0]


def test_duplicate_is_sent_back_and_then_left_out() -> None:
    copy = whole(PLAIN.decode())
    made, endpoint = proposed(run(), [says(copy), says(copy)])
    assert made.proposals == ()
    assert "its files are identical to those of 'plain'" in endpoint.prompts[1]
    assert made.notes == ("new: its files are identical to those of 'plain'.",)
    twice, _ = proposed(run(), [says(whole(name="a") + whole(name="b")), says("Sorry.")], count=2)
    assert [new.name for new in twice.proposals] == ["a"]


@pytest.mark.parametrize(
    ("reply", "calls", "note"),
    [
        ("I'm sorry, but I can't help with that. Bye.", 1, "declined: I'm sorry, but I can't"),
        ("The best one is fine. Keep it.", 2, "has no candidate: 'The best one is fine.'"),
        ("\u0000 }{ ``` %%% ```", 2, "the reply has no candidate:"),
        ("[" * 3000 + "]" * 3000, 2, "the reply has no candidate:"),
        ("", 2, "reply is empty"),
        (whole(path="../escape.py"), 2, "'../escape.py' is not a valid path"),
    ],
)
def test_reply_without_a_candidate_is_a_note(reply: str, calls: int, note: str) -> None:
    made, endpoint = proposed(run(), [says(reply), says(reply)])
    assert made.proposals == ()
    assert len(endpoint.seen) == calls
    assert note in made.notes[0]
    assert made.usage.tokens_in == 10 * calls


def test_more_candidates_than_asked_for_are_noted() -> None:
    reply = "".join(whole(f"x = {i}\n", name=f"c{i}") for i in range(4))
    made, endpoint = proposed(run(), [says(reply)], count=2)
    assert [new.name for new in made.proposals] == ["c0", "c1"]
    assert made.notes == ("the model wrote 4 candidates instead of 2.",)
    assert len(endpoint.seen) == 1


def test_fewer_candidates_than_asked_for_are_noted() -> None:
    made, _ = proposed(run(), [says(whole())], count=3)
    assert made.notes == ("the model wrote 1 of 3 candidates.",)


def test_unknown_parent_of_a_whole_file_is_left_out() -> None:
    made, _ = proposed(run(), [says(whole(parent="the best one"))])
    assert made.proposals[0].parents == ()
    alike, _ = proposed(run(), [says(whole(parent="`Plain`"))])
    assert alike.proposals[0].parents == ("plain",)


def test_syntax_error_is_repaired_on_the_second_try() -> None:
    view = run()
    made, _ = proposed(view, [says(whole("def answer(:\n    pass\n"))])
    [broken] = made.proposals
    assert texts(made) == ["def answer(:\n    pass\n"]
    error = "import: SyntaxError: invalid syntax (harness.py, line 1)"
    repair, endpoint = repaired(view, broken, error, [says(edit("def answer(:", NEW.strip()))])
    [again] = repair.proposals
    assert texts(repair) == [f"{NEW}    pass\n"]
    assert (again.name, again.hypothesis, again.parents) == ("new", "Stops.", ("plain",))
    assert error in endpoint.prompts[0]
    assert "def answer(:" in endpoint.prompts[0]
    assert "# Briefing" in endpoint.prompts[0]
    assert isinstance(LLMProposer(None), Repairer)  # type: ignore[arg-type]


def test_repair_that_changes_nothing_is_a_note() -> None:
    broken = Proposal(files={"harness.py": b"x = (\n"}, name="new")
    repair, _ = repaired(run(), broken, "SyntaxError", [says("```python\nx = (\n```")] * 2)
    assert repair.proposals == ()
    assert "identical to those of 'the candidate before the repair'" in repair.notes[0]


def test_prompts_stay_within_the_budget_and_the_window() -> None:
    view = run(briefing="Words and words. " * 9_000)
    for given in ({"context_tokens": 6_000}, {"window": 8_000}):
        _, endpoint = proposed(view, [says(whole())], **given)
        turns = endpoint.seen[0].body["messages"]
        assert sum(tokens(turn["content"]) for turn in turns) <= 6_000
        assert "characters …" in turns[1]["content"]


def test_every_round_asks_for_a_sample_of_its_own() -> None:
    seeds = [
        proposed(run(seed=seed), [says(whole())])[1].seen[0].body.get("seed") for seed in (1, 1, 2)
    ]
    assert seeds[0] == seeds[1] != seeds[2]


def test_every_call_of_a_round_asks_for_a_sample_of_its_own() -> None:
    refusal = says("I'm sorry, but I can't help with that.")
    made, endpoint = proposed(run(), [refusal, says(whole())], count=2, calls="each")
    assert len(made.proposals) == 1  # the same question, and not the same answer from a cache
    assert len({request.body["seed"] for request in endpoint.seen}) == 2


def test_what_was_written_too_much_may_be_written_again() -> None:
    both = whole(name="a") + whole("x = 2\n", name="b")
    again = says(whole("x = 2\n", name="b"))
    made, endpoint = proposed(run(), [says(both), again], count=2, calls="each")
    assert [new.name for new in made.proposals] == ["a", "b"]
    assert len(endpoint.seen) == 2


def test_cached_calls_cost_nothing(tmp_path: Path) -> None:
    model = FakeProvider(whole())

    async def twice(gateway: Gateway) -> list[Proposed]:
        return [await LLMProposer(gateway).propose(run(), 1) for _ in range(2)]

    gateway = Gateway(model, cache=ResponseCache(tmp_path / "answers.db"))
    first, again = served(gateway, twice)
    assert first.proposals == again.proposals
    assert (first.usage.tokens_in, first.usage.tokens_out) == (100, 10)
    assert (again.usage.tokens_in, again.usage.tokens_out, again.usage.dollars) == (0, 0, 0)
