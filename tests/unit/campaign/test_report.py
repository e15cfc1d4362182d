"""The report: tallies, the summary, and the page in a real browser.

There it sorts, filters, draws, fits a phone and needs no network; skipped, with the
reason, where no chromium with its driver is installed.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from mklopt.campaign.job import Campaign, Selection
from mklopt.campaign.ledger import Row
from mklopt.campaign.report import (
    html,
    number,
    outcome,
    summary,
    tally_table,
    write_report,
)
from mklopt.util.tables import markdown

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no chromium with chromedriver is installed"
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1200,1000",
)  # fmt: skip
NASTY = '</script><script>document.title = "taken"</script><!-- & "quoted" \u2028'


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> list[Row]:
    """Real rows: three solvers on two losses, and copies with other verdicts."""
    selection = Selection(
        solver=frozenset({"hessian", "analytic", "smo_mkl"}),
        loss=frozenset({"hinge", "squared"}),
        formulation=frozenset({"BlockL1", "LpNorm"}),
        data=frozenset({"small"}),
    )
    job = Campaign(tmp_path_factory.mktemp("certify"), selection)
    found = list(job.run(1))
    bad = replace(found[0], id="bad", holds=False, reason=NASTY, solver="broken")
    proved = replace(found[1], id="proved", certificate="certificates/proved.cert")
    none = replace(found[2], passes=None)  # as of a reference
    more = [replace(none, id=f"more{i}", C=float(i + 2)) for i in range(150)]
    return [*found, bad, proved, *more]


def test_rows_cannot_end_the_element_that_holds_them(rows):
    page = html(rows, len(rows), {})
    assert page.count("</script>") == 2 and "document.title" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def few(rows: list[Row]) -> list[Row]:
    """One solver with a failure, another with an error: numbers that are known."""
    one = replace(rows[0], solver="a", gap=1e-7, tol=1e-6, seconds=1.25, theorem=True,
                  certificate="x", holds=True)  # fmt: skip
    two = replace(one, gap=2e-3, seconds=2.5, certificate="",
                  holds=False, reason="a | <b>c</b>\nd", theorem=False)  # fmt: skip
    none = replace(two, solver="b", gap=None, seconds=None, tol=1e-3)
    return [none, one, two]


def test_solvers_are_tallied_with_their_worst_numbers(rows):
    table = tally_table(few(rows))
    lines = markdown(table).splitlines()
    heads = "solver holds fails worst-gap promised seconds longest"
    assert lines[0].strip("| ").split(" | ") == [
        *(head.replace("-", " ") for head in heads.split()),
        "certificates",
    ]
    assert lines[2] == "| a | 1 | 1 | 2.0e-03 | 1.0e-06 | 3.8 | 2.5 | 1 |"
    assert lines[3] == "| b | 0 | 1 | – | 1.0e-03 | 0.0 | 0.0 | 0 |"
    styles = [row.style for row in tally_table([*few(rows)[:2]]).rows]
    assert styles == [None, "bold red"]  # a holds, b fails
    assert [c.header for c in tally_table([], ["fails"]).columns] == ["solver", "fails"]


def test_the_outcome_is_one_sentence(rows):
    some = few(rows)
    said = "1 of 3 verdicts hold; 1 intervals are theorems"
    assert outcome(some, 3) == f"{said}."
    assert outcome(some, 5) == f"{said}; 2 runs are still to be done."
    assert (number(None), number(0.0), number(0.00123)) == ("–", "0", "1.2e-03")


def test_the_summary_names_every_failure_in_plain_words(rows):
    text = summary(few(rows), 3, {"code": "abc"})
    assert (
        text.startswith("# mklopt certify\n\n1 of 3 verdicts") and "* code: abc" in text
    )
    failed = text.split("## Verdicts that fail")[1]
    assert failed.count("* **") == 2 and f"* **b** on `{rows[0].cell}`: " in failed
    assert r"a \| &lt;b>c&lt;/b> d" in failed
    assert "None." in summary([few(rows)[1]], 1, {})


def test_both_files_are_written(tmp_path):
    job = Campaign(tmp_path, Selection(quick=True, loss=frozenset({"hinge"})))
    write_report(job)
    text = (tmp_path / "summary.md").read_text("utf-8")
    assert "* scope: quick" in text and f"{len(job.runs)} runs are still" in text
    assert '"rows":[]' in (tmp_path / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def browser(rows, tmp_path_factory):
    from selenium import webdriver

    folder = tmp_path_factory.mktemp("page")
    (folder / "report.html").write_text(
        html(rows, len(rows) + 7, {"scope": "a test"}), encoding="utf-8"
    )
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.get((folder / "report.html").as_uri())
    yield driver
    driver.quit()


@pytest.fixture
def page(browser):
    """The page as it opens, wide and light."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.refresh()
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def find(page, selector: str) -> list:
    return page.find_elements("css selector", selector)


