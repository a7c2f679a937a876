"""Every page in a browser: no error, no request to elsewhere, accessible, and fit for a phone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.command import coevolve
from tests.dashboard.browsing import Site, Watch
from tests.dashboard.conftest import NewPage, Serve
from tests.dashboard.sample_runs import finished_run
from tests.effort import effort

if TYPE_CHECKING:
    from playwright.sync_api import Page

RUN = "/runs/sample"
PAGES = {
    "runs": ("/", "Runs"),
    "overview": (RUN, "r1-0 won"),
    "matrix": (f"{RUN}/matrix", "Matrix of outcomes"),
    "frontier": (f"{RUN}/frontier", "Frontier"),
    "lineage": (f"{RUN}/lineage", "Lineage"),
    "costs": (f"{RUN}/costs", "Costs"),
    "failures": (f"{RUN}/failures", "Failures"),
    "candidate": (f"{RUN}/candidate?name=r1-0", "r1-0"),
    "task": (f"{RUN}/task?name=law-1", "law-1"),
    "chat": (f"{RUN}/trial?candidate=r1-0&task=law-1", "r1-0 on law-1"),
    "terminal": (f"{RUN}/trial?candidate=plain&task=s2d-1", "plain on s2d-1"),
    "comparison": ("/compare?run=sample&run=other", "Runs side by side"),
    "replay": ("/replays/replay", "replay.json"),
}


@pytest.fixture(scope="session")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with two runs, and a file of a replay."""
    folder = tmp_path_factory.mktemp("several")
    finished_run(folder / "runs" / "sample")
    finished_run(folder / "runs" / "other", rounds=1)
    table = folder / "table.csv"
    rows = [f"c{i},t{j},{int(i + j > 5)}" for i in range(6) for j in range(8)]
    table.write_text("\n".join(["candidate,task,score", *rows]) + "\n")
    options = ("--seeds", 3, "--fractions", 0.5, "--workers", 1, "--json")
    told = coevolve("replay", table, "--protocols", "naive,task-coevolve", *options)
    assert told.returncode == 0, told.stderr
    (folder / "replay.json").write_text(told.stdout)
    return folder, folder / "replay.json"


@pytest.fixture
def site(served: Serve, several: tuple[Path, Path]) -> Site:
    return served(*several)


def show(page: "Page", url: str, heading: str) -> None:
    """Open a page, and wait until its scripts have done their work."""
    page.goto(url)
    page.wait_for_load_state("load")
    assert heading in page.inner_text("h1")
    if page.query_selector("#matrix"):
        page.wait_for_selector("#matrix[data-ready]")


