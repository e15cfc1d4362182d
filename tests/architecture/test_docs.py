"""README, guides and docs/: every block of code runs, all that they name is there."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import mklopt

ROOT = Path(__file__).resolve().parents[2]


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


build = builder()
PAGES = build.menu()
GUIDES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
TEXTS = [*GUIDES, *(f"docs/{name}.md" for name in PAGES)]
EXAMPLES = [program for name in GUIDES for program in build.programs(read(name))]
CERTIFIED = ("tutorial", "extending", "derived-dual", "solvers", "gallery",
             "command-line", "scaling", "low-rank", "checking", "library",
             "problem-format")  # fmt: skip


@pytest.mark.parametrize("program", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_a_guide_runs_and_ends_in_a_certified_gap(program, tmp_path):
    # Products of kernels are not convex: what is certified there is the SVM at d.
    words = "SVM at d:" if "gmkl.solve" in program[-1] else "≤ f* ≤"
    assert words in build.run(program, tmp_path)[-1]


def test_the_guides_have_examples():
    assert len(build.programs(read("README.md"))) >= 6
    assert len(build.programs(read("ARCHITECTURE.md"))) == 1


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_built_and_its_code_runs(name, tmp_path):
    html = build.page(name, tmp_path)
    assert (tmp_path / f"{name}.html").read_text(encoding="utf-8") == html
    printed = "".join(re.findall(r'"language-output">(.*?)</code>', html, re.DOTALL))
    assert ("≤ f* ≤" in printed) == (name in CERTIFIED)
    assert not re.search(r"<p>\{\{|<script|<link|@import|url\(", html)
    for link in re.findall(r'(?:href|src)="([^"]*)"', html):
        if link.startswith("#"):
            assert f'id="{link[1:]}"' in html, link
        elif link.endswith(".html"):
            assert link.removesuffix(".html") in PAGES, link
        else:
            assert (tmp_path / link).is_file(), link


def test_the_figure_of_the_tutorial_takes_twelve_lines():
    """Three problems, five solvers, names, colours, PDF and table, with the imports."""
    programs = build.programs(read("docs/tutorial.md"))
    blocks = [block for program in programs for block in program]
    (drawn,) = [block for block in blocks if "mklopt.race(" in block]
    for part in ("width=3.25", '["mine", ', "labels=", "colors=", "table.tex"):
        assert part in drawn
    imports = 3  # mklopt; data and kernels; LpNorm
    assert imports + len(drawn.strip().splitlines()) <= 12


def test_every_page_is_in_the_menu_once():
    files = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
    assert sorted(PAGES) == files


@pytest.mark.parametrize("name", TEXTS)
def test_every_file_that_a_text_names_exists(name):
    text = read(name)
    rooms = "formulations|mklopt|reference|papers|tests|docs|benchmarks"
    theirs = {  # files that a reader may write
        *("mklopt/solvers/naive.py", "papers/nobody2026/claims.py"),
        "benchmarks/NAME.py",
    }
    named = set(re.findall(rf"`((?:{rooms})/[\w/]+\.\w+)(?:::\w+)?`", text))
    named |= {f for f in re.findall(r"\]\((?!http)([\w/.]+)\)", text) if name in GUIDES}
    assert not [file for file in named - theirs if not (ROOT / file).is_file()]


@pytest.mark.parametrize("name", TEXTS)
def test_every_make_target_that_a_text_names_exists(name):
    makefile = (ROOT / "Makefile").read_text()
    lines = re.findall(r"(?:^ {4}|`|```text\n)make ([a-z-]+)", read(name), re.MULTILINE)
    for target in set(lines):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_layout_in_the_readme_is_the_tree():
    """Every folder with code is named, and every folder named is there."""
    layout = read("README.md").split("## Repository layout")[1].split("```")[1]
    drawn, open_folders = set(), [""]
    for line in layout.strip().splitlines():
        found = re.match(r"( *)([\w-]+)/", line)
        assert found is not None, line
        depth = len(found[1]) // 2
        open_folders[depth + 1 :] = [f"{open_folders[depth]}{found[2]}/"]
        drawn.add(open_folders[-1])
    rooms = {p.parent for p in (ROOT / "mklopt").rglob("__init__.py")}
    rooms |= {p.parent for top in ("formulations", "reference")
              for p in (ROOT / top).rglob("__init__.py")}  # fmt: skip
    real = {f"{p.relative_to(ROOT)}/" for p in rooms}
    assert real <= drawn, f"not in the README: {sorted(real - drawn)}"
    assert not [folder for folder in drawn if not (ROOT / folder).is_dir()]


def test_the_version_is_stated_once_and_copied_right():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert project["dynamic"] == ["version"] and "version" not in project
    assert f"\nversion: {mklopt.__version__}\n" in read("CITATION.cff")
    assert f'version = "{mklopt.__version__}"' in read("recipe/meta.yaml")


def test_the_readme_works_where_nothing_else_is_shown():
    """On an index of packages there are no other files to link to."""
    links = re.findall(r"\]\(([^)\s]+)\)", read("README.md"))
    assert all(link.startswith(("https://", "#")) for link in links)


def test_the_page_on_versions_names_the_bounds_of_pyproject():
    text = read("docs/versions.md")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    for extra in set(extras) - {"bench"}:
        assert f"| `{extra}` |" in text, extra
    stated = "\n".join([*project["dependencies"], *chain(*extras.values())])
    rows = (("cvxpy", "CVXPY | "), ("pandas", "pandas | "), ("numpy", "SciPy | "))
    for name, row in rows:
        (bound,) = re.findall(rf"^{name}>=([\d.]+)$", stated, re.MULTILINE)
        assert f"| {row}{bound}" in text or f", {row}{bound}" in text, name


def test_the_recipe_has_the_bounds_of_pyproject():
    recipe = read("recipe/meta.yaml")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    cli = project["optional-dependencies"]["cli"]
    for line in (*project["dependencies"], *cli):
        name, bound = line.split(">=")
        assert re.search(rf"- {name}(-base)? >={bound}\n", recipe), line


def test_the_changelog_has_sections_that_are_known():
    text = read("CHANGELOG.md")
    assert re.findall(r"^## \[(.*?)\]", text, re.MULTILINE)[0] == "Unreleased"
    sections = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert sections <= {
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
    }


# ---- the builder itself -------------------------------------------------------------


def test_blocks_go_on_until_mklopt_is_imported_again():
    text = (
        "```python\nimport mklopt\nx = 2\n```\nand\n```python\nfrom math import pi\n"
        "print(x)\n```\n```text\nno code\n```\n```python\nimport mklopt\n```\n"
        "```console\n$ echo a word\n```\n"
    )
    first, second = build.programs(text)
    assert [len(first), len(second)] == [2, 2]
    assert "echo a word" in second[1] and "from math" in first[1]


def test_outputs_stand_below_their_blocks(tmp_path):
    blocks = ("python\nx = 1", "python\nprint(x + 1)", "console\n$ echo a")
    text = "\n".join(f"```{block}\n```\n" for block in blocks)
    shown = build.with_outputs(text, tmp_path)
    assert "x = 1\n```\n\n\n\n```python" in shown  # nothing printed, nothing shown
    assert "print(x + 1)\n```\n\n````output\n2\n````" in shown
    assert "````output\n$ echo a\na\n````" in shown and "console" not in shown


def test_a_block_that_fails_is_shown_with_its_error(tmp_path):
    with pytest.raises(build.Broken, match=r"(?s)fails:\n1 / 0\n.*ZeroDivisionError"):
        build.run(["x = 1", "1 / 0", "y = 2"], tmp_path)


def test_a_command_that_fails_is_an_error(tmp_path):
    with pytest.raises(build.Broken, match="exit status 3"):
        build.with_outputs("```console\n$ exit 3\n```\n", tmp_path)


@pytest.mark.parametrize(
    "given, words",
    [
        (("nowhere.py",), "no file nowhere.py"),
        (("formulations/group_lasso.py", "Ridge"), "has no Ridge"),
    ],
)
def test_a_source_that_is_missing_is_an_error(given, words):
    with pytest.raises(build.Broken, match=words):
        build.source(*given)


def test_a_source_is_the_class_with_its_decorators_and_nothing_else():
    shown = build.source("formulations/group_lasso.py", "GroupLasso").splitlines()
    assert shown[3] == "@dataclass(frozen=True)" and shown[4].startswith("class Group")
    assert shown[-2].startswith("        return np.eye(") and shown[-1] == "````"


def test_the_api_has_every_public_name_and_its_docstring():
    import mklopt

    text = build.api("mklopt")
    for name in mklopt.__all__:
        assert name == "__version__" or f"### mklopt.{name}\n" in text, name
    assert "The gap of any primal" not in text  # of the module, not of `certify`
    assert mklopt.solve.__doc__.splitlines()[0] in text


def test_the_table_of_solvers_has_all_of_them():
    from mklopt.solvers import solvers

    rows = build.solvers().splitlines()
    assert [row.split("`")[1] for row in rows[2:]] == list(solvers())
