"""Benchmarks stand apart: nobody imports them, and papers import public names only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
SHARED = {"harness", "rivals"}  # no benchmarks, but what they are made of
# The only folders whose files may import benchmarks.
OWN = {"benchmarks", "tests/benchmarks"}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imported(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of every import, those inside functions and strings included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            yield from ((home, alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for line in node.value.splitlines():  # the code of a child process
                if found := re.match(r"\s*(?:from|import) (benchmarks)\b", line):
                    yield found[1], ""


def borrowed(source: str) -> bool:
    return any(home.split(".")[0] == "benchmarks" for home, _ in imported(source))


def test_nobody_imports_benchmarks():
    everyone = ("mklopt", "formulations", "reference", "papers", "docs", "tests")
    guilty = [
        str(path.relative_to(ROOT))
        for path in sources(*everyone)
        if str(path.parent.relative_to(ROOT)) not in OWN
        and borrowed(path.read_text("utf-8"))
    ]
    assert not guilty


@pytest.mark.parametrize(
    "source",
    [
        "import {}.harness as h",
        "from {}.harness import medians",
        "def f():\n    from {} import rivals",
        'CODE = """\nimport mklopt\nfrom {}.harness import medians\n"""',
    ],
)
def test_an_import_of_benchmarks_is_found(source):
    assert borrowed(source.format("benchmarks"))
    assert not borrowed(source.format("mklopt"))


def private(source: str) -> list[str]:
    """Names with an underscore that are imported, or read from something imported."""
    tree = ast.parse(source)
    hidden = re.compile(r"_(?!_)(?!replace$)")  # _replace is public in named tuples
    found = [name for home, name in imported(source) if hidden.match(name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and hidden.match(node.attr):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found += [node.attr] if owner not in ("self", "cls") else []
    return found


def test_papers_use_public_names_of_the_package_alone():
    for path in sources("papers"):
        source = path.read_text("utf-8")
        assert not private(source), path
        tops = {home.split(".")[0] for home, _ in imported(source) if home[0] != "."}
        assert not tops & {"tests", "docs"}, path
    assert private("from mklopt.run.loop import _Loop") == ["_Loop"]
    assert private("step._direction(x)") == ["_direction"]


@pytest.mark.parametrize(
    "path", sorted(BENCHMARKS.glob("[a-z]*.py")), ids=lambda path: path.stem
)
def test_a_benchmark_has_a_main_and_says_how_it_is_run(path):
    tree = ast.parse(path.read_text("utf-8"))
    mains = [
        n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main"
    ]
    if path.stem in SHARED:
        assert not mains
        return
    assert len(mains) == 1 and not mains[0].args.args
    command = (
        "make bench" if path.stem == "flagship" else f"make bench NAME={path.stem}"
    )
    assert f"`{command}`" in (ast.get_docstring(tree) or "").split("\n")[0]


def test_one_make_target_runs_them_all():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^bench:", makefile, re.MULTILINE)
    assert "bench-" not in makefile.replace(".venv-bench", "")
    manifest = (ROOT / "MANIFEST.in").read_text().splitlines()
    assert "graft benchmarks" in manifest  # in the sdist, not in the wheel
    assert (
        "benchmarks"
        not in re.findall(
            r"packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL
        )[0]
    )
