"""The hash of a rule: it covers helpers and constants, and no words."""

from __future__ import annotations

import importlib
import sys

import pytest

from mklopt.claims.source import Source, body

HELPERS = '''"""Helpers."""
FACTOR = {"a": (1, 2.0)}

class Kind:
    """A class."""
    size = 3

def helper(x):
    """Words."""
    return x * FACTOR["a"][0] + Kind.size
'''
RULES = '''"""Rules."""
import numpy as np
from . import helpers
from .helpers import helper

def rule(scale):
    """A statement."""
    return helper(np.sum(scale)) + helpers.helper(1)

def other(scale):
    """Another statement."""
    return helper(np.sum(scale)) + helpers.helper(1)

def third(scale):
    return [helper(k) for k in scale]
'''


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The hash of a rule after edits of the two files."""
    monkeypatch.syspath_prepend(tmp_path)
    room = tmp_path / "rules_of_source"
    room.mkdir()
    (room / "__init__.py").write_text("")

    def read(old: str = "", new: str = ""):
        (room / "helpers.py").write_text(HELPERS.replace(old, new) if old else HELPERS)
        (room / "claims.py").write_text(RULES.replace(old, new) if old else RULES)
        for name in [name for name in sys.modules if name.startswith(room.name)]:
            monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        return importlib.import_module(f"{room.name}.claims")

    yield read
    sys.dont_write_bytecode = False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * FACTOR", "x / FACTOR"),
        ("2.0", "2.5"),
        ("size = 3", "size = 4"),
        ("np.sum(scale)", "np.max(scale)"),
    ],
)
def test_what_is_computed_changes_the_hash(digest, old, new):
    before = Source(digest().rule).digest
    assert Source(digest(old, new).rule).digest != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Words.", "Other words."),
        ("A statement.", "The statement."),
        ("return x", "# a remark\n    return x"),
        ("[helper(k)", "[2 * helper(k)"),
        ("def rule(scale)", "def rule(scale: object)"),
    ],
)
def test_words_remarks_and_other_rules_do_not(digest, old, new):
    before = Source(digest().rule).digest
    assert Source(digest(old, new).rule).digest == before


def test_two_functions_with_one_body_are_told(digest):
    rules = digest()
    assert body(rules.rule) == body(rules.other) != body(rules.third)


def test_a_source_that_cannot_be_read_is_refused():
    made: dict = {}
    exec("def rule(scale): return 1", made)
    with pytest.raises(ValueError, match="put it into a file"):
        Source(made["rule"])
