"""Edits change what they name, where it is found once, and nothing otherwise."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.proposers.llm.edits import Edit, EditError, apply_edits, read_edits, read_hunks

SOURCE = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"


def marked(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def edited(search: str, replace: str, source: str = SOURCE) -> str:
    return apply_edits(source, read_edits(marked(search, replace)))


def test_edits_are_made_one_after_another() -> None:
    edits = read_edits(marked("return 1", "return 3") + "\n" + marked("return 3", "return 4"))
    assert "return 4" in apply_edits(SOURCE, edits)


def test_lines_can_be_taken_out_and_put_in() -> None:
    assert "def g" not in edited("    def g(self):\n        return 2", "")
    assert edited("class A:", "import re\n\n\nclass A:").startswith("import re\n\n\nclass A:\n")


def test_white_space_does_not_count_where_the_place_is_clear() -> None:
    assert edited("def f(self):\n    return 1", "def f(self):\n    return 9") == SOURCE.replace(
        "return 1", "return 9"
    )
    assert edited("        return 1  ", "        return 9") == SOURCE.replace("1", "9")
    assert edited("            return 1", "            return 9") == SOURCE.replace("1", "9")


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (
            "return 7",
            "edit 1 of 1 does not match any lines of the file (SEARCH begins with 'return 7')",
        ),
        ("", "edit 1 of 1 has an empty SEARCH part, but the file is not empty"),
    ],
)
def test_edit_that_does_not_fit_says_why(search: str, said: str) -> None:
    with pytest.raises(EditError) as caught:
        edited(search, "x")
    assert str(caught.value) == said


def test_place_that_is_there_twice_is_not_guessed() -> None:
    with pytest.raises(EditError, match="2 places"):
        edited("x = 1", "x = 2", "x = 1\ny = 1\nx = 1\n")


def test_empty_file_can_be_filled() -> None:
    assert edited("", "x = 1", "") == "x = 1"


def test_hunks_are_found_by_their_text_and_not_by_their_numbers() -> None:
    diff = "@@ -90,3 +90,3 @@ class A\n     def g(self):\n-        return 2\n+        return 5\n"
    assert apply_edits(SOURCE, read_hunks(diff)) == SOURCE.replace("2", "5")


@settings(deadline=None)
@given(st.text(), st.lists(st.tuples(st.text(), st.text())))
def test_an_edit_is_made_or_refused(source: str, pairs: list[tuple[str, str]]) -> None:
    edits = tuple(Edit(tuple(a.split("\n")), tuple(b.split("\n"))) for a, b in pairs)
    with contextlib.suppress(EditError):
        apply_edits(source, edits)


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a-z ]{1,9}", fullmatch=True), min_size=1), st.data())
def test_a_line_of_its_own_is_always_found(lines: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = "THE ONE"
    made = edited("THE ONE", "another", "\n".join(lines))
    assert made == "\n".join([*lines[:at], "another", *lines[at + 1 :]])
