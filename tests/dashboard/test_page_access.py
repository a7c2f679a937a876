"""Who may see the pages: not another site, not without the token, and never too much at once."""

import contextlib
import http.client
import json
import logging
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.cookies import SimpleCookie
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("starlette", reason="starlette is missing")
pytest.importorskip("uvicorn", reason="uvicorn is missing")

from coevolve.cli.main import app
from coevolve.dashboard import run_catalogue, web_server
from coevolve.dashboard.page_access import HEADERS, POLICY, Access, is_loopback
from coevolve.dashboard.run_catalogue import Catalogue
from coevolve.store import RunStore
from tests.dashboard.browsing import Site
from tests.dashboard.conftest import Serve
from tests.dashboard.sample_runs import opened_run
from tests.effort import effort

TOKEN = "a long secret that nobody knows"


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


def ask(site: Site, path: str, method: str = "GET", **headers: str) -> Answer:
    """Send one request; underscores in the names of headers stand for hyphens."""
    at = urlsplit(site.url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, headers=given)
        found = connection.getresponse()
        streamed = "event-stream" in found.headers.get("content-type", "")
        return Answer(found.status, found.headers, b"" if streamed else found.read())
    finally:
        connection.close()


def exchange(site: Site, data: bytes) -> bytes:
    """Everything that comes back for some bytes, until the server closes the connection."""
    at = urlsplit(site.url)
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=60) as line:
        line.sendall(data)
        return b"".join(iter(lambda: line.recv(65536), b""))


@pytest.fixture(scope="module")
def site(finished: Path) -> Iterator[Site]:
    found = Site([finished])
    yield found
    found.stop()


@pytest.fixture(scope="module")
def secret(finished: Path) -> Iterator[Site]:
    found = Site([finished], token=TOKEN)
    yield found
    found.stop()


def check_headers(found: Answer) -> None:
    for name, value in HEADERS.items():
        assert found.headers.get_all(name) == [value], name
    assert found.headers["cache-control"] in ("no-store", "no-cache")
    assert "access-control-allow-origin" not in found.headers
    assert "server" not in found.headers


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 307),
        ("/runs/sample", 200),
        ("/runs/sample/matrix", 200),
        ("/runs/sample/candidate?name=plain", 200),
        ("/runs/sample/matrix.json", 200),
        ("/runs/sample/cell.json?candidate=plain&task=law-1", 200),
        ("/runs/sample/cell.json", 404),
        ("/runs/sample/report.html", 200),
        ("/runs/sample/figures/matrix.svg", 200),
        ("/runs/sample/figures/nothing.svg", 404),
        ("/runs/sample/stream", 200),
        ("/stream", 200),
        ("/compare?run=sample", 200),
        ("/assets/page.css", 200),
        ("/assets/live.js", 200),
        ("/assets/icon.svg", 200),
        ("/assets/nothing.js", 404),
        ("/runs/sample/nothing", 404),
        ("/runs/nobody", 404),
        ("/runs/nobody/stream", 404),
        ("/runs/nobody/matrix.json", 404),
        ("/replays/nothing", 404),
        ("/nothing/at/all", 404),
    ],
)
def test_every_answer_has_the_policy(site: Site, path: str, status: int) -> None:
    found = ask(site, path)
    assert found.status == status
    check_headers(found)


def test_refusals_have_the_policy_too(site: Site, secret: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "ODD"):
        found = ask(site, "/runs/sample", method)
        assert found.status == 405
        check_headers(found)
    for found, status in (
        (ask(site, "/", host="attack.example"), 421),
        (ask(site, "/", origin="http://attack.example"), 403),
        (ask(secret, "/"), 401),
    ):
        assert found.status == status
        assert b"sample" not in found.body
        check_headers(found)


def test_the_policy_allows_nothing_inside_a_page_and_nothing_from_elsewhere() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    for name, value in rules.items():
        assert "unsafe" not in value, name
        assert "http" not in value, name
        assert "*" not in value, name
        assert "data:" not in value, name


@pytest.mark.parametrize(
    "host",
    [
        "attack.example", "attack.example:80", "127.0.0.1.attack.example", "localhost.a.example",
        "attack.example#localhost", "localhost@attack.example", "[::1].attack.example", "0.0.0.0",
        "192.168.1.7", "localhost:80:80", "localhost:port", "[::1", "", " ", "\xe9", "x" * 5_000,
    ],
)  # fmt: skip
def test_a_name_that_another_site_can_take_is_refused(site: Site, host: str) -> None:
    assert ask(site, "/runs/sample", host=host).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8000"])
