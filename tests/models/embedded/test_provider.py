"""What the embedded model answers."""

import json
import math
from typing import Any

import pytest

from coevolve.models.embedded.model_weights import MADE, WINDOW
from coevolve.models.model_errors import ContextTooLong, RequestRefused
from coevolve.models.provider import Message, ModelRequest
from tests.effort import effort
from tests.models.embedded.conftest import Asked

SHOTS = "".join(
    f"Symptom: {symptom}\nDiagnosis: {diagnosis}\n\n"
    for symptom, diagnosis in (
        ("itching red spots all over", "chicken pox"),
        ("throbbing pain on one side of the head", "migraine"),
        ("a cough that will not stop, wheezing", "bronchial asthma"),
    )
)
QUESTION = SHOTS + "Symptom: bright light makes my head ache\nDiagnosis:"
LABELS = ("chicken pox", "migraine", "bronchial asthma", "malaria")

NASTY = [
    ('say "hi"', "say 'hi'", "say \\hi\\"),
    ("a", "ab", "abc", "a b c"),
    ("net", "network", "network down", "network down again"),
    ("naïve", "日本語", "😀", "Ω≈ç", "e\u0301", "é"),
    ("root ::= x", "<[2]>", "[a-z]+", "(|)*", "<|im_end|>"),
    ("two\nlines", "two", "tab\there", " leading", "trailing "),
    ("C:\\temp\\new", "{json: [1, 2]}", "100%", "#hash", "//"),
    ("0", "00", "000", "1", "-1"),
    ("盗窃", "盗窃、抢夺", "盗"),
    ("CC(=O)O.CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "CC(=O)O"),
]


@pytest.mark.parametrize("choices", NASTY, ids=lambda choices: ascii(choices[0]))
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_the_answer_is_one_of_the_choices_to_the_letter(
    asked: Asked, choices: tuple[str, ...], temperature: float
) -> None:
    for prompt in effort(("Answer: ",), ("Pick one.\nAnswer:", "Answer: ", QUESTION)):
        reply = asked(prompt, choices=choices, temperature=temperature, sample=3)
        assert reply.text in choices
        assert reply.finish == "stop"
        assert reply.tokens_out >= 1


def test_a_choice_can_end_where_another_one_continues(asked: Asked) -> None:
    choices = ("network", "network printer")
    shots = "Item: cable\nKind: network\n\nItem: HP 4200\nKind: network printer\n\n"
    assert asked(shots + "Item: cable\nKind:", choices=choices).text == "network"
    assert asked(shots + "Item: HP 4200\nKind:", choices=choices).text == "network printer"


def test_the_answer_follows_from_the_prompt(asked: Asked) -> None:
    assert asked(QUESTION, choices=LABELS).text == "migraine"
    assert "Paris" in asked("The capital of France is").text


def test_scores_are_those_of_the_whole_distribution(asked: Asked) -> None:
    """Every token's probability, looked up among all that could stand in its place."""
    choices = ("migraine", "chicken pox", "chicken nuggets")
    reply = asked(QUESTION, choices=choices, scores=True)
    assert reply.scores is not None
    assert reply.scores.keys() == set(choices)
    for choice in choices[: effort(2, 3)]:
        assert math.isclose(reply.scores[choice], reference(asked, f" {choice}"), abs_tol=1e-3)
    assert reply.text == max(choices, key=reply.scores.__getitem__)
    nasty = tuple(choice for choices in NASTY for choice in choices)
    scores = asked(QUESTION, choices=nasty, scores=True).scores or {}
    for choice in effort(("e\u0301",), ("e\u0301", "Ω≈ç")):
        assert math.isclose(scores[choice], reference(asked, f" {choice}"), abs_tol=1e-3)
    longer = asked(QUESTION, choices=("chicken pox", "chicken"), scores=True).scores or {}
    assert longer["chicken"] >= longer["chicken pox"]


def reference(asked: Asked, choice: str) -> float:
    provider = asked.provider
    prompt, tokens = asked.run(provider._tokens.many([QUESTION, choice]))
    total = 0.0
    for place, token in enumerate(tokens):
        told = asked.run(
            provider._process.post(
                "/completion",
                {
                    "prompt": prompt + tokens[:place],
                    "n_predict": 1,
                    "temperature": 0,
                    "n_probs": 49_152,
                    "logit_bias": [[198, 100]],  # a whole character: nothing is told of others
                    "cache_prompt": False,
                },
            )
        )
        listed = told["completion_probabilities"][0]["top_logprobs"]
        assert math.isclose(sum(math.exp(entry["logprob"]) for entry in listed), 1, abs_tol=1e-3)
        total += next(entry["logprob"] for entry in listed if entry["id"] == token)
    return total


def test_answers_do_not_depend_on_what_else_is_asked(asked: Asked) -> None:
    requests = [
        request(QUESTION, choices=LABELS, scores=True),
        request(QUESTION, temperature=1.0, sample=5, max_tokens=12),
        request(SHOTS + "Symptom: shivering at night\nDiagnosis:", choices=LABELS, scores=True),
        request("Something else entirely: the tides", max_tokens=12),
        request(QUESTION, choices=LABELS),
        request(SHOTS, temperature=0.7, max_tokens=12),
    ]
    alone = [told(asked.together(one)[0].to_json()) for one in requests]
    assert [told(asked.together(one)[0].to_json()) for one in reversed(requests)] == alone[::-1]
    together = asked.together(*requests[::2], *requests[1::2])
    assert [told(reply.to_json()) for reply in together] == alone[::2] + alone[1::2]


def request(prompt: str, **given: Any) -> ModelRequest:
    return ModelRequest(prompt=prompt, **{"max_tokens": 8} | given)


def told(reply: dict[str, Any]) -> str:
    """A reply without what the model had kept from before."""
    return json.dumps(reply | {"tokens_kept": None})


def test_samples_differ_and_repeat(asked: Asked) -> None:
    texts = [asked("My favourite word is", temperature=1.2, sample=n).text for n in range(4)]
    assert len(set(texts)) > 1
    assert texts == [
        asked("My favourite word is", temperature=1.2, sample=n).text for n in range(4)
    ]


def test_temperature_left_to_the_model_is_none(asked: Asked) -> None:
    left, zero = (asked("Once upon", temperature=given, sample=9) for given in (None, 0.0))
    assert left.text == zero.text == asked("Once upon").text


def test_length_and_stops(asked: Asked) -> None:
    cut = asked("1 2 3 4 5 6 7 8 9 10 11 12", max_tokens=4)
    assert (cut.finish, cut.tokens_out) == ("length", 4)
    stopped = asked("1 2 3 4 5 6 7 8 9 10 11 12", max_tokens=60, stop=("15",))
    assert stopped.finish == "stop"
    assert "14" in stopped.text
    assert "15" not in stopped.text


def test_all_tokens_of_the_prompt_count_kept_or_not(asked: Asked) -> None:
    (prompt,) = asked.run(asked.provider.count([QUESTION]))
    first, again = asked(QUESTION, max_tokens=2), asked(QUESTION, max_tokens=2)
    assert (first.tokens_in, again.tokens_in) == (prompt, prompt)
    assert again.tokens_kept == prompt - 1
    labels = asked.run(asked.provider.count([f" {label}" for label in LABELS]))
    scored = asked(QUESTION, choices=LABELS, scores=True)
    assert (scored.tokens_in, scored.tokens_out) == (prompt + sum(labels), 0)


def test_counting(asked: Asked) -> None:
    assert asked.run(asked.provider.count([])) == []
    assert asked.run(asked.provider.count(["", "hello world", "<|im_end|>"])) == [0, 2, 1]


def test_a_prompt_that_does_not_fit(asked: Asked) -> None:
    words = "word " * WINDOW
    with pytest.raises(ContextTooLong, match=r"8,19\d tokens; the embedded model allows 8,192"):
        asked(words)
    with pytest.raises(ContextTooLong):
        asked(words, choices=LABELS, scores=True)


def test_choices_that_would_take_for_ever(asked: Asked) -> None:
    choices = tuple(f"{n} " + "word " * 40 for n in range(300))
    with pytest.raises(RequestRefused, match="Give fewer or shorter choices"):
        asked(QUESTION, choices=choices, scores=True)


def test_a_conversation_goes_through_the_chat_template(asked: Asked) -> None:
    turns = (Message("user", "What is the capital of France?"),)
    plain = asked("What is the capital of France?")
    reply, same = asked(messages=turns), asked(messages=turns)
    assert reply.tokens_in > plain.tokens_in
    assert reply.text == same.text
    assert asked(messages=turns, choices=("Paris", "a")).text == "Paris"
    short = asked("What is the capital of France?", system="Be brief.")
    assert short.tokens_in > plain.tokens_in


def test_the_weights_are_part_of_the_identity(asked: Asked) -> None:
    assert asked.provider.identity["weights"] == MADE.sha256
    assert asked.provider.identity["name"] == "embedded/SmolLM2-135M-Instruct"
