"""A checkout with one small paper in it, and how it is run."""

from __future__ import annotations

import importlib
import io
import linecache
import sys
from pathlib import Path

import pytest
from rich.console import Console

from mklopt.claims import items as papers
from mklopt.claims import run as paper_run

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
    monkeypatch.setattr(papers, "ROOT", root)
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.setattr(papers, "_ITEMS", {})
    return key


@pytest.fixture
def run():
    """Runs a paper at its smallest; whether all is sound, and what was printed."""

    def smallest(key: str, **how) -> tuple[bool, str]:
        console = Console(width=200, record=True, file=io.StringIO())
        done = paper_run.run_papers([key], "tiny", jobs=1, console=console, **how)
        return done, console.export_text()

    return smallest


MEASURED = '''"""Empirical claims about squares."""
from mklopt.claims.bounds import at_least, at_most
from mklopt.claims.empirical import empirical
from .studies import squares

@empirical("KEY", "Table 1", measured="their mean", data=("drawn",),
           rule=at_most(5), seeds=3)
def the_mean_is_small(scale):
    """The mean of the squares is small."""
    return squares(scale).square.mean()

@the_mean_is_small.control("the largest square is huge", at_least(1000))
def the_largest(scale):
    """The largest square."""
    return squares(scale).square.max()
'''


def measured_toy(key, root, monkeypatch, old="", new=""):
    room = root / "papers" / key
    (room / "measured.py").write_text(MEASURED.replace("KEY", key))
    for name in ("measured.py", "studies.py"):
        text = (room / name).read_text()
        (room / name).write_text(text.replace(old, new) if old else text)
    for name in [n for n in sys.modules if n.split(".")[0] == "papers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(papers, "_ITEMS", {})
    importlib.invalidate_caches()
    linecache.clearcache()
    return papers.load(key)