def test_the_names_of_this_machine_are_accepted(site: Site, host: str) -> None:
    assert ask(site, "/runs/sample", host=host).status == 200


def test_a_request_of_another_site_is_refused(site: Site) -> None:
    own = site.url.removeprefix("http://")
    other = "http://localhost:" + own.partition(":")[2]
    for origin in (other, "http://127.0.0.1:1", f"https://{own}", "null", "", "file://"):
        assert ask(site, "/runs/sample/matrix.json", origin=origin).status == 403, origin
    assert ask(site, "/runs/sample/matrix.json", origin=site.url).status == 200
    for where in ("cross-site", "same-site", "new-value"):
        for mode in ("no-cors", "cors", "same-origin", "websocket"):
            found = ask(site, "/stream", sec_fetch_site=where, sec_fetch_mode=mode)
            assert found.status == 403, (where, mode)
        for kind in ("iframe", "frame", "object", "embed"):
            found = ask(
                site, "/runs/sample",
                sec_fetch_site=where, sec_fetch_mode="navigate", sec_fetch_dest=kind,
            )  # fmt: skip
            assert found.status == 403, (where, kind)


def test_a_link_on_another_site_may_lead_here(site: Site) -> None:
    found = ask(
        site, "/runs/sample",
        sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="document",
    )  # fmt: skip
    assert found.status == 200


def _cookies(found: Answer) -> list[str]:
    jar = SimpleCookie(found.headers["set-cookie"])
    return [f"{name}={one.value}" for name, one in jar.items()]


def test_the_token_is_in_the_address_once_and_then_a_cookie(secret: Site) -> None:
    found = ask(secret, f"/runs/sample/candidate?token={quote(TOKEN)}&name=plain&x=%26%0d%0a")
    assert found.status == 303
    assert found.headers["location"] == "/runs/sample/candidate?name=plain&x=%26%0D%0A"
    check_headers(found)
    given = found.headers["set-cookie"].lower()
    for flag in ("httponly", "samesite=strict", "path=/"):
        assert flag in given
    assert "domain" not in given
    assert TOKEN not in str(found.headers)
    [cookie] = _cookies(found)
    assert ask(secret, "/runs/sample", cookie=cookie).status == 200
    assert ask(secret, "/runs/sample/stream", cookie=cookie).status == 200
    page = ask(secret, "/runs/sample", cookie=cookie).body.decode()
    assert cookie.partition("=")[2] not in page
    assert TOKEN not in page


def test_a_wrong_token_shows_nothing(secret: Site) -> None:
    name = _cookies(ask(secret, f"/?token={quote(TOKEN)}"))[0].partition("=")[0]
    for wrong in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "\U0001f511", "%ff%fe", "\0"):
        assert ask(secret, f"/runs/sample?token={quote(wrong, safe='%')}").status == 401, wrong
    for cookie in (f"{name}=", f"{name}={TOKEN}", name, f'{name}="\\303\\251"', ";;;", "=", "é=é"):
        assert ask(secret, "/runs/sample", cookie=cookie).status == 401, cookie
    for path in ("/", "/stream", "/assets/page.css", "/runs/nobody", "/runs/sample/matrix.json"):
        assert ask(secret, path).status == 401, path


def test_a_token_may_have_any_letters(served: Serve, finished: Path) -> None:
    site = served(finished, token="ключ 🔑 + & ; =")
    found = ask(site, f"/?token={quote('ключ 🔑 + & ; =', safe='')}")
    assert found.status == 303
    assert ask(site, "/runs/sample", cookie=_cookies(found)[0]).status == 200


def test_the_token_does_not_lead_to_another_site(secret: Site) -> None:
    for path in ("//attack.example/x", "/%2Fattack.example", "/\\attack.example", "/%0d%0aa:b"):
        found = ask(secret, f"{path}?token={quote(TOKEN)}")
        assert found.status == 303
        where = found.headers["location"]
        assert where.startswith("/")
        assert where[1] not in "/\\"
        assert "a:b" not in where.replace("%0D%0Aa:b", "")


def test_two_servers_of_one_machine_keep_their_cookies_apart(
    served: Serve, finished: Path
) -> None:
    sites = [served(finished, token=f"secret number {i}") for i in range(2)]
    cookies = [
        _cookies(ask(one, f"/?token=secret%20number%20{i}"))[0] for i, one in enumerate(sites)
    ]
    both = "; ".join(cookies)
    assert [ask(one, "/runs/sample", cookie=both).status for one in sites] == [200, 200]
    assert [ask(one, "/runs/sample", cookie=cookies[0]).status for one in sites] == [200, 401]


