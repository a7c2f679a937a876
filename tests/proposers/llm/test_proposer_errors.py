"""What keeps a model from answering, as an LLM proposer meets it."""

import asyncio

import pytest

from coevolve.errors import ConfigError, StopRun
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ModelUnavailable
from coevolve.models.provider import ModelRequest
from coevolve.proposers.base import Proposed
from coevolve.proposers.llm import LLMProposer
from tests.models.endpoint import refuses, says
from tests.models.fakes import FakeProvider, served
from tests.proposers.llm.asking import proposed, whole
from tests.proposers.llm.runs import run

LONG = refuses(400, "maximum context length is 10 tokens", code="context_length_exceeded")
FILTERED = says("", finish="content_filter")


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (refuses(401, "Incorrect API key", code="invalid_api_key"), StopRun),
        (refuses(404, "no such model", code="model_not_found"), StopRun),
        (refuses(503), ModelUnavailable),
    ],
)
def test_what_the_operator_must_mend_is_an_error(act: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        proposed(run(), [act] * 20)  # type: ignore[list-item]


def test_model_that_goes_away_leaves_what_was_written() -> None:
    script = [says(whole(name="first")), refuses(503), refuses(503)]
    made, _ = proposed(run(), script, count=2, calls="each")
    assert [new.name for new in made.proposals] == ["first"]
    assert "stopped answering" in made.notes[0]


def test_reply_that_was_paid_for_is_counted_though_nothing_came_of_it() -> None:
    made, _ = proposed(run(), [says("Let me think about it."), refuses(503), refuses(503)])
    assert made.proposals == ()
    assert made.usage.tokens_in > 0
    assert any("stopped answering" in note for note in made.notes)


def test_prompt_that_is_too_long_is_halved_once() -> None:
    view = run(briefing="Words. " * 20_000)
    made, endpoint = proposed(view, [LONG, says(whole())], context_tokens=20_000)
    assert len(made.proposals) == 1
    first, second = map(len, endpoint.prompts)
    assert second < first / 1.8
    assert "set context_tokens to 10,000" in made.notes[0]


def test_prompt_that_is_still_too_long_says_what_to_change() -> None:
    with pytest.raises(ConfigError, match=r"Lower context_tokens in \[proposer\]"):
        proposed(run(), [LONG, LONG])


def test_conversation_that_gets_too_long_keeps_what_is_there() -> None:
    two = whole(name="first") + whole("x", name="second", parent="plain", path="../b.py")
    made, _ = proposed(run(), [says(two), LONG], count=2)
    assert [new.name for new in made.proposals] == ["first"]
    assert "../b.py" in made.notes[0]


def test_service_that_filters_the_answer_is_a_note() -> None:
    made, endpoint = proposed(run(), [FILTERED])
    assert made.proposals == ()
    assert "content filter" in made.notes[0]
    assert len(endpoint.seen) == 1


def test_time_that_is_over_leaves_what_was_written() -> None:
    async def act(_: ModelRequest) -> None:
        await asyncio.sleep(0 if len(model.asked) == 1 else 60)

    async def use(gateway: Gateway) -> Proposed:
        return await LLMProposer(gateway, calls="each").propose(run(seconds=1.0), 2)

    model = FakeProvider(whole(name="first"), act=act)
    made = served(Gateway(model), use)
    assert [new.name for new in made.proposals] == ["first"]
    assert made.notes[0].startswith("the time limit of the proposal was reached")
    assert made.transcript is not None
    assert "no reply" in made.transcript


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="context_tokens must be 6,000 or more, got 10"):
        LLMProposer(None, context_tokens=10)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a context of 2,000 tokens"):
        proposed(run(), [], window=2_000)
