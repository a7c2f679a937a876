"""The leak scan finds tasks in plain, reordered and encoded text of a candidate's files."""

import ast
import base64
import bz2
import gzip
import hashlib
import io
import json
import random
import textwrap
import time
import zipfile
import zlib
from collections.abc import Callable

import pytest

from coevolve.search.acceptance import Rules
from coevolve.search.leak_texts import ASCII, MOST_WORK, Work, texts_of
from coevolve.search.leaks import Leak, LeakScan, Secret
from tests.effort import effort, first

MUSEUM = (
    "The museum's north gallery closes twenty minutes before the rest.\n"
    "When must visitors of the “Blue Room” leave on Sundays?"
)
FERRY = "Which ferry reaches the island of Hvar first if the 07:40 from Split is cancelled?"
CHARGE = "经审理查明：2014年9月29日，被告人章某在新化县梅山龙宫景区敲诈展厅人员财物共计两千元。"
PRODUCT = "Context: The reaction type is Protections.\nInput: CC(C)(C)OC(=O)NCc1cccnc1\nAnswer: "
REACTANTS = "COc1ccc(Br)c(C)c1.O=C1CCC(=O)N1Br.OB(O)c1ccc(Cl)cc1"

SECRETS = {
    "trip-001": Secret(text=MUSEUM, answer="at 17:40"),
    "trip-002": Secret(text=FERRY, answer="the 09:15 of Jadrolinija"),
    "law-007": Secret(text=CHARGE),
    "uspto-003": Secret(text=PRODUCT, answer=REACTANTS),
}
STAIRS = "How many steps does the spiral staircase of San Gil have?"
SEALED = {"trip-test-004": Secret(text=STAIRS)}
CLEAN = '''"""Asks the model, with the nearest examples shown."""

import re

LABELS = ["blue", "north", "guilty"]


class Plain:
    """Museums, ferries and islands: which of them is it?"""

    def predict(self, question):
        words = re.findall(r"[a-z0-9]+|[^\\sa-z0-9]", question.lower())
        return self.model(f"The reaction type is given.\\nInput: {question}\\nAnswer: ")
'''


def found(source: str | bytes, path: str = "harness.py") -> set[tuple[str, str]]:
    data = source.encode() if isinstance(source, str) else source
    scan = LeakScan(SECRETS, sealed=SEALED)
    return {(leak.task, leak.what) for leak in scan.scan({path: data})}


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("answers/all.txt", text)
    return file.getvalue()


