"""The room of papers: studies kept, verdicts checked, pages written, runs resumed."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from mklopt.campaign.fingerprint import fingerprint
from mklopt.claims import items as papers
from mklopt.claims import run as paper_run
from mklopt.claims.items import Finding, NotACheckout, Scale, decide
from mklopt.judge.rates import RateCheck

STUDIES = '''"""What is measured: squares."""
import time
import numpy as np, pandas as pd
from mklopt.claims.items import study

@study("KEY")
def squares(scale):
    """Squares of random numbers."""
    with open(MARK, "a") as file:
        file.write("x")
    time.sleep(PAUSE)
    n = scale.of(3, 10, 100)
    drawn = scale.rng("squares").normal(size=n) / 3
    return pd.DataFrame({"k": np.arange(n), "square": drawn**2, "who": "ℓ1"})
'''
CLAIMS = '''"""Claims about squares."""
from mklopt.util import style
from mklopt.data import DataNotFound
from mklopt.claims.items import claim, decide, figure, table
from .studies import squares

@claim("KEY", "Theorem 1", wrong="the squares negated", figure="drawn")
def squares_are_positive(scale, wrong=False):
    """No square | of a real number is negative."""
    least = squares(scale).square.min() * (-1 if wrong else 1)
    return decide(least >= 0, f"the least is {least:.1e}", least=least)

@claim("KEY", "Theorem 2", wrong="nothing")
def cannot_fail(scale, wrong=False):
    """A check that always says yes."""
    return decide(True, "always")

@claim("KEY", "Table 9", wrong=None)
def without_data(scale, wrong=False):
    """A statement about data that nobody has."""
    raise DataNotFound("the set is not here; point MKLOPT_DATA at it")

@claim("KEY", "Theorem 3", wrong="nothing")
def broken(scale, wrong=False):
    """A check with a mistake in it."""
    return 1 / 0

@figure("KEY", "Figure 1")
def drawn(scale):
    """Squares over k."""
    rows = squares(scale)
    figure, (left, right) = style.panels(2)
    left.plot(rows.k, rows.square, **style.look(0))
    style.band(right, rows.k, [rows.square, -rows.square], 1, "ℓ½")
    right.legend()
    return figure

@table("KEY", "Table 1")
def sheet(scale):
    """The squares."""
    return squares(scale)
'''


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a checkout with one paper in it; its modules are forgotten afterwards."""
    yield lambda key, pause=0.0: write_toy(tmp_path, monkeypatch, key, pause)
    for name in [n for n in sys.modules if n.split(".")[0] == "papers"]:
        del sys.modules[name]


@pytest.fixture
def toy(write) -> str:
    return write("toy2026")


def write_toy(root: Path, monkeypatch, key: str, pause: float) -> str:
    room = root / "papers" / key
    room.mkdir(parents=True)
    (room.parent / "README.md").write_text("papers")
    (room.parent / "__init__.py").write_text("")
    (room / "__init__.py").write_text('"""Nobody, A toy, 2026.\\n\\nSquares."""')
    study = STUDIES.replace("KEY", key).replace("PAUSE", repr(pause))
    (room / "studies.py").write_text(study.replace("MARK", repr(str(root / "mark"))))
    (room / "claims.py").write_text(CLAIMS.replace("KEY", key))
    for name in [n for n in sys.modules if n.split(".")[0] == "papers"]:
        monkeypatch.delitem(sys.modules, name)
    for module in (papers, paper_run):
        monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.setattr(papers, "_ITEMS", {})
    return key


def run(key: str, root: Path, **how) -> tuple[bool, str]:
    console = Console(width=200, record=True, file=io.StringIO())
    done = paper_run.run_papers([key], "tiny", jobs=1, console=console, **how)
    return done, console.export_text()


def test_a_run_writes_ledger_figures_data_and_page(toy, tmp_path):
    done, shown = run(toy, tmp_path)
    home = tmp_path / "papers" / toy
    assert not done  # one check cannot fail, one is broken
    assert "its perturbed form is confirmed" in shown and "ZeroDivisionError" in shown
    entries = json.loads((home / "results/ledger.json").read_text())["claims"]
    verdicts = {entry["claim"]: entry["verdict"] for entry in entries}
    assert verdicts == {
        "squares_are_positive": "confirmed",
        "cannot_fail": "confirmed",
        "without_data": "not testable",
        "broken": "failed",
    }
    assert entries[0]["contrary"] == "refuted" and entries[0]["studies"] == ["squares"]
    page = (home / "README.md").read_text()
    assert page.startswith(f"# {toy}\n\nNobody, A toy, 2026.\n\nSquares.\n")
    assert "No square \\| of a real" in page and "![Figure 1]" in page
    assert "point MKLOPT\\_DATA at it" in page and "| k | square | who |" in page
    kinds = {path.suffix for path in (home / "results").rglob("*.*")}
    assert kinds == {".json", ".tex", ".csv", ".png", ".pdf"}


