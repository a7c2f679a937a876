"""Tasks that a candidate knows by heart are found, however it writes them down."""

import ast
import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import textwrap
import zipfile
import zlib
from collections.abc import Callable

import pytest

from coevolve.search.leaks import Leak, LeakScan, Secret, summary
from coevolve.search.leaks.packing import MOST_BYTES
from coevolve.search.leaks.texts import texts_of

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
    "base85": lambda q: f"X = {base64.b85encode(q.encode())!r}",
    "base32": lambda q: f"X = {base64.b32encode(q.encode())!r}",
    "hexadecimal": lambda q: f"X = {q.encode().hex()!r}",
    "packed": lambda q: f"X = {base64.b64encode(zlib.compress(q.encode()))!r}",
    "packed table": lambda q: (
        f"X = {base64.b85encode(gzip.compress(json.dumps({q: 'blue'}).encode()))!r}"
    ),
    "sha256": lambda q: f"X = {{{hashlib.sha256(q.encode()).hexdigest()!r}: 'blue'}}",
    "eight digits of sha256": lambda q: f"X = {hashlib.sha256(q.encode()).hexdigest()[:8]!r}",
    "md5 of lower case": lambda q: f"X = {hashlib.md5(q.lower().encode()).hexdigest()[:10]!r}",
    "blake2": lambda q: f"X = {hashlib.blake2b(q.encode(), digest_size=8).hexdigest()!r}",
    "crc32": lambda q: f"def f(q): return zlib.crc32(q.encode()) == {zlib.crc32(q.encode())}",
    "crc32 as hex": lambda q: f"X = 0x{zlib.crc32(q.strip().encode()):08X}",
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
    "data.bin": lambda q: b"\x00\xff\x01" + q.encode() + b"\x80\x00",
    "wide.txt": lambda q: q.encode("utf-16"),
    "data.b64": lambda q: base64.encodebytes((CLEAN + q).encode()),
    "data.zip": zipped,
    "data.gz": lambda q: gzip.compress(q.encode()),
    "data.bz2": lambda q: bz2.compress(q.encode()),
    "data.xz": lambda q: lzma.compress(q.encode()),
}


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("task", ["trip-001", "trip-002", "law-007"])
def test_a_question_is_found_in_data(task: str, path: str) -> None:
    assert found(FILES[path](SECRETS[task].text), path) == {(task, "question")}


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


def test_what_may_be_quoted_is_no_leak() -> None:
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
    assert leak.to_json() == {
        "path": "lib/data.py",
        "line": 4,
        "task": "trip-test-004",
        "what": "question",
        "sealed": True,
    }
    assert "staircase" not in f"{leak!r}{leak}"


def test_many_leaks_are_told_in_one_line() -> None:
    leaks = [Leak(path="a.py", line=n, task=f"t-{n}", what="question") for n in range(1, 9)]
    assert summary(leaks).startswith("a.py, line 1: has the question of task 't-1'; a.py, line 2")
    assert summary(leaks).endswith("'t-3'; and 5 more")


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
    "a damaged archive": b"PK\x03\x04" + bytes(100),
    "a bomb": gzip.compress(bytes(50_000_000)),
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("path", ["harness.py", "data.json"])
def test_nothing_a_candidate_brings_along_breaks_the_scan(name: str, path: str) -> None:
    assert found(NASTY[name], path) == set()


def test_what_a_small_file_unpacks_to_is_bounded() -> None:
    bomb = base64.b64encode(bz2.compress(b"a" * MOST_BYTES)).decode()
    source = "".join(f"a{i} = '{bomb}'\n" for i in range(5))
    assert len(source) < 1_000
    read = sum(len(stream.text) for stream in texts_of("harness.py", source.encode()).streams)
    assert MOST_BYTES <= read < 2 * MOST_BYTES


def test_a_question_is_found_in_what_is_damaged_behind_it() -> None:
    packed = bytearray(gzip.compress(FERRY.encode() + bytes(5_000_000)))
    packed[-6] ^= 255
    assert [leak.task for leak in LeakScan(SECRETS).scan({"data.gz": bytes(packed)})] == [
        "trip-002"
    ]


def test_a_long_file_is_searched_too() -> None:
    words = " ".join(f"word{n} and" for n in range(250_000))
    assert found(f"{words}\n{FERRY}\n{words}", "data.txt") == {("trip-002", "question")}
    escaped = CHARGE.encode("unicode_escape").decode()
    (leak,) = LeakScan(SECRETS).scan({"data.json": f'["{words}",\n"{escaped}"]'.encode()})
    assert (leak.task, leak.what) == ("law-007", "question")


def test_literals_are_read_as_python_reads_them() -> None:
    source = "x = 'I\\'m' ' here'\n# 'not this\ny = f'a{x}b'\nz = rb'\\d'"
    constants = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
    assert {unit.text for unit in texts_of("a.py", source.encode()).units} == {
        value.decode() if isinstance(value, bytes) else value for value in constants
    }
