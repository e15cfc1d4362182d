"""Plain English: phrases that a new user did not understand do not come back.

They are searched for in README, guides and docs/, and in the strings and docstrings of
the package; upper and lower case and line breaks make no difference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BANNED = {  # a phrase, and how to say it instead
    "has a machine": "has an inner SVM solver",
    "machine at these weights": "SVM at these weights",
    "prints for machines": "prints JSON for programs",
    "that stands still": "switches solver when progress stalls",
    "the question was wrong": "usage error",
    "file proves nothing": "invalid certificate",
    "in scikit-learn's company": "scikit-learn estimators",
    "of solvers that draw.": "random seeds, for stochastic solvers",
    "as good as its": "say which of the two is meant",
    "by a hair": "slightly; or say by how much",
    "map of the house": "repository layout",
    "what is compiled on first use": "compilation is not timed",
    "nobody is believed": "values are recomputed",
    "certificates that travel": "certificate files",
    "take it with you": "certificate files",
    "for an afternoon": "to try an idea",
    "make up this afternoon": "of your own",
    "kills kernels": "sets kernel weights to zero",
    "worth its price": "has a weight above zero",
    "speak other dialects": "use other notations",
    "without being told": "automatically",
    "without being mentioned": "automatically",
    "ten frames down": "say what the message says",
    "keeps what was won": "say what a later step must not undo",
}
TEXTS = [
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "papers/README.md"),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")),
]


def folders() -> list[str]:
    """The folders of the package, and its two rooms at the top, without symlinks."""
    inside = [p for p in (ROOT / "mklopt").iterdir() if p.is_dir()]
    rooms = [p for p in inside if not p.is_symlink() and any(p.glob("*.py"))]
    names = [str(room.relative_to(ROOT)) for room in rooms]
    return sorted([*names, "mklopt", "formulations", "reference"])


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """What people read in a file: line numbers and texts."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, source
        return
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    for text in joined:
        known = [p.value if isinstance(p, ast.Constant) else "…" for p in text.values]
        yield text.lineno, "".join(map(str, known))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in parts:
            yield node.lineno, node.value if isinstance(node.value, str) else ""


def offences(path: Path) -> list[str]:
    """Banned phrases in a file, with their lines and what to say instead."""
    found = []
    for first, text in passages(path):
        for phrase, instead in BANNED.items():
            words = r"\s+".join(map(re.escape, phrase.split()))
            for hit in re.finditer(words, text, re.IGNORECASE):
                line = first + text.count("\n", 0, hit.start())
                place = f"{path.relative_to(ROOT)}:{line}"
                found.append(f"{place} says {phrase!r}; better: {instead}")
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_in_plain_english(name):
    found = offences(ROOT / name)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("folder", folders())
def test_strings_of_the_package_are_in_plain_english(folder):
    files = (ROOT / folder).glob("*.py" if folder == "mklopt" else "**/*.py")
    found = [offence for path in sorted(files) for offence in offences(path)]
    assert not found, "\n" + "\n".join(found)


def test_a_banned_phrase_is_found_in_any_case_and_across_lines(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    text, code = tmp_path / "text.md", tmp_path / "code.py"
    text.write_text("# Title\n\nThe Map of\nthe house\n")
    code.write_text('x = 1\n\ndef f():\n    """One.\n\n    Longer by\n    a hair."""\n'
                    '    return f"{x} has" f" a machine"\n# by a hair\n')  # fmt: skip
    assert [o.split(" says")[0] for o in offences(text)] == ["text.md:3"]
    assert [o.split(" says")[0] for o in offences(code)] == ["code.py:8", "code.py:6"]