def test_with_a_token_a_number_is_a_name_because_no_site_can_take_it(secret: Site) -> None:
    given = f"/?token={quote(TOKEN)}"
    assert ask(secret, given, host="192.168.1.7:8100").status == 303
    assert ask(secret, given, host="[fe80::1]:8100").status == 303
    assert ask(secret, given, host="attack.example").status == 421


def test_the_secret_is_not_printed_with_its_rules() -> None:
    assert TOKEN not in repr(Access(frozenset(), TOKEN))


def test_only_loopback_goes_without_a_token() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    for host in ("0.0.0.0", "::", "192.168.1.7", "example.org", "127.0.0.1.example.org", ""):
        assert not is_loopback(host), host


@pytest.mark.parametrize("token", ["", "short", "new\nline and more", "esc\x1b[2J and more"])
def test_a_token_that_is_no_secret_is_refused(
    token: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        app(["ui", str(tmp_path), "--port", "0", "--token", token])
    assert end.value.code
    said = "".join(capsys.readouterr())
    assert "--token" in said
    assert "\x1b[2J" not in said


ODD_QUERIES = (
    "round=²", "round=99999999999999999999", "round=-1", "round=1&round=²", "from=²", "from=-1",
    "from=999999999999999999999999", "from=1e3", "since=²", "since=-1", "since=" + "9" * 5_000,
    "sort=x&sort=y", "find=" + "e%20" * 10_000, "kind=x", "kind=__proto__", "measure=seconds",
    "measure=x", "axis=round", "axis=x", "run=sample&run=nobody&run=", "split=x", "name=%ff%fe",
    "name=%ed%a0%80", "name=%00", "name=%", "name=%zz", "name=..%2f..", "key=1&page=2&self=3",
    "tasks=%0a%0a", "against=x", "candidate=plain&task=law-1", "candidate=%00&task=%ff", "=&=&;",
    "&" * 5_000, "token=x", "width=1e9", "x=" + "y" * 50_000,
)  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["", "/matrix", "/frontier", "/lineage", "/costs", "/failures", "/candidate", "/task",
     "/trial", "/matrix.json", "/cell.json", "/figures/matrix.svg", "/compare"],
)  # fmt: skip
def test_no_query_makes_a_page_fail(site: Site, path: str) -> None:
    where = path if path == "/compare" else f"/runs/sample{path}"
    named = {"/candidate": "name=plain", "/task": "name=law-1", "/trial": "candidate=plain"}
    for query in ODD_QUERIES:
        asked = quote(f"{where}?{named.get(path, '')}&{query}", safe="/?&=%;")
        found = ask(site, asked)
        assert found.status in (200, 404), query
        assert len(found.body) < 1_000_000, query


def test_pages_after_the_first_keep_any_query(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coevolve.dashboard.run_pages.STEP", 2)
    found = ask(site, "/runs/sample?key=1&page=2&ask=3&url=4&self=5&from=2")
    assert found.status == 200
    assert b"Previous" in found.body


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../page_access.py", "/assets/..%2fpage_access.py", "/assets/%2e%2e/a.py",
        "/assets/....//page.css", "/assets//etc/passwd", "/assets/page.css%00.js", "/assets/",
        "/runs/../../etc/passwd", "/runs/%2e%2e", "/runs/..%2fsample", "/runs/sample%00",
        "/runs/sample/..%2f..%2frun.db", "/runs/sample/run.db", "/replays/..%2f..%2fetc%2fpasswd",
        "/runs/sample/figures/..%2fmatrix.svg", "/runs/sample/figures/matrix.svg.exe",
        "/runs/sample/figures/__class__.svg", "/runs/%ff%fe", "/runs/" + "x" * 5_000,
    ],
)  # fmt: skip
def test_no_path_leads_to_other_files(site: Site, path: str) -> None:
    found = ask(site, path)
    assert found.status == 404
    assert len(found.body) < 4_000
    assert b"root:" not in found.body
    assert b"SQLite" not in found.body


def test_files_to_save_have_plain_names(served: Serve, tmp_path: Path) -> None:
    folder = opened_run(tmp_path / 'a"; filename=evil.exe; é\x1b[2J <b>')
    site = served(folder)
    where = ask(site, "/").headers["location"]
    for name in ("report.html", "figures/matrix.svg"):
        given = ask(site, f"{where}/{name}").headers["content-disposition"]
        assert given.startswith('attachment; filename="')
        assert given.count('"') == 2
        assert given.isascii()
        assert given.isprintable()
    assert "\x1b" not in ask(site, where).body.decode()