def test_what_is_finished_is_not_computed_again_and_figures_are_the_same(toy, tmp_path):
    run(toy, tmp_path)
    results = tmp_path / "papers" / toy / "results"
    before = {p.name: p.read_bytes() for p in results.rglob("*.*")}
    assert (tmp_path / "mark").read_text() == "x"  # asked for by four, measured once
    run(toy, tmp_path)
    assert (tmp_path / "mark").read_text() == "x"
    assert before == {p.name: p.read_bytes() for p in results.rglob("*.*")}


def test_another_seed_or_mode_is_another_study(toy, tmp_path):
    item = papers.load(toy).studies["squares"]
    first, again, other = (item(Scale("tiny", seed)) for seed in (0, 0, 1))
    assert first.equals(again) and not first.equals(other)
    assert len(item(Scale("quick"))) == 10
    kept = item(Scale("tiny", 0, tmp_path / "kept"))
    assert kept.equals(item(Scale("tiny", 0, tmp_path / "kept")))
    assert kept.equals(first)  # the CSV holds every bit


def test_code_that_changes_is_run_again(toy, tmp_path):
    item = papers.load(toy).studies["squares"]
    claim = papers.load(toy).claims["cannot_fail"]
    room = tmp_path / "papers" / toy

    def edited(name: str, text: str) -> tuple[str, str]:
        """Fingerprints of study and claim, as a new process sees them."""
        (room / name).write_text(text)
        fingerprint.cache_clear()
        return item.fingerprint, claim.fingerprint

    study, claims = (room / "studies.py").read_text(), (room / "claims.py").read_text()
    before = edited("studies.py", study)
    assert edited("studies.py", f"# a remark\n{study}") == before
    found = edited("claims.py", claims.replace(">= 0", "> 0"))
    assert found[0] == before[0]  # claims do not concern a study
    assert found[1] != before[1]
    both = edited("studies.py", study.replace("/ 3", "/ 4"))
    assert both[0] != before[0] and both[1] != found[1]


def test_a_run_that_is_killed_goes_on(tmp_path, write):
    """SIGKILL while the claims are checked: the study is not measured again."""
    key = write("killed2026", pause=0.3)
    code = (
        "import pathlib, mklopt.claims.items as p, mklopt.claims.run as r\n"
        f"p.ROOT = r.ROOT = pathlib.Path({str(tmp_path)!r})\n"
        f"r.run_papers([{key!r}], 'tiny', jobs=1)\n"
    )
    command = [sys.executable, "-c", code]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path)
    work = tmp_path / "papers" / ".work"
    deadline = time.monotonic() + 60
    while not list(work.rglob("*.csv")) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() in (-signal.SIGKILL, 0)
    assert len(list(work.rglob("*.csv"))) == 1
    run(key, tmp_path)
    assert (tmp_path / "mark").read_text() == "x"
    assert (tmp_path / "papers" / key / "README.md").exists()


def test_findings_are_checked_words_and_plain_numbers():
    found = decide(np.bool_(True), "good", a=np.float64(1), b=np.inf, c=np.arange(2))
    assert found == Finding("confirmed", "good", {"a": 1.0, "b": "inf", "c": [0, 1]})
    assert json.dumps(found.numbers)
    assert decide(False, "bad").verdict == "refuted"
    with pytest.raises(ValueError, match="choose one of confirmed"):
        Finding("true", "x")
    with pytest.raises(ValueError, match="evidence"):
        decide(True, " ")
    judged = Finding.of(RateCheck("", "violated", "too large", 0.5, 3), more=1)
    assert judged.verdict == "refuted" and judged.numbers["more"] == 1
    assert Finding.of(RateCheck("", "vacuous", "says nothing")).verdict == "vacuous"


def test_wrong_names_get_one_sentence(toy, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="paper 'nobody' is not known; choose one of"):
        papers.load("nobody")
    with pytest.raises(ValueError, match="mode 'huge'; choose one of tiny"):
        Scale("huge")
    with pytest.raises(ValueError, match="says nothing: give a docstring"):
        papers.study(toy)(lambda scale: None)
    monkeypatch.setattr(papers, "ROOT", tmp_path / "elsewhere")
    with pytest.raises(NotACheckout, match="run this in a checkout"):
        papers.known()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(toy, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        run(toy, tmp_path, out=tmp_path / "file")
    assert not (tmp_path / "mark").exists()
