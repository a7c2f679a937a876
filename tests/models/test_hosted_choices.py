"""A hosted model chooses among the given answers, however it puts it."""

import pytest

from coevolve.models.hosted import chosen, schema
from tests.models.endpoint import Endpoint, says
from tests.models.hosting import asked, provider, reply_to, request

DISEASES = ("diabetes", "type 2 diabetes", "asthma", "gout")


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("asthma", "asthma"),
        (" Asthma.\n", "asthma"),
        ("**ASTHMA**", "asthma"),
        ('"type  2\ndiabetes"', "type 2 diabetes"),
        ("The answer is asthma, I think.", "asthma"),
        ("It must be type 2 diabetes.", "type 2 diabetes"),
        ('{"answer": "gout"}', "gout"),
        ('```json\n{"answer": "gout"}\n```', "gout"),
        ('"gout"', "gout"),
    ],
)
def test_reply_that_means_a_choice_becomes_that_choice(reply: str, choice: str) -> None:
    assert chosen(reply, DISEASES) == choice


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "none of these",
        "gout or asthma",
        "asthmatic",
        "diabetes, not type 2 diabetes",
        "[" * 100_000,
    ],
)
def test_reply_that_means_none_or_several_stays_as_it_is(reply: str) -> None:
    assert chosen(reply, DISEASES) == reply


def test_choices_without_spaces_around_them_are_found() -> None:
    assert chosen("被告人犯盗窃罪。", ("盗窃", "诈骗")) == "盗窃"


def test_choices_that_differ_in_case_alone_need_the_letter() -> None:
    assert chosen("A", ("a", "A")) == "A"
    assert chosen("(A)", ("a", "A")) == "(A)"


def test_choice_of_punctuation_is_found_only_to_the_letter() -> None:
    assert chosen("?", ("?", "!")) == "?"
    assert chosen("what?", ("?", "!")) == "what?"


def test_server_of_ones_own_is_asked_plainly() -> None:
    with Endpoint([says("I would say no.")]) as endpoint:
        [reply] = asked(provider(endpoint), request(choices=("yes", "no")))
    assert reply.text == "no"
    assert "response_format" not in endpoint.seen[0].body
    assert endpoint.prompts[0].startswith("Is water wet?")
    assert endpoint.prompts[0].endswith("- yes\n- no")


def test_server_that_obeys_a_schema_is_given_one() -> None:
    with Endpoint([says('{"answer": "no"}')]) as endpoint:
        [reply] = asked(provider(endpoint, strict_choices=True), request(choices=("yes", "no")))
    assert reply.text == "no"
    form = endpoint.seen[0].body["response_format"]
    assert form["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["yes", "no"]


def test_reply_without_any_of_the_choices_is_returned_as_it_is() -> None:
    assert reply_to(says("perhaps"), request(choices=("yes", "no"))).text == "perhaps"


def test_more_choices_than_services_take_in_a_schema_are_asked_for_plainly() -> None:
    assert schema([str(number) for number in range(250)]) is not None
    assert schema([str(number) for number in range(251)]) is None
    assert schema(["x" * 8_000, "y" * 8_000]) is None
