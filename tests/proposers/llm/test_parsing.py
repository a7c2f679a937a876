"""Replies as models write them become drafts, and nothing a model writes is an error."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.proposers.llm.edits import Edit
from coevolve.proposers.llm.reply_drafts import Draft, read_reply

CODE = "def answer(model, question):\n    return model(question)\n"
META = (
    '{"name": "short", "parent": "plain", "kind": "exploit", '
    '"hypothesis": "Less is more.", "components": ["short prompt"]}'
)


def drafts(text: str, *, cut: bool = False) -> tuple[Draft, ...]:
    return read_reply(text, cut=cut).drafts


def only(text: str) -> dict[str, str]:
    [draft] = drafts(text)
    return draft.files


def test_documented_format_is_read_in_full() -> None:
    [draft] = drafts(
        f"The cause is the length.\n\n## Candidate 1\n\n```json\n{META}\n```\n\n"
        f"````python path=harness.py\n{CODE}````\n"
    )
    assert draft.files == {"harness.py": CODE}
    assert (draft.name, draft.parents, draft.kind) == ("short", ("plain",), "exploit")
    assert (draft.hypothesis, draft.components) == ("Less is more.", ("short prompt",))


@pytest.mark.parametrize(
    "text",
    [
        f"```python path=harness.py\n{CODE}```",
        f'```py title="harness.py"\n{CODE}```',
        f"```python:harness.py\n{CODE}```",
        f"```harness.py\n{CODE}```",
        f"```{{.python path=harness.py}}\n{CODE}```",
        f"```text path=./harness.py\n{CODE}```",
        f"~~~~python path=harness.py\n{CODE}~~~~",
        f"``````python path=harness.py\n{CODE}``````",
        f"```python\n# harness.py\n{CODE}```",
        f"```python\n# path: harness.py\n{CODE}```",
        f"### `harness.py`\n\n```python\n{CODE}```",
        f"**harness.py**\n```\n{CODE}```",
        f"File: harness.py\n```javascript\n{CODE}```",
        f"Here is the new `harness.py`:\n\n```python\n{CODE}```",
        f"```python\n{CODE}```",
        f"```\n{CODE}```",
        f"   ```python path=harness.py\n   {CODE.replace(chr(10), chr(10) + '   ')}```",
        f"\ufeff```python path=harness.py\r\n{CODE.replace(chr(10), chr(13) + chr(10))}```\r\n",
        f"<think>Maybe\n```python path=harness.py\nwrong\n```\n</think>\n```python\n{CODE}```",
        f"Maybe\n```python path=harness.py\nwrong\n```\n</think>\n```python\n{CODE}```",
        f"```markdown\n## Candidate 1\n```python path=harness.py\n{CODE}```\n```",
        f"```python path=harness.py\n{CODE}",
    ],
)
def test_fenced_in_many_ways_it_is_the_same_file(text: str) -> None:
    assert only(text) == {"harness.py": CODE}


def test_fences_within_a_file_do_not_end_it() -> None:
    inner = '"""Shows:\n\n```\nan example\n```\n\n```json\n{}\n```\n"""\n' + CODE
    assert only(f"```python path=harness.py\n{inner}```\nDone.") == {"harness.py": inner}


def test_fences_within_text_are_counted() -> None:
    notes = "Notes\n```json\n{}\n```\nEnd\n"
    text = f"```python path=harness.py\n{CODE}```\n```markdown path=notes.md\n{notes}```\n"
    assert only(text) == {"harness.py": CODE, "notes.md": notes}


def test_program_that_is_none_still_ends_at_its_fence() -> None:
    broken = "def answer(:\n    return\n"
    text = f"```python path=harness.py\n{broken}```\nThat is all.\n```python path=b.py\nx\n```"
    assert only(text) == {"harness.py": broken, "b.py": "x\n"}


def test_forgotten_fence_is_made_up_for_where_the_next_file_begins() -> None:
    text = f"```python path=harness.py\n{CODE}\n```python path=lib.py\nx = 1\n```"
    assert only(text) == {"harness.py": CODE, "lib.py": "x = 1\n"}


def test_two_files_are_one_candidate_and_two_headings_are_two() -> None:
    one = f"```python path=harness.py\n{CODE}```\n```text path=prompts/a.txt\nSay\n```\n"
    assert only(one) == {"harness.py": CODE, "prompts/a.txt": "Say\n"}
    two = drafts(f"## Candidate 1: first\n{one}\n## Candidate 2: **second**\n{one}")
    assert [draft.name for draft in two] == ["first", "second"]


def test_metadata_alone_tell_candidates_apart() -> None:
    other = META.replace("short", "long")
    file = f"```python path=harness.py\n{CODE}```\n"
    found = drafts(f"```json\n{META}\n```\n{file}```json\n{other}\n```\n{file}")
    assert [draft.name for draft in found] == ["short", "long"]


def test_same_file_again_is_another_candidate_only_where_none_is_announced() -> None:
    file = f"```python path=harness.py\n{CODE}```\n"
    better = file.replace("question)\n`", "question, 1)\n`")
    assert len(drafts(file + better)) == 2
    [draft] = drafts(f"## Candidate 1\n{file}Corrected:\n{better}")
    assert draft.files["harness.py"].endswith("question, 1)\n")


@pytest.mark.parametrize(
    "meta",
    [
        "{'name': 'short', 'parent': 'plain', 'hypothesis': 'Less is more.', 'kind': 'exploit',}",
        "```yaml\nname: short\nparent: plain\nhypothesis: Less is more.\nkind: exploit\n```",
        "- **Name:** `short`\n- **Parent:** plain\n- **Hypothesis:** Less is more.\n"
        "- **Kind:** exploitation",
        META,
        f"```\n{META}\n```",
        '```json\n{"name": "short",\n"parent": "plain",\n"hypothesis": "Less is more.",\n'
        '"kind": "exploit",\n"components": [\n```',
    ],
)
def test_metadata_may_be_sloppy(meta: str) -> None:
    fenced = meta if not meta.startswith("{'") else f"```json\n{meta}\n```"
    [draft] = drafts(f"## Candidate 1\n{fenced}\n```python path=harness.py\n{CODE}```")
    assert (draft.name, draft.parents) == ("short", ("plain",))
    assert (draft.hypothesis, draft.kind) == ("Less is more.", "exploit")


@pytest.mark.parametrize(
    "wrapped",
    [
        '{"name": "short", "files": {"harness.py": "x = 1\\n"}}',
        '{"candidates": [{"name": "short", "files": [{"path": "harness.py", '
        '"content": "x = 1\\n"}]}]}',
        'Here:\n```json\n{"name": "short", "files": {"harness.py": "x = 1\\n"}}\n```',
        'Here:\n{"name": "short", "files": {"harness.py": "x = 1\\n"}}\nDone.',
    ],
)
def test_json_with_the_files_in_it_is_read(wrapped: str) -> None:
    [draft] = drafts(wrapped)
    assert (draft.name, draft.files) == ("short", {"harness.py": "x = 1\n"})


def test_what_prose_says_again_does_not_make_another_candidate() -> None:
    [draft] = drafts(
        f"## Candidate 1\n```json\n{META}\n```\nName: x\nHypothesis: y\n\n```python\n{CODE}```"
    )
    assert (draft.name, draft.parents, draft.hypothesis) == ("short", ("plain",), "Less is more.")


def test_data_file_is_no_metadata() -> None:
    text = f"```python path=harness.py\n{CODE}```\n### words.json\n```json\n[1]\n```"
    assert only(text) == {"harness.py": CODE, "words.json": "[1]\n"}


def test_edits_and_diffs_are_read_as_edits() -> None:
    marks = "<<<<<<< SEARCH\nx = 1\n=======\nx = '''\n```\n'''\n>>>>>>> REPLACE\n"
    [draft] = drafts(f"```edit path=harness.py\n{marks}```\n")
    assert draft.edits == {"harness.py": (Edit(("x = 1",), ("x = '''", "```", "'''")),)}
    diff = "--- a/harness.py\n+++ b/harness.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    [draft] = drafts(f"```diff\n{diff}```\n")
    assert draft.edits == {"harness.py": (Edit(("x = 1",), ("x = 2",)),)}


def test_what_the_end_of_the_reply_cuts_off_is_told() -> None:
    whole = f"## Candidate 1: a\n```python path=harness.py\n{CODE}```\n"
    first, second = drafts(f"{whole}## Candidate 2: b\n```python path=harness.py\nde", cut=True)
    assert (first.cut, second.cut, second.files) == ([], ["harness.py"], {})
    _, announced = drafts(f"{whole}## Candidate 2: b\n", cut=True)
    assert announced.cut == [""]
    _, described = drafts(f'{whole}## Candidate 2\n```json\n{{"name": "b", "hyp', cut=True)
    assert described.cut == [""]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "I'm sorry, but I can't help with that. Is there more?",
            "I'm sorry, but I can't help with that.",
        ),
        ("I cannot assist with this request", "I cannot assist with this request"),
        ("The best harness is fine as it is.", ""),
        (f"I can't test it, but here:\n```python\n{CODE}```", ""),
        ("", ""),
    ],
)
def test_refusal_is_told_from_chatter(text: str, refusal: str) -> None:
    assert read_reply(text).refusal == refusal


FRAGMENTS = st.sampled_from(
    [
        *("```", "````python path=harness.py", "```python", "~~~", "```json", "```diff", "   ```"),
        *(META, "{", "}", "[" * 50, '{"files": {"a": 1}}', '{"candidates": [1, {}]}', "null"),
        *("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "@@ -1 +1 @@", "-x", "+y", "--- a"),
        *("## Candidate 1: x", "name: y", "Hypothesis: z", "# harness.py", "### `b.py`", "x = 1"),
        *("<think>", "</think>", '"""', "\\d", "\x00", "\ud800", "\u2028", "\r", "../x"),
    ]
)
REPLIES = st.one_of(st.text(), st.lists(FRAGMENTS | st.text(max_size=9)).map("\n".join))
LINES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="`~#<>@"))


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("[", 20_000),
        ("```python\n" + "(" * 5_000, 1),
        ("```json\n" + '{"a":' * 5_000, 1),
        ("```\n", 5_000),
        ("```python\n(\n```\n", 2_000),
        ("```py path=a.py\n", 5_000),
        ("<<<<<<< SEARCH\n```\n", 5_000),
        ("## Candidate 1\n", 5_000),
    ],
    ids=range(8),
)
def test_endless_rubbish_is_read_to_its_end(unit: str, times: int) -> None:
    for cut in (True, False):
        assert read_reply(unit * times, cut=cut).words


