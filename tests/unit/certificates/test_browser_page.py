"""The page that checks files in a browser: its sources, and a run where it can be."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mklopt.certificates import browser_page
from mklopt.cli import main
from tests.unit.certificates.samples import resigned, tiny

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def value_of(page: str, name: str):
    found = re.search(rf"^const {name} = (.*);$", page, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


def test_the_page_has_the_sources_of_the_checker(tmp_path):
    path = tmp_path / "verify.html"
    done = CliRunner().invoke(main, ["verify", "--page", str(path)])
    assert done.exit_code == 0 and "written" in done.output
    page = path.read_text(encoding="utf-8")
    sources = value_of(page, "SOURCES")
    for name, text in sources.items():
        assert text == (browser_page.HERE / name).read_text(encoding="utf-8")
    needed = set(re.findall(r"^    from (\w+) import", sources["checker.py"], re.M))
    assert {f"{name}.py" for name in needed} | {"checker.py"} == sources.keys()
    assert value_of(page, "ASSETS") == {}
    assert value_of(page, "FOLDER").startswith("https://")
    assert page.count("</script>") == 1


def test_a_folder_goes_into_the_page(tmp_path):
    with pytest.raises(ValueError, match=r"has no pyodide\.js.*npm pack pyodide"):
        browser_page.write_page(tmp_path / "verify.html", tmp_path)
    for name in browser_page.ASSETS:
        (tmp_path / name).write_bytes(name.encode())
    browser_page.write_page(tmp_path / "verify.html", tmp_path)
    assets = value_of((tmp_path / "verify.html").read_text(encoding="utf-8"), "ASSETS")
    assert {base64.b64decode(x).decode() for x in assets.values()} == assets.keys()


def test_a_path_or_a_page_is_needed():
    done = CliRunner().invoke(main, ["verify"])
    assert done.exit_code == 2 and "give a certificate file" in done.output


DRIVER = """
<script>(async () => {
  for (const [name, text] of Object.entries(@FILES@))
    await judge(new File([Uint8Array.from(atob(text), c => c.charCodeAt(0))], name));
})();</script></html>"""


@pytest.mark.full
def test_a_browser_gives_the_verdicts_of_the_command_line(tmp_path):
    """Opened as a file, without a server or a network."""
    folder = os.environ.get("MKLOPT_PYODIDE")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not folder or not browser:
        pytest.skip("needs Chromium, and Pyodide's folder in MKLOPT_PYODIDE")
    path = tmp_path / "verify.html"
    browser_page.write_page(path, Path(folder))
    good = resigned(tiny())
    files = {
        "good.cert": good,
        "bad.cert": good[:-1],
        "claim.cert": resigned(tiny(lower=2.0)),
    }
    texts = {
        name: base64.b64encode(content).decode() for name, content in files.items()
    }
    page = path.read_text(encoding="utf-8")
    driver = DRIVER.replace("@FILES@", json.dumps(texts))
    path.write_text(page.replace("</html>", driver), encoding="utf-8")
    how = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=100000",
    ]
    run = [browser, *how, "--dump-dom", path.as_uri()]
    shown = subprocess.run(run, capture_output=True, text=True, timeout=200).stdout
    verdicts = re.findall(r'<pre class="(\w+)">(\S+)\n(\w+):', shown)
    assert verdicts == [
        ("refused", "claim.cert", "refused"),
        ("refused", "bad.cert", "refused"),
        ("proved", "good.cert", "proved"),
    ]