def overflow(page: "Page") -> float:
    """Pixels by which a page is wider than the window."""
    found: float = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1280), ("dark", 390)], ids=["desk", "phone in the dark"]
)
def test_no_page_has_an_error_or_asks_another_server(
    pages: NewPage, watch: Watch, site: Site, theme: str, width: int
) -> None:
    page = pages(theme=theme, width=width)
    for name, (path, heading) in PAGES.items():
        show(page, site.url + path, heading)
        assert overflow(page) <= 0, f"{name} is wider than {width} pixels"
        paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(20, 24, 29)" if theme == "dark" else "rgb(255, 255, 255)"), name
    assert all(url.startswith(f"{site.url}/") for url in watch.requests)
    assert len(watch.requests) > 2 * len(PAGES)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_problem(pages: NewPage, site: Site, theme: str) -> None:
    library = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    # Axe is a script that the policy of the pages forbids.
    page = pages(theme=theme, bypass_csp=True)
    axe = library.Axe()
    problems: list[str] = []
    some = [*PAGES] if theme == "light" else ["overview", "matrix", "candidate", "chat"]
    for name in effort(some, [*PAGES]):
        path, heading = PAGES[name]
        show(page, site.url + path, heading)
        for details in page.query_selector_all("details:not([open])"):
            details.evaluate("one => { one.open = true; }")
        found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        problems += [
            f"{name}: {one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
    assert problems == []


def test_pages_can_be_read_without_scripts(pages: NewPage, site: Site) -> None:
    page = pages(scripts=False)
    for name, (path, heading) in PAGES.items():
        page.goto(site.url + path)
        assert heading in page.inner_text("h1"), name
    page.goto(f"{site.url}{RUN}/matrix")
    assert page.get_by_role("link", name="the picture of the matrix").is_visible()
    # Forms and links do what scripts would do.
    page.goto(site.url + RUN)
    page.get_by_label("Filter candidates").fill("r1-0")
    page.get_by_role("button", name="Filter").click()
    assert rows(page) == ["r1-0"]
    page.goto(f"{site.url}{RUN}/candidate?name=r1-0")
    page.get_by_label("Compared with").select_option("terse")
    page.get_by_role("button", name="Compare").click()
    assert "-LIMIT = 2" in page.inner_text("pre.diff")


def rows(page: "Page") -> list[str]:
    """The candidates in the list of the overview, in their order."""
    return page.locator("#part-candidates tbody tr td:nth-child(2)").all_inner_texts()


def test_the_list_of_candidates_is_filtered_sorted_and_linked(page: "Page", site: Site) -> None:
    page.goto(site.url + RUN)
    everyone = rows(page)
    assert sorted(everyone) == sorted(
        ["plain", "terse", "r1-0", "r1-1", "r2-0", "r2-1", "r3-0", "r3-1"]
    )
    page.get_by_role("link", name="newest").click()
    page.wait_for_url("**sort=round")
    page.locator("#part-candidates tbody tr", has_text="r3-1").and_(
        page.locator("tr:first-child")
    ).wait_for()
    assert rows(page)[0] == "r3-1"
    page.get_by_label("Filter candidates").fill("INVALID SYNTAX")
    page.wait_for_url("**find=INVALID**")
    page.wait_for_function("() => document.querySelectorAll('#part-candidates tr').length === 2")
    assert rows(page) == ["r2-1"]
    assert page.evaluate("() => document.activeElement.name") == "find"
    # A link to this state shows it again, and the way back leads through it.
    address = page.url
    page.goto(f"{site.url}{RUN}/lineage")
    page.go_back()
    assert page.url == address
    assert rows(page) == ["r2-1"]
    page.go_back()
    page.wait_for_function("() => document.querySelectorAll('#part-candidates tr').length === 9")
    assert "sort" not in page.url
    assert rows(page) == everyone


def test_the_overview_says_what_won_and_what_it_cost(page: "Page", site: Site) -> None:
    page.goto(site.url + RUN)
    tiles = page.locator(".tiles").inner_text()
    for label in ("estimated score", "score on all tasks", "sealed test", "trials", "tokens"):
        assert label in tiles
    assert "of 900" in page.locator(".budget").inner_text()
    assert page.locator(".badge").first.inner_text() == "ended"
    # Marks of a figure have tips, and lead to their candidate.
    mark = page.locator("#figure-progress [data-candidate='r1-0']").first
    mark.hover(force=True)
    assert "r1-0" in page.locator("#tip").inner_text()
    mark.click(force=True)
    page.wait_for_url("**/candidate?name=r1-0")


def test_a_candidate_has_its_source_diff_outcomes_and_transcript(page: "Page", site: Site) -> None:
    page.goto(f"{site.url}{RUN}/candidate?name=r1-0")
    assert "Limit 10 leaves room" in page.inner_text(".hypothesis")
    source = page.locator("#file-0 pre.source")
    assert source.locator(".k").first.inner_text() == "import"
    assert source.locator(".l").nth(4).get_attribute("data-line") == "5"
    assert "LIMIT = 10" in source.inner_text()
    keyword = source.locator(".k").first.evaluate("one => getComputedStyle(one).color")
    assert keyword != source.evaluate("one => getComputedStyle(one).color")
    chosen = page.get_by_label("Compared with")
    assert "(parent)" in chosen.locator("option[selected]").inner_text()
    assert "+LIMIT = 10" in page.locator("pre.diff .a").all_text_contents()[-1]
    chosen.select_option("r3-1")
    page.wait_for_url("**against=r3-1**")
    page.wait_for_function(
        "() => document.querySelector('pre.diff').textContent.includes('-LIMIT = 31')"
    )
    marks = page.locator("#part-outcomes tbody td:nth-child(2)")
    assert marks.locator(".mark-failed").count() > 0
    page.locator("#part-outcomes").get_by_role("link", name="partial").click()
    page.wait_for_function("() => !document.querySelector('#part-outcomes .mark-failed')")
    assert marks.locator(".mark-partial").count() == marks.count() > 0
    page.locator("#transcript-proposal summary").click()
    assert "I try a limit." in page.inner_text("#transcript-proposal pre")
    # From an outcome to its trace.
    page.locator("#part-outcomes tbody a").first.click()
    page.wait_for_url("**/trial?candidate=r1-0**")


def test_traces_are_shown_as_turns(page: "Page", site: Site) -> None:
    page.goto(f"{site.url}{RUN}/trial?candidate=plain&task=law-1")
    assert page.locator(".turn h4").all_text_contents() == ["system", "user", "assistant"]
    assert page.inner_text(".turn.assistant span") == "Habeas corpus"
    page.goto(f"{site.url}{RUN}/trial?candidate=plain&task=s2d-1")
    assert "ls -la" in page.inner_text(".turn.agent")
    page.get_by_role("link", name="s2d-1").click()
    page.wait_for_url("**/task?name=s2d-1")
    assert page.locator("#part-draws tbody tr").count() > 0


def test_figures_and_the_report_are_files(page: "Page", site: Site) -> None:
    page.goto(f"{site.url}{RUN}/frontier")
    for name, start in (("SVG", b"<?xml"), ("PNG", b"\x89PNG")):
        with page.expect_download() as found:
            page.get_by_role("link", name=name, exact=True).first.click()
        assert found.value.path().read_bytes().startswith(start)
    with page.expect_download() as report:
        page.get_by_role("link", name="Report").click()
    assert report.value.suggested_filename == "sample-report.html"
    page.locator("select[name=round]").select_option("1")
    page.wait_for_selector("[aria-label='Draws of round 1']")
    assert "round=1" in page.url


def test_runs_and_protocols_are_compared(page: "Page", site: Site) -> None:
    page.goto(site.url)
    assert page.locator("#part-runs tbody tr").count() == 2
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?run=*")
    assert page.locator("#part-curves tbody tr td:first-child").all_inner_texts()[-2:] == [
        "other",
        "sample",
    ]
    page.get_by_role("link", name="dollars").click()
    page.wait_for_url("**axis=dollars")
    page.wait_for_function("() => document.querySelector('#part-curves').innerText.includes('$')")
    page.goto(site.url)
    page.get_by_role("link", name="replay.json").click()
    page.wait_for_url("**/replays/replay")
    assert page.locator("#figure-replay svg").is_visible()


def test_keys_lead_to_pages_and_the_theme_is_kept(page: "Page", site: Site) -> None:
    page.goto(site.url + RUN)
    page.keyboard.press("x")
    page.wait_for_url("**/failures")
    page.keyboard.press("o")
    page.wait_for_url(f"**{RUN}")
    page.keyboard.press("/")
    page.keyboard.type("m")  # into the filter: no page is opened
    page.wait_for_url("**find=m")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme").click()
    assert page.get_by_role("button", name="Theme").inner_text() == "Theme: dark"
    page.reload()
    assert page.get_by_role("button", name="Theme").inner_text() == "Theme: dark"
    assert page.get_attribute("html", "data-theme") == "dark"


NOWHERE = ("/runs/none", f"{RUN}/none", f"{RUN}/candidate?name=none", f"{RUN}/task",
           "/replays/none", f"{RUN}/trial?candidate=plain&task=none", "/nothing/here")  # fmt: skip


def test_what_does_not_exist_is_said(page: "Page", watch: Watch, site: Site) -> None:
    watch.allowed.append("status of 404")
    for path in NOWHERE:
        answer: Any = page.goto(site.url + path)
        assert answer.status == 404, path
        assert page.locator(".empty").is_visible(), path
        assert page.get_by_role("link", name="coevolve").is_visible(), path


def test_numbers_of_the_matrix_are_json_that_others_can_read(page: "Page", site: Site) -> None:
    answer = page.request.get(f"{site.url}{RUN}/matrix.json")
    found = json.loads(answer.body())
    assert (len(found["tasks"]), len(found["candidates"])) == (20, 8)
    assert "sample" in page.request.get(f"{site.url}/compare").text()