@settings(deadline=None)
@given(REPLIES, st.booleans())
def test_nothing_a_model_writes_is_an_error(text: str, cut: bool) -> None:
    reading = read_reply(text, cut=cut)
    for draft in reading.drafts:
        assert not draft.empty
        assert draft.kind in ("", "exploit", "explore")
        assert draft.parents is None or isinstance(draft.parents, tuple)
        assert all(map(str.strip, draft.components))
        "".join([draft.name, draft.hypothesis, *draft.files, *draft.files.values()]).encode()


@settings(deadline=None)
@given(st.lists(LINES).map("\n".join))
def test_file_without_fences_comes_through_to_the_letter(content: str) -> None:
    text = f"Now:\n\n````text path=notes.txt\n{content}\n````\nDone."
    assert only(text) == {"notes.txt": f"{content}\n"}


@pytest.mark.parametrize("rubbish", ["[\n", "{\n", '{"name": "a",\n', "\t\n"])
def test_rubbish_is_soon_given_up(rubbish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            tried.append(idx)
            return super().raw_decode(s, idx)

    monkeypatch.setattr("coevolve.proposers.llm.reply_drafts.json.JSONDecoder", Counting)
    assert read_reply(f"Well:\n{rubbish * 20_000}").drafts == ()
    assert len(tried) < 500


def test_json_is_found_behind_what_is_none() -> None:
    said = {"name": "new", "files": {"harness.py": "x = 1\n"}}
    (draft,) = read_reply(f"Well:\n{'[' * 3}\n[a\n{{b\n{json.dumps(said)}").drafts
    assert draft.files == {"harness.py": "x = 1\n"}
