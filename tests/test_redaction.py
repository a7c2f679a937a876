"""Keys are hidden in every form in which a service, an agent or a candidate may repeat them."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.redaction import HIDDEN, Redaction

KEY = 'sk-or-v1-8f14e45f/ceea+167a"5a36d\\edd4bea2543'
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "reversed": lambda part: part[::-1],
    "base64": lambda part: base64.b64encode(part.encode()).decode(),
    "base64 for addresses": lambda part: base64.urlsafe_b64encode(part.encode()).decode(),
    "percent": lambda part: quote(part, safe=""),
    "all percent": lambda part: "".join(f"%{ord(letter):02x}" for letter in part),
    "JSON": lambda part: json.dumps(part)[1:-1],
    "all JSON": lambda part: "".join(f"\\u{ord(letter):04X}" for letter in part),
    "base64 with percent": lambda part: quote(base64.b64encode(part.encode()), safe=""),
}


@given(form=st.sampled_from(sorted(FORMS)), start=st.integers(0, len(KEY) - 12), data=st.data())
def test_every_part_of_twelve_characters_is_hidden(
    form: str, start: int, data: st.DataObject
) -> None:
    end = data.draw(st.integers(start + 12, len(KEY)))
    before, after = (data.draw(st.text("! é\n", max_size=9)) for _ in range(2))
    written = FORMS[form](KEY[start:end])
    shown = Redaction([KEY]).text(f"{before}{written}{after}")
    assert shown.startswith(f"{before}{HIDDEN}")
    rest = shown.removeprefix(f"{before}{HIDDEN}")
    assert rest.endswith(after)
    assert len(rest) <= len(after) + (len("A%3D%3D") if "base64" in form else 0)


@given(start=st.integers(0, len(KEY) - 12), before=st.binary(max_size=9))
def test_a_part_within_base64_of_more_is_hidden(start: int, before: bytes) -> None:
    written = base64.b64encode(before + KEY[start : start + 12].encode() + b" and more").decode()
    assert HIDDEN in Redaction([KEY]).text(written)


def test_eleven_characters_are_not_the_key() -> None:
    text = f"{KEY[:11]} {KEY[20:31]}"
    assert Redaction([KEY]).text(text) == text


def test_a_short_secret_is_hidden_whole_only() -> None:
    redaction = Redaction(["secret7", ""])
    assert redaction.text("secret7, secret, 7terces") == f"{HIDDEN}, secret, {HIDDEN}"


def test_several_keys_and_parts_of_one_are_hidden() -> None:
    other = "AIza-0123456789-abcdefgh"
    text = f"{KEY}{other} {KEY[3:17]}{KEY[5:25]} {other[:12]}"
    assert Redaction([KEY, other]).text(text) == f"{2 * HIDDEN} {2 * HIDDEN} {HIDDEN}"


@pytest.mark.parametrize("text", ["", "half \ud800", "%zz \\u12 %", "é" * 50])
def test_other_texts_are_unchanged(text: str) -> None:
    assert Redaction([KEY]).text(text) == text
    assert Redaction([]).text(text) == text
