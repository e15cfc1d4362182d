"""README, guides and docs/: every block of code runs, all that they name is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import mklopt

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    """A module of docs/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


blocks, api, links = tool("blocks"), tool("api"), tool("links")
PAGES = blocks.pages()
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
GUIDES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
TEXTS = [*GUIDES, *(f"docs/{name}.md" for name in PAGES)]
EXAMPLES = [program for name in GUIDES for program in blocks.programs(read(name))]
CERTIFIED = ("get-started", "regularizer", "derived-dual", "solvers", "command-line",
             "scaling", "low-rank", "checking", "certificates",
             "extending", "estimators", "structured", "paths", "library",
             "problem-format")  # fmt: skip


@pytest.mark.parametrize("program", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_a_guide_runs_and_prints_a_certified_interval(program, tmp_path):
    assert "≤ f* ≤" in "".join(blocks.run(program, tmp_path))


def test_the_guides_have_examples():
    (readme,) = blocks.programs(read("README.md"))
    assert len(readme) == 3  # check, declare, race
    assert all(len(block.strip().splitlines()) <= 10 for block in readme)
    assert len(blocks.programs(read("ARCHITECTURE.md"))) == 1


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs(name, tmp_path):
    text = read(f"docs/{name}.md")
    page = blocks.with_outputs(text, tmp_path)
    printed = "".join(re.findall(r":class: output\n(.*?)^````$", page, re.M | re.S))
    assert ("≤ f* ≤" in printed) == (name in CERTIFIED)
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text):
        assert (tmp_path / picture).is_file() or (ROOT / "docs" / picture).is_file()


def test_the_examples_of_the_gallery_run_and_draw(tmp_path):
    """In one process, each with names of its own."""
    run = "import runpy\nrunpy.run_path({!r}, run_name='__main__')"
    programs = [run.format(str(file)) for file in GALLERY]
    printed = "".join(blocks.run(programs, tmp_path))
    assert printed.count("≤ f* ≤") >= 4
    for file in GALLERY:
        text = file.read_text(encoding="utf-8")
        drawn = re.findall(r'"([\w-]+)(?:\{p\})?\.png"', text)
        assert drawn, file
        assert all(list(tmp_path.glob(f"{name}*.png")) for name in drawn), file


def test_every_link_between_pages_has_a_page():
    for name in PAGES:
        found = re.findall(r"\]\(([\w-]+)\.md", read(f"docs/{name}.md"))
        assert set(found) <= set(PAGES), name


def test_the_first_figure_takes_twelve_lines():
    """Three problems, five solvers, names, colours, PDF and table, with the imports."""
    first = blocks.programs(read("docs/figures.md"))[0]
    (drawn,) = [block for block in first if "mklopt.race(" in block and "mine" in block]
    for part in ("width=3.25", '["mine", ', "labels=", "colors=", "table.tex"):
        assert part in drawn
    imports = 3  # mklopt; data and kernels; LpNorm
    assert imports + len(drawn.strip().splitlines()) <= 12


def test_every_page_is_in_the_menu_once():
    trees = re.findall(r"```{toctree}(.*?)```", "".join(map(read, TEXTS)), re.DOTALL)
    listed = re.findall(r"^([\w-]+)$", "\n".join(trees), re.MULTILINE)
    assert sorted(["index", *listed]) == PAGES