def test_cookies_of_other_programs_do_not_get_into_headers(site: Site) -> None:
    plain = ask(site, "/runs/sample").headers["etag"]
    for value in ('"\\015\\012x: y"', '"\\"', "é", "x" * 9_000):
        found = ask(site, "/runs/sample", cookie=f"coevolve-theme={value}; coevolve-width={value}")
        assert found.status == 200
        assert found.headers["etag"] == plain
        assert "x" not in found.headers


def test_a_copy_in_the_browser_is_not_taken_for_another_run_of_that_name(
    served: Serve, tmp_path: Path
) -> None:
    tags = []
    for name in ("a", "b"):
        site = served(opened_run(tmp_path / name / "run"))
        tags.append(ask(site, "/runs/run").headers["etag"])
    assert tags[0] != tags[1]


def test_a_head_has_no_body_and_ends(site: Site) -> None:
    for path in ("/runs/sample", "/stream", "/runs/sample/stream", "/assets/page.css"):
        sent = f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        found = exchange(site, sent.encode())
        assert found.startswith(b"HTTP/1.1 200")
        assert found.endswith(b"\r\n\r\n")
        assert POLICY.encode() in found


def test_requests_in_one_go_are_answered_in_order(site: Site) -> None:
    one = "GET {} HTTP/1.1\r\nHost: {}\r\n{}\r\n"
    sent = one.format("/assets/icon.svg", "localhost", "")
    sent += one.format("/assets/icon.svg", "attack.example", "")
    sent += one.format("/runs/nobody", "localhost", "Connection: close\r\n")
    found = exchange(site, sent.encode())
    assert re.findall(rb"HTTP/1\.1 (\d+)", found) == [b"200", b"421", b"404"]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: attack.example\r\n\r\n",
        b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /?x=" + b"y" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        b"\0\xff\r\n\r\n",
    ],
)
def test_a_request_that_is_not_valid_is_refused(site: Site, sent: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # closed before everything was sent
        assert exchange(site, sent).startswith(b"HTTP/1.1 4")
    assert ask(site, "/runs/sample").status == 200


def test_a_websocket_is_refused(site: Site) -> None:
    found = ask(
        site, "/stream", connection="Upgrade", upgrade="websocket",
        sec_websocket_key="x" * 22 + "==", sec_websocket_version="13", origin="http://a.example",
    )  # fmt: skip
    assert found.status == 403


def _begin(site: Site, path: str = "/stream") -> socket.socket:
    """A connection that asked for something and reads nothing."""
    at = urlsplit(site.url)
    line = socket.create_connection((at.hostname or "", at.port or 0), timeout=60)
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return line


def test_streams_are_bounded_and_end_with_the_server(
    served: Serve, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "MOST_STREAMS", 20)
    site = served(finished)
    lines = [_begin(site, "/stream" if i % 2 else "/runs/sample/stream") for i in range(40)]
    firsts = [line.recv(12) for line in lines]
    assert firsts.count(b"HTTP/1.1 200") == 20
    assert firsts.count(b"HTTP/1.1 503") == 20
    assert ask(site, "/runs/sample").status == 200
    check_headers(ask(site, "/stream"))
    site.stop()
    for line in lines:
        with contextlib.suppress(ConnectionError):
            while line.recv(65536):
                pass
        line.close()


def test_a_stream_that_ends_leaves_its_place(
    served: Serve, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "MOST_STREAMS", 2)
    site = served(finished, tick=0.02)
    for _ in range(6):
        line = _begin(site)
        while line.recv(12) != b"HTTP/1.1 200":  # until the one before has gone
            line.close()
            line = _begin(site)
        line.close()


def test_clients_that_send_or_read_nothing_do_not_stop_others(site: Site) -> None:
    at = urlsplit(site.url)
    lines = [socket.create_connection((at.hostname or "", at.port or 0)) for _ in range(50)]
    lines += [_begin(site, "/runs/sample") for _ in range(20)]
    try:
        assert ask(site, "/runs/sample").status == 200
    finally:
        for line in lines:
            line.close()


def test_a_storm_of_requests_is_answered(site: Site) -> None:
    paths = ("/runs/sample", "/runs/sample/matrix.json", "/runs/sample/candidate?name=plain", "/x")
    asked = [paths[i % len(paths)] for i in range(effort(120, 500))]
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda path: ask(site, path).status, asked))
    assert set(found) == {200, 404}
    assert found.count(404) == len(asked) // 4


def _runs(folder: Path, count: int) -> Sequence[str]:
    """A folder with many runs; they share the bytes of one."""
    first = opened_run(folder / "run-0")
    data = (first / "run.db").read_bytes()
    for number in range(1, count):
        other = folder / f"run-{number}"
        other.mkdir()
        (other / "run.db").write_bytes(data)
    return [f"run-{number}" for number in range(count)]