DISGUISES: dict[str, Callable[[str], str]] = {
    "as it is": lambda q: f"X = {q!r}",
    "in a comment": lambda q: f"# seen: {' '.join(q.split())}\nx = 1",
    "in a docstring": lambda q: f'"""Fails at: {q}"""',
    "as a key": lambda q: f"KNOWN = {{{q!r}: 'blue'}}",
    "first 40": lambda q: f"def f(q): return 'blue' if q.startswith({q[:40]!r}) else 'red'",
    "a middle part": lambda q: f"def f(q): return 'blue' if {q[12:54]!r} in q else 'red'",
    "lower case": lambda q: f"X = {q.lower()!r}",
    "upper case": lambda q: f"X = {q.upper()!r}",
    "no spaces": lambda q: f"X = {''.join(q.split())!r}",
    "words": lambda q: f"X = {q.split()!r}",
    "wrapped": lambda q: f'X = """\n    {textwrap.fill(q, 30)}\n"""',
    "implicitly joined": lambda q: "X = (\n" + "\n".join(map(repr, pieces(q, 9))) + "\n)",
    "added up": lambda q: "X = " + " + ".join(map(repr, pieces(q, 7))),
    "added with names between": lambda q: "\n".join(
        f"part{i} = {part!r}  # part {i}" for i, part in enumerate(pieces(q, 11))
    ),
    "formatted": lambda q: "X = " + " ".join(f"f{part!r}" for part in pieces(q, 9)),
    "escaped": lambda q: "X = '" + "".join(f"\\u{ord(c):04x}" for c in q) + "'",
    "bytes": lambda q: f"X = {q.encode()!r}.decode()",
    "backwards": lambda q: f"X = {q[::-1]!r}[::-1]",
    "base64": lambda q: f"X = {base64.b64encode(q.encode()).decode()!r}",
    "base64, for addresses": lambda q: f"X = {base64.urlsafe_b64encode(q.encode())!r}",
    "hexadecimal": lambda q: f"X = {q.encode().hex()!r}",
    "packed": lambda q: f"X = {base64.b64encode(zlib.compress(q.encode()))!r}",
    "packed table": lambda q: (
        f"X = {base64.b64encode(gzip.compress(json.dumps({q: 'blue'}).encode()))!r}"
    ),
    "not even Python": lambda q: f"def f(:\n  X = {json.dumps(q)}",
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("task", ["trip-001", "trip-002", "law-007"])
def test_a_question_is_found_in_code(task: str, disguise: str) -> None:
    source = f"{CLEAN}\n\n{DISGUISES[disguise](SECRETS[task].text)}\n"
    assert found(source) == {(task, "question")}


FILES: dict[str, Callable[[str], bytes]] = {
    "data.json": lambda q: json.dumps([{"asked": q, "label": "blue"}]).encode(),
    "data.jsonl": lambda q: json.dumps({"asked": q[:40]}, ensure_ascii=False).encode(),
    "data.csv": lambda q: f"question,label\n{q[:60]},blue\n".encode(),
    "data.tsv": lambda q: f"blue\t{' '.join(q.split())}\n".encode(),
    "notes.md": lambda q: f"# Notes\n\n> {textwrap.fill(q, 40)}\n".encode(),
    "wide.txt": lambda q: q.encode("utf-16"),
    "data.b64": lambda q: base64.encodebytes((CLEAN + q).encode()),
}


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("task", ["trip-001", "trip-002", "law-007"])
def test_a_question_is_found_in_data(task: str, path: str) -> None:
    assert found(FILES[path](SECRETS[task].text), path) == {(task, "question")}


BINARY: dict[str, Callable[[str], bytes]] = {
    "data.zip": zipped,
    "data.gz": lambda q: gzip.compress(q.encode()),
    "data.bz2": lambda q: bz2.compress(q.encode()),
    "data.pyc": lambda q: b"\xcb\r\r\n" + zlib.compress(q.encode()),
}


@pytest.mark.parametrize("path", BINARY)
def test_a_file_that_is_not_text_is_reported(path: str) -> None:
    (leak,) = LeakScan(SECRETS).scan({path: BINARY[path](FERRY)})
    assert str(leak) == f"{path}: could not be searched in full; it is too large, or not text"


def test_the_readable_part_of_a_file_that_is_not_text_is_searched() -> None:
    data = b"\x00\xff\x01" + CHARGE.encode() + b"\x80\x00"
    assert found(data, "data.bin") == {("law-007", "question"), ("", "unread")}


def test_a_file_of_a_starting_harness_may_be_kept_though_it_is_not_text() -> None:
    weights = gzip.compress(b"weights")
    scan = LeakScan(SECRETS, known=[{"weights.gz": weights}])
    assert scan.scan({"lib/weights.gz": weights}) == ()
    assert [leak.what for leak in scan.scan({"weights.gz": weights + b"!"})] == ["unread"]


def test_a_molecule_alone_is_found_and_what_all_questions_say_is_not() -> None:
    assert found("X = {'CC(C)(C)OC(=O)NCc1cccnc1': '...'}") == {("uspto-003", "question")}
    others = {
        f"uspto-{n}": Secret(text=PRODUCT.replace("NCc1cccnc1", f"N{'C' * n}Br")) for n in range(5)
    }
    scan = LeakScan(others)
    prompt = b"PROMPT = 'Context: The reaction type is Protections.\\nInput: '"
    assert scan.scan({"harness.py": prompt}) == ()


def test_long_answers_are_secret_and_labels_are_not() -> None:
    assert found(f"X = {REACTANTS!r}") == {("uspto-003", "answer")}
    assert found(f"X = {REACTANTS.replace('.', '. ').lower()!r}") == {("uspto-003", "answer")}
    label = "gastroesophageal reflux disease"
    labelled = {f"t-{n}": Secret(text=f"Case {n}", answer=label) for n in range(2)}
    labelled |= {f"u-{n}": Secret(text=f"Case {n}", answer=f"disease {n}") for n in range(9)}
    assert LeakScan(labelled).scan({"harness.py": f"X = {label!r}".encode()}) == ()


def test_ids_are_found_as_texts_of_their_own() -> None:
    assert found("X = {'trip-001': 'blue', 'law-007': 'guilty'}") == {
        ("trip-001", "id"),
        ("law-007", "id"),
    }
    assert found('{"trip-test-004": 3}', "data.json") == {("trip-test-004", "id")}
    assert found("uspto-003,CCO\n", "data.csv") == {("uspto-003", "id")}
    assert found("# does better than its parent on trip-001 and law-007\nx = 1") == set()
    plain = LeakScan({"1": Secret(text="One?"), "bakery": Secret(text="Two?")})
    assert plain.scan({"harness.py": b"X = {'1': 2, 'bakery': 3}"}) == ()


def test_a_quotable_text_is_not_a_leak() -> None:
    start = {"harness.py": f"EXAMPLE = {MUSEUM!r}\nID = 'law-007'\nX = {REACTANTS!r}".encode()}
    scan = LeakScan(SECRETS, known=[start])
    assert scan.scan(start) == ()
    assert scan.scan({"harness.py": f"X = {MUSEUM[:40]!r}, 'law-007'".encode()}) == ()
    assert [leak.task for leak in scan.scan({"a.py": f"X = {FERRY!r}".encode()})] == ["trip-002"]


def test_a_question_in_two_splits_is_that_of_the_validation_task() -> None:
    scan = LeakScan({"t-1": Secret(text=FERRY)}, sealed={"t-test-1": Secret(text=FERRY)})
    (leak,) = scan.scan({"harness.py": f"X = {FERRY!r}".encode()})
    assert (leak.task, leak.sealed) == ("t-1", False)


def test_a_leak_says_where_and_never_what() -> None:
    files = {"lib/data.py": f"x = 1\n\nKNOWN = [\n    {STAIRS!r},\n]\n".encode()}
    (leak,) = LeakScan(SECRETS, sealed=SEALED).scan(files)
    assert str(leak) == ("lib/data.py, line 4: has the question of a task of the sealed test")
    assert "staircase" not in f"{leak!r}{leak}"


def test_clean_code_is_clean() -> None:
    assert found(CLEAN) == set()
    assert LeakScan({}).scan({"harness.py": CLEAN.encode()}) == ()
    assert LeakScan({"t-1": Secret(text="")}).scan({"harness.py": b""}) == ()
    digests = "".join(f"X{n} = '{hashlib.sha256(bytes([n])).hexdigest()}'\n" for n in range(100))
    assert found(digests) == set()


NASTY = {
    "deep": b"(" * 100_000,
    "deep sums": b"x = " + b"+".join([b"'a'"] * 20_000),
    "half a quote": b'"""' + b"a" * 100_000,
    "quotes": b'"' * 100_001,
    "backslashes": b"'" + b"\\" * 100_001,
    "nothing": b"",
    "zeros": bytes(100_000),
    "a wrong escape": rb"X = '\d \N{no such sign} \x1'",
    "beyond all signs": rb'{"a": "\U99999999"}',
    "half a pair": rb'{"a": "\ud83d"}',
    "a damaged stream": b"X = '" + base64.b64encode(zlib.compress(bytes(100))[:9] * 9) + b"'",
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("path", ["harness.py", "data.json"])
def test_nothing_a_candidate_brings_along_breaks_the_scan(name: str, path: str) -> None:
    assert found(NASTY[name], path) == set()


def filled(text: str, size: int = effort(150_000, 400_000)) -> str:
    return text * (size // len(text))


ENDLESS = {
    "escaped quotes": filled("\\'"),
    "escaped quotes on lines": filled("\\\"\\\n'"),
    "an open literal": "'" + filled("\\'\\\""),
    "open triple quotes": '"""' + filled("a'''b\"x "),
    "quotes of both kinds": filled("'''\"\"\"'"),
    "prefixes": filled("rb'rb'"),
    "a name like a prefix": filled("rb"),
    "comments": filled("#'#\""),
    "hashes": filled("#"),
    "nests": filled("(" * 99 + ")" * 99 + "\n"),
    "statements": filled("a\n"),
    "open fields": "f'" + filled("{a{b}") + "'",
    "fields": "f'''" + filled("{'a'}") + "'''",
    "names of signs": "'" + filled("\\N{") + "'",
    "literals": "x = [" + filled("'ab', ") + "]",
    "literals in rows": "x = (" + filled("'abcde'\n") + ")",
    "commas": filled(","),
    "lines": filled("\n"),
    "numbers": filled("0.12345, 1, "),
    "one line": filled("word and other things "),
    "digests": filled("deadbeef "),
    "a digest without end": filled("deadbeef"),
    "marks": "a" + filled("\u0301\u0316", 100_000),
    "phrases in a sign": filled("\ufdfa", 100_000),
    "words in a sign": filled("\u3316", 100_000),
    "half a question": filled("".join(FERRY.split())[:20] + "\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("path", ["harness.py", "data.json"])
def test_no_text_keeps_the_scan_from_what_is_behind_it(name: str, path: str) -> None:
    # What takes more than time in proportion to a text would take many minutes here.
    assert found(f"{ENDLESS[name]}\n{STAIRS}\n", path) == {("trip-test-004", "question")}


PACKED = base64.b64encode(zlib.compress(b"a,b;" * 5_000)).decode()
TOO_MUCH: dict[str, Callable[[], bytes]] = {
    "harness.py": lambda: filled("x = 'a'\n", 4_000_000).encode(),
    "packed.py": lambda: filled(f"x = '{PACKED}'\n", 2_000_000).encode(),
    "data.csv": lambda: filled("abcde,", 5_000_000).encode(),
    "data.txt": lambda: filled("经审理查明", 20_000_000 // 3).encode(),
}


@pytest.mark.parametrize("path", first(2, TOO_MUCH))
def test_a_file_too_large_to_be_searched_is_reported(path: str) -> None:
    scan = LeakScan(SECRETS)
    files = {path: TOO_MUCH[path](), "a/b.py": f"X = {MUSEUM!r}".encode()}
    leaks = scan.scan(files)
    assert [(leak.path, leak.task, leak.what) for leak in leaks] == [
        ("a/b.py", "trip-001", "question"),
        (path, "", "unread"),
    ]
    assert str(leaks[1]) == f"{path}: could not be searched in full; it is too large, or not text"


def test_a_text_is_always_read_equally_far() -> None:
    source = filled("x = 'ab'\n", 400_000).encode()
    units = [texts_of("a.py", source, Work(left=MOST_WORK // 10)).units for _ in range(2)]
    assert units[0] == units[1]
    assert 1_000 < len(units[0]) < source.count(b"'ab'")


def test_what_could_not_be_searched_is_refused_where_leaks_are() -> None:
    unread = str(Leak(path="data.gz", line=1, task="", what="unread"))
    leak = str(Leak(path="a.py", line=1, task="t-1", what="question"))
    rules = Rules(refuse_leaks=True)
    assert rules.refusal([unread]) == (
        "it may mention tasks it must not know: data.gz: could not be searched in full; "
        "it is too large, or not text"
    )
    assert rules.refusal([leak, unread]).startswith("it mentions tasks it must not know: a.py")
    assert Rules().refusal([unread]) == ""


def test_an_ordinary_candidate_is_searched_to_its_end() -> None:
    rng = random.Random(0)
    files = {
        "harness.py": (CLEAN * (250_000 // len(CLEAN))).encode(),
        "weights.json": json.dumps([rng.random() for _ in range(15_000)]).encode(),
        "table.csv": "".join(f"{n},{rng.random():.3f},blue\n" for n in range(15_000)).encode(),
    }
    assert LeakScan(SECRETS, sealed=SEALED).scan(files) == ()


NAMES = {
    f"data/{FERRY.rstrip('?')}.txt": ("trip-002", "question"),
    f"data/{FERRY[:40].replace(' ', '_')}": ("trip-002", "question"),
    f"{FERRY[:30]}/{FERRY[30:60]}.py": ("trip-002", "question"),
    base64.urlsafe_b64encode(STAIRS.encode()).decode(): ("trip-test-004", "question"),
    REACTANTS: ("uspto-003", "answer"),
    "known/law-007.txt": ("law-007", "id"),
    "law-007/answer.txt": ("law-007", "id"),
}


@pytest.mark.parametrize("path", NAMES)
def test_a_task_is_found_in_the_name_of_a_file(path: str) -> None:
    (leak,) = LeakScan(SECRETS, sealed=SEALED).scan({path: b""})
    assert ((leak.task, leak.what), leak.line) == (NAMES[path], 0)
    assert f": the name of the file has the {leak.what} of " in str(leak)


def test_the_name_of_a_file_is_not_told_if_it_is_a_leak() -> None:
    path = f"data/{STAIRS}.txt"
    leaks = LeakScan(SECRETS, sealed=SEALED).scan({path: f"X = {FERRY!r}".encode()})
    assert [str(leak) for leak in leaks] == [
        "data/How man...: the name of the file has the question of a task of the sealed test",
        "data/How man..., line 1: has the question of task 'trip-002'",
    ]


def test_quotable_names_are_not_leaks() -> None:
    scan = LeakScan(SECRETS, known=[{"law-007.py": b"", f"{FERRY}.txt": b""}])
    assert scan.scan({"lib/law-007.py": b"X = 'law-007'", f"{FERRY}.json": b""}) == ()


@pytest.mark.parametrize("damage", [b"", b"\x00\xff"])
def test_what_a_small_file_unpacks_to_is_bounded(damage: bytes) -> None:
    bomb = zlib.compress(b"a" * 20_000_000, 9)
    coded = base64.b64encode(bomb[:-100] + damage if damage else bomb).decode()
    source = "".join(f"a{i} = '{coded}'\n" for i in range(10))
    work = Work()
    start = time.process_time()
    texts = texts_of("harness.py", source.encode(), work)
    assert sum(len(stream.text) for stream in texts.streams) < MOST_WORK // ASCII
    assert work.short
    assert time.process_time() - start < 10  # about 0.5 s


def test_a_long_file_is_searched_too() -> None:
    words = " ".join(f"word{n} and" for n in range(250_000))
    assert found(f"{words}\n{FERRY}\n{words}", "data.txt") == {("trip-002", "question")}
    escaped = CHARGE.encode("unicode_escape").decode()
    (leak,) = LeakScan(SECRETS).scan({"data.json": f'["{words}",\n"{escaped}"]'.encode()})
    assert (leak.task, leak.what) == ("law-007", "question")


LITERALS = r"""
x = 'I\'m' ' here'
# 'not this'
y = rb'\d', b'\xe7\xbb\x8f', u'\x41\102\
'
z = 'one ' r"\two" '' f' four'  # 'nor this'
w = '''it's "so"
and''', "it's"
"""


def test_literals_are_read_as_python_reads_them() -> None:
    constants = [n.value for n in ast.walk(ast.parse(LITERALS)) if isinstance(n, ast.Constant)]
    values = {value.decode() if isinstance(value, bytes) else value for value in constants}
    units = {unit.text for unit in texts_of("a.py", LITERALS.encode(), Work()).units}
    assert values - {""} == units - {""}