@pytest.mark.parametrize("name", TEXTS)
def test_every_file_that_a_text_names_exists(name):
    text = read(name)
    rooms = "formulations|mklopt|reference|papers|tests|docs|benchmarks"
    theirs = {  # files that a reader may write
        *("mklopt/solvers/naive.py", "papers/nobody2026/claims.py"),
        *("benchmarks/NAME.py", "papers/nobody2026/statements.toml"),
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


def test_the_drawn_layout_is_the_tree():
    """Every folder with code is named, and every folder named is there."""
    layout = read("ARCHITECTURE.md").split("## Repository layout")[1].split("```")[1]
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
    assert real <= drawn, f"not in ARCHITECTURE.md: {sorted(real - drawn)}"
    assert not [folder for folder in drawn if not (ROOT / folder).is_dir()]


def test_the_version_is_stated_once_and_copied_right():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert project["dynamic"] == ["version"] and "version" not in project
    assert f"\nversion: {mklopt.__version__}\n" in read("CITATION.cff")
    assert f'version = "{mklopt.__version__}"' in read("recipe/meta.yaml")


def test_the_readme_works_where_nothing_else_is_shown():
    """On an index of packages there are no other files: its picture has words, too."""
    found = re.findall(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", read("README.md"))
    for picture, words, link in found:
        if picture:
            assert len(words) > 60 and (ROOT / link).stat().st_size < 100_000
        else:
            assert link.startswith(("https://", "#"))


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


# ---- what runs blocks, makes the API and checks links -------------------------------


def test_blocks_go_on_until_mklopt_is_imported_again():
    text = (
        "```python\nimport mklopt\nx = 2\n```\nand\n```python\nfrom math import pi\n"
        "print(x)\n```\n```text\nno code\n```\n```python\nimport mklopt\n```\n"
        "```console\n$ echo a word\n```\n"
    )
    first, second = blocks.programs(text)
    assert [len(first), len(second)] == [2, 2]
    assert "echo a word" in second[1] and "from math" in first[1]


def test_outputs_stand_below_their_blocks(tmp_path):
    given = ("python\nx = 1", "python\nprint(x + 1)", "console\n$ echo a")
    text = "\n".join(f"```{block}\n```\n" for block in given)
    shown = blocks.with_outputs(text, tmp_path)
    assert "x = 1\n```\n\n\n\n```python" in shown  # nothing printed, nothing shown
    assert f"print(x + 1)\n```\n\n{blocks.OUTPUT.format(2)}" in shown
    assert blocks.OUTPUT.format("$ echo a\na") in shown and "console" not in shown


def test_a_block_that_fails_is_shown_with_its_error(tmp_path):
    with pytest.raises(blocks.Broken, match=r"(?s)fails:\n1 / 0\n.*ZeroDivisionError"):
        blocks.run(["x = 1", "1 / 0", "y = 2"], tmp_path)


def test_a_command_that_fails_is_an_error(tmp_path):
    with pytest.raises(blocks.Broken, match="exit status 3"):
        blocks.with_outputs("```console\n$ exit 3\n```\n", tmp_path)


@pytest.mark.parametrize(
    "given, words",
    [
        (("nowhere.py",), "no file nowhere.py"),
        (("formulations/group_lasso.py", "Ridge"), "has no Ridge"),
    ],
)
def test_a_source_that_is_missing_is_an_error(given, words):
    with pytest.raises(blocks.Broken, match=words):
        blocks.source(*given)


def test_a_source_is_the_class_with_its_decorators_and_nothing_else():
    shown = blocks.source("formulations/group_lasso.py", "GroupLasso").splitlines()
    assert shown[3] == "@dataclass(frozen=True)" and shown[4].startswith("class Group")
    assert shown[-2].startswith("        return np.eye(") and shown[-1] == "````"


def test_the_api_has_every_public_name_once():
    shown = "\n".join(api.api_pages().values())
    listed = re.findall(r"^   (\w+)$", shown, re.MULTILINE)
    for name in api.public_names("mklopt"):
        assert listed.count(name) >= 1, name
    for room in ("formulations", "kernels", "gmkl", "structured", "reference"):
        for name in api.public_names(f"mklopt.{room}"):
            assert name in listed, name
    for name in ("Race", "Path", "Iterate", "RateCheck", "MKLClassifierCV"):
        assert name in listed, name
    assert listed.count("KernelFamilyProblem") == 1  # public in two modules


def test_every_section_of_the_api_is_in_its_table_of_contents():
    text = read("docs/api.md")
    assert re.findall(r"^generated/api/(\w+)$", text, re.M) == list(api.api_pages())


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a id="x" href="b.html#y">b</a>')
    (tmp_path / "b.html").write_text('<a href="a.html#x"></a><a href="http://c.d/">')
    assert links.check(tmp_path) == (["a.html: b.html#y"], ["http://c.d/"])
    (tmp_path / "b.html").write_text('<p id="y"><img src="no.png">')
    assert links.check(tmp_path) == (["b.html: no.png"], [])


@pytest.mark.full
def test_the_documentation_is_built_without_warnings():
    if not (ROOT / ".venv-docs" / ".installed").is_file():
        pytest.skip("make docs makes its environment")
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_solvers_has_all_of_them():
    from mklopt.solvers import solvers

    rows = blocks.solvers().splitlines()
    assert [row.split("`")[1] for row in rows[2:]] == list(solvers())