def column(page, name: str) -> list[str]:
    script = (
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    )
    return page.execute_script(script, f"#body td[data-name='{name}']")


def choose(page, identity: str, value: str) -> None:
    page.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(e.tagName === 'INPUT' ? 'input' : 'change'))",
        identity, value,
    )  # fmt: skip


@needs_browser
def test_it_opens_with_the_failure_and_runs_nothing_of_it(page, rows):
    assert page.title == "mklopt certify"
    tally = find(page, "#tally")[0].text
    assert f"{len(rows) - 1} hold, 1 fail of {len(rows)} runs" in tally
    assert "7 not run yet" in tally
    detail = find(page, "#detail")[0].text
    assert detail.startswith("fails") and 'document.title = "taken"' in detail
    assert column(page, "verdict")[:2] == ["fails", "holds"]


@needs_browser
def test_columns_sort_both_ways(page, rows):
    (button,) = find(page, "th[data-key='seconds'] button")
    numbers = sorted(row.seconds for row in rows)
    for way, expected in (("ascending", numbers), ("descending", numbers[::-1])):
        button.click()
        assert find(page, "th[data-key='seconds']")[0].get_attribute("aria-sort") == way
        shown = [float(text) for text in column(page, "seconds")]
        assert len(shown) == 100
        for text, value in zip(shown, expected):
            assert text == pytest.approx(value, rel=6e-3)
    choose(page, "sort", "solver up")
    assert column(page, "solver") == sorted(row.solver for row in rows)[:100]


@needs_browser
def test_numbers_that_do_not_exist_come_last_both_ways(page, rows):
    choose(page, "sort", "passes up")
    known = sum(row.passes is not None for row in rows)
    assert 0 < known < 100
    for way in ("up", "down"):
        choose(page, "sort", f"passes {way}")
        shown = column(page, "passes")
        assert "–" not in shown[:known] and set(shown[known:]) == {"–"}


@needs_browser
def test_filters_words_and_chips(page, rows):
    choose(page, "only-loss", "squared")
    count = sum(row.loss == "squared" for row in rows)
    assert find(page, "#count")[0].text == f"{count} of {len(rows)}"
    assert set(column(page, "loss")) == {"squared"}
    choose(page, "only-loss", "")
    find(page, "#chips button[data-solver='smo_mkl']")[0].click()
    assert set(column(page, "solver")) == {"smo_mkl"}
    find(page, "#chips button[data-solver='smo_mkl']")[0].click()
    choose(page, "words", "taken BLOCKL1")
    assert column(page, "solver") == ["broken"]
    choose(page, "words", "")
    (more,) = find(page, "#more")
    more.click()
    assert len(find(page, "#body tr")) == len(rows) and not more.is_displayed()


@needs_browser
def test_curves_of_one_problem_on_three_axes(page, rows):
    choose(page, "only-solver", "analytic")
    choose(page, "only-formulation", "BlockL1")
    choose(page, "only-loss", "hinge")
    find(page, "#body tr")[0].click()
    picked = find(page, "tr.picked")[0].get_attribute("data-id")
    row = next(row for row in rows if row.id == picked)
    drawn = {e.get_attribute("data-id") for e in find(page, "path.curve")}
    same = {r.id for r in rows if r.cell == row.cell and r.iterations}
    assert drawn == same and len(drawn) > 1
    shapes = set()
    for axis, name in (
        ("passes", "passes"), ("seconds", "seconds"), ("iteration", "iterations"),
    ):  # fmt: skip
        (button,) = find(page, f"button[data-axis='{axis}']")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert find(page, "text.axis-name")[0].text == name
        (path,) = find(page, f"path[data-id='{picked}']")
        d = path.get_attribute("d")
        assert d.count("L") == len(row.trace["gap"]) - 1 and "NaN" not in d
        shapes.add(d)
    assert len(shapes) == 3


@needs_browser
def test_a_certificate_is_linked_with_the_command_that_checks_it(page):
    choose(page, "words", "proved")
    find(page, "#body tr")[0].click()
    (link,) = find(page, "#detail a")
    assert link.get_attribute("href").endswith("/certificates/proved.cert")
    assert "mklopt verify certificates/proved.cert" in find(page, "#detail")[0].text


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 820, 1024])
def test_the_page_never_scrolls_sideways(page, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.refresh()
    assert page.execute_script("return window.innerWidth") == width
    wide = "return document.documentElement.scrollWidth"
    assert page.execute_script(wide) == width
    assert find(page, "#body tr")[0].is_displayed()


@needs_browser
def test_dark_is_dark(page):
    def brightness() -> int:
        script = "return getComputedStyle(document.body).backgroundColor"
        inside = page.execute_script(script).split("(")[1].rstrip(")")
        return sum(int(part) for part in inside.split(",")[:3])

    light = brightness()
    feature = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    assert brightness() < 150 < 600 < light
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