def test_few_of_many_runs_are_in_memory(served: Serve, tmp_path: Path) -> None:
    names = _runs(tmp_path, effort(60, 500))
    catalogue = Catalogue([tmp_path])
    opened = []
    for name in names:
        feed = catalogue.feed(name)
        assert feed is not None
        feed.moment()
        opened.append(feed)
    assert sum(map(catalogue.keeps, opened)) == run_catalogue.MOST_FEEDS
    assert sum(feed._store is not None for feed in opened) == run_catalogue.MOST_FEEDS
    catalogue.close()
    site = served(tmp_path)
    page = ask(site, "/")
    assert page.status == 200
    assert page.body.count(b'type="checkbox"') == len(names)
    line = _begin(site, "/runs/run-0/stream")
    for name in names[:30]:
        assert ask(site, f"/runs/{name}").status == 200
        assert ask(site, f"/runs/{name}/matrix.json").status == 200
    received = b""
    while b"retry: 10000" not in received:  # the run is forgotten, and its stream ends
        received += line.recv(65536)
    line.close()


def test_many_different_figures_are_not_all_kept(site: Site, finished: Path) -> None:
    from coevolve.dashboard.page_frame import Ask
    from coevolve.dashboard.run_feed import MOST_FIGURES, RunFeed
    from coevolve.dashboard.run_pages import frontier_page

    feed = RunFeed(finished)
    moment = feed.moment()
    for i in range(MOST_FIGURES + 10):
        tasks = "\n".join(f"law-{k}" for k in range(12) if (i + 1) >> k & 1)
        frontier_page(feed, Ask(key="sample", query={"tasks": tasks}), moment)
    assert sum(key[0] == "figure" for key in feed._made) == MOST_FIGURES
    feed.close()


def _damage(folder: Path, how: str) -> None:
    journal = folder / "run.db"
    if how == "empty":
        journal.write_bytes(b"")
    elif how == "text":
        journal.write_text("<script>attacked=1</script>\x1b[2J" * 1_000)
    elif how == "cut":
        journal.write_bytes(journal.read_bytes()[:5_000])
    elif how == "folder":
        journal.unlink()
        journal.mkdir()
    elif how == "loop":
        journal.unlink()
        journal.symlink_to(journal)
    elif how == "nothing opened":
        journal.unlink()
        RunStore.create(folder).close()


@pytest.mark.parametrize("how", ["empty", "text", "cut", "folder", "loop", "nothing opened"])
def test_a_journal_that_is_none_has_a_page_that_says_so(
    how: str, served: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("good", "bad"):
        opened_run(tmp_path / name)
    _damage(tmp_path / "bad", how)
    with caplog.at_level(logging.WARNING):
        site = served(tmp_path)
        listed = ask(site, "/")
        for path in ("", "/matrix", "/matrix.json", "/report.html", "/figures/matrix.svg", ""):
            found = ask(site, f"/runs/bad{path}")
            assert found.status in (404, 503), path
            check_headers(found)
            assert b"<script>attacked" not in found.body
        assert ask(site, "/runs/good").status == 200
        assert ask(site, "/compare?run=good&run=bad").status == 200
    assert listed.status in (200, 307)
    assert caplog.records == []


def test_a_page_that_fails_is_logged_without_what_a_terminal_obeys(
    served: Serve,
    finished: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*given: object) -> None:
        raise ValueError("\x1b[2J\u202e")

    monkeypatch.setitem(web_server.PAGES, "costs", fail)
    site = served(finished)
    with caplog.at_level(logging.ERROR):
        found = ask(site, "/runs/sample/costs")
        site.stop()
    assert found.status == 500
    check_headers(found)
    assert found.body == b"Internal Server Error"
    assert "\\x1b[2J\\u202e" in caplog.text
    assert not {"\x1b", "\u202e"} & set(caplog.text)


def test_json_is_never_a_script(site: Site) -> None:
    for path in ("/runs/sample/matrix.json", "/runs/sample/cell.json", "/runs/nobody/matrix.json"):
        found = ask(site, path)
        assert found.headers["content-type"] == "application/json"
        assert isinstance(json.loads(found.body), dict)
        assert found.body.isascii()


def test_threads_that_ask_for_new_runs_get_one_feed_each(tmp_path: Path) -> None:
    names = _runs(tmp_path, 4)
    catalogue = Catalogue([tmp_path])
    barrier = threading.Barrier(16)

    def get(number: int) -> object:
        barrier.wait()
        return catalogue.feed(names[number % 4])

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(get, range(16)))
    assert len(set(found)) == 4
    catalogue.close()
